"""The states of an execution and the reasons for which one is stopped."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

OnBusy = Literal["reject", "enqueue", "interrupt", "rollback"]
"""What happens to a message whose conversation is busy."""

Recovery = Literal["abandon", "rerun"]
"""What a handler declares about an execution whose executor died: say so, or start it again."""


class Status(StrEnum):
    """Where an execution stands. QUEUED and RUNNING change; the other four are final."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STOPPED = "stopped"
    ABANDONED = "abandoned"

    @property
    def final(self) -> bool:
        """Whether nothing can change it any more."""
        return self not in (Status.QUEUED, Status.RUNNING)


class StopReason(StrEnum):
    """Why an execution was stopped. The first reason wins."""

    SUPERSEDED = "superseded"
    CANCELLED = "cancelled"
    SHUTDOWN = "shutdown"
    LEASE_LOST = "lease lost"
    RUN_LIMIT = "run limit"
    REVOKED = "revoked"
