"""What form of an answer a client wishes: a stream or a document (`Accept`), and how long it would wait (`Prefer`)."""

from __future__ import annotations

import re
from typing import Final

from starlette.requests import Request

WAIT: Final = 25.0
"""Seconds: shorter than the half minute after which many a proxy gives up."""
MAX_WAIT: Final = 60.0

_WAIT: Final = re.compile(r'\s*wait\s*=\s*"?([0-9]{1,9})"?\s*(?:;.*)?', re.IGNORECASE)


def wants_stream(request: Request) -> bool:
    """Whether the client asks for `text/event-stream`, at least as much as for JSON."""
    quality = {"text/event-stream": 0.0, "application/json": 0.0}
    for header in request.headers.getlist("accept"):
        for part in header.split(","):
            name, _, parameters = part.partition(";")
            if (name := name.strip().lower()) in quality:
                quality[name] = _quality(parameters)
    return 0 < quality["text/event-stream"] >= quality["application/json"]


def wished_wait(request: Request) -> tuple[float, dict[str, str]]:
    """(seconds to wait, headers that say which preference was applied). What cannot be read is ignored (RFC 7240)."""
    for header in request.headers.getlist("prefer"):
        for part in header.split(","):
            if found := _WAIT.fullmatch(part):
                seconds = min(int(found[1]), int(MAX_WAIT))
                return float(seconds), {"Preference-Applied": f"wait={seconds}"}
    return WAIT, {}


def _quality(parameters: str) -> float:
    found = re.search(r"(?:^|;)\s*q\s*=\s*([0-9.]+)", parameters, re.IGNORECASE)
    try:
        return float(found[1]) if found else 1.0
    except ValueError:
        return 0.0
