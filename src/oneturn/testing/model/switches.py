"""The switches: design errors that can be planted into the model, one at a time."""

from __future__ import annotations

from enum import Enum
from typing import Final


class Switch(Enum):
    """A planted design error; the value says it in words. None of them is on in the right model."""

    LOCK_SERVICE_FENCE = "the fence is taken from the lock service"
    LATE_EPOCH = "the epoch is not claimed with the context, but with the write"
    DEADLINE_FROM_REPLY = "the deadline is counted from the reply"
    LOST_REVIVED = "a lost lease is revived by a late answer"
    CONTEXT_BEFORE_LOCK = "the context is read before the scope's row is locked"
    STOP_KEEPS_EPOCH = "a stop leaves the epoch"
    ATTACH_WITHOUT_RECORD = "a request is told that it is attached, without a record"
    RELEASE_ANYBODY = "release does not look at the owner"
    DEL_OVERTAKES_SET = "a cancelled acquire is released before it is applied"
    NEW_OWNER = "an unanswered acquire is repeated with a new owner"
    CHECK_THEN_COMMIT = "the observer checks, then commits"
    CLAIM_UNSEEN = "the claim does not look the key up again"
    UNKNOWN_IS_FAILURE = "an unknown commit is told as a failure"
    TERMINAL_TWICE = "a repeated finish logs its terminal event again"
    EVENT_AFTER_END = "an event is accepted after the terminal one"
    QUEUE_SKIPPED = "the queue skips a live waiter"
    STALE_WRITER = "a write is checked by the writer's own belief alone"
    PARTIAL_RENEWAL = "a renewal extends the keys that are left"
    VOUCHERS_IGNORED = "the sweeper ignores the database's vouchers"
    KEYS_IGNORED = "the sweeper ignores the request key"
    RERUN_UNDECLARED = "a rerun of what declared none"
    REGRANT_KEPT = "keys that were taken again after the release are kept"
    LATE_ENTRY = "the work is entered although its lease is lost"


RIGHT: Final = None
"""No switch is on."""
