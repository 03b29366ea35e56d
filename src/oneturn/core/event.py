"""The events of an execution: numbered from 1 without gaps, durable before they are sent, one terminal event."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from oneturn.core.status import Status, StopReason

QUEUED, STARTED, RESTARTED, TEXT, STEP, DATA, SNAPSHOT = (
    "queued",
    "started",
    "restarted",
    "text",
    "step",
    "data",
    "snapshot",
)
TERMINAL = frozenset(status.value for status in Status if status.final)
RESERVED = TERMINAL | {QUEUED, STARTED, RESTARTED, SNAPSHOT, "reconnect", "position"}
"""Kinds that the library logs or sends itself; a handler may not emit them."""


def encode(data: Any) -> str:
    """Event data as one line of JSON."""
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Logged:
    """An event as it stands in the log. `data` is one line of JSON; `seq` counts from 1 within its execution."""

    seq: int
    kind: str
    data: str
    tail: bytes = field(init=False, compare=False, repr=False)
    """Its server-sent-event frame after the `id` line: encoded once, here, for every reader."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "tail", f"event: {self.kind}\ndata: {self.data}\n\n".encode())

    @property
    def terminal(self) -> bool:
        """Whether nothing follows it."""
        return self.kind in TERMINAL


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """An event as a caller reads it: `id` counts 1, 2, 3 …; `data` is decoded JSON."""

    id: int
    kind: str
    data: Any


def failure_body(*, code: str, message: str, log_id: str | None = None) -> bytes:
    """The stored body of a failed execution."""
    body = {"code": _printable(code) or "failed", "message": _printable(message)}
    if log_id is not None:
        body["log_id"] = log_id
    return encode(body).encode()


def _printable(text: object) -> str:
    # What a handler raised may be anything: the record must be writable whatever it is.
    return str(text if text is not None else "").encode("utf-8", "replace").decode("utf-8")


def stop_body(reason: StopReason, **more: str) -> bytes:
    """The stored body of a stopped execution."""
    return encode({"reason": reason.value, **more}).encode()


def terminal_event(*, seq: int, status: Status, body: bytes) -> Logged:
    """The one event that ends a log, made from the final record and from nothing else."""
    text = body.decode()
    data = f'{{"result":{text}}}' if status is Status.SUCCEEDED else (text or "{}")
    return Logged(seq=seq, kind=status.value, data=data)


def fold(events: Iterable[Logged]) -> Mapping[str, Any]:
    """What a reader who saw all of `events` has on the screen: the data of the `snapshot` that may replace them."""
    text: list[str] = []
    steps: dict[tuple[str, str], Any] = {}
    named: dict[str, Any] = {}
    for event in events:
        data = json.loads(event.data)
        if not isinstance(data, dict):
            continue  # a kind of the application's own
        match event.kind:
            case "text":
                text.append(str(data.get("delta", "")))
            case "step":
                steps[_step(data)] = data
            case "data":
                named[str(data.get("name"))] = data.get("value")
            case "snapshot":
                text = [data["text"]]
                steps = {_step(step): step for step in data["steps"]}
                named = dict(data["data"])
            case "restarted":
                text, steps, named = [], {}, {}
            case _:
                pass
    return {"text": "".join(text), "steps": list(steps.values()), "data": named}


def _step(data: Mapping[str, Any]) -> tuple[str, str]:
    """What tells one step from another: a step that is tried again keeps its name and counts its attempts."""
    return str(data.get("name")), str(data.get("attempt", ""))
