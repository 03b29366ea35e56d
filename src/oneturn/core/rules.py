"""Decisions that every store makes alike, whatever holds its rows."""

from __future__ import annotations

from oneturn.core import event as kinds
from oneturn.core.event import encode
from oneturn.core.record import Record
from oneturn.core.steps import Emitted

MAX_ATTEMPTS = 3


def may_rerun(record: Record) -> bool:
    """Whether a record whose executor died is queued again, rather than abandoned."""
    return record.recovery == "rerun" and record.attempt < MAX_ATTEMPTS


def started_event(*, epoch: int, attempt: int) -> Emitted:
    """The event that says that the work begins; from the second attempt on it replaces all before it."""
    kind = kinds.STARTED if attempt == 1 else kinds.RESTARTED
    return Emitted(kind=kind, data=encode({"epoch": epoch, "attempt": attempt}))
