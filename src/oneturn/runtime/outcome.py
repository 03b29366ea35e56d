"""The outcome: a final record as a caller sees it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from oneturn.core.record import Record
from oneturn.core.status import StopReason


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How an execution ended. `body` is JSON: the result, the failure's code and message, or the stop's reason."""

    status: Literal["succeeded", "failed", "stopped", "abandoned"]
    body: bytes
    reason: StopReason | None
    replayed: bool


def outcome_of(record: Record, *, replayed: bool) -> Outcome:
    """The outcome of a final record."""
    status = record.status.value
    assert status not in ("queued", "running")  # noqa: S101 - callers hold a final record
    return Outcome(status=status, body=record.body, reason=record.reason, replayed=replayed)  # type: ignore[arg-type]
