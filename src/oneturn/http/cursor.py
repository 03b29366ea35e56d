"""The cursor of a watcher that resumes: which event of a turn or of a conversation it saw last."""

from __future__ import annotations

import re
from typing import Final

from starlette.requests import Request

from oneturn.http.problem import Problem

# ASCII digits only, and few enough for the 64 bits that a store has.
_NUMBER: Final = re.compile(r"[0-9]{1,18}")
_PAIR: Final = re.compile(r"([0-9]{1,18})-([0-9]{1,18})")
_START: Final = ("0", "-1")


def turn_cursor(request: Request) -> int:
    """The number after which the events of a turn are wanted; 0: from the start."""
    given = _given(request)
    if given is None or given in _START:
        return 0
    if not _NUMBER.fullmatch(given):
        raise invalid_cursor(f"{given[:40]!r} is not the number of an event")
    return int(given)


def conversation_cursor(request: Request) -> tuple[int, int] | None:
    """The pair (epoch, number) after which a conversation's events are wanted; (0, 0): the start; None: none was sent."""
    given = _given(request)
    if given is None:
        return None
    if given in _START:
        return (0, 0)
    pair = _PAIR.fullmatch(given)
    if pair is None:
        raise invalid_cursor(f"{given[:40]!r} is not an event id of a conversation, such as 3-14")
    return (int(pair[1]), int(pair[2]))


def invalid_cursor(detail: str) -> Problem:
    """The place that a client names does not exist."""
    return Problem("invalid-cursor", detail)


def _given(request: Request) -> str | None:
    # A browser that reconnects repeats the address, ?after= included, and adds the newer Last-Event-ID: that one wins.
    return request.headers.get("last-event-id") or request.query_params.get("after") or None
