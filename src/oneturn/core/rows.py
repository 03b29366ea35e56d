"""The rows that transitions read and write within one transaction: each method is a look or a change, none decides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from oneturn.core.identity import Identity
from oneturn.core.record import Record
from oneturn.core.status import Status, StopReason
from oneturn.core.steps import Emitted


class Rows(Protocol):
    """A store's rows in an open transaction. What is answered is what the transaction sees, at the store's `now`."""

    @property
    def wall(self) -> float:
        """The store's wall clock, in seconds."""
        ...

    def lock_scope(self, identity: Identity) -> int:
        """Lock the scope's row, making it if need be, before anything is read; its epoch."""
        ...

    def lock_scope_of(self, tenant: str, execution: str) -> int | None:
        """Lock the row of an execution's scope; its epoch, None if there is no such execution."""
        ...

    def raise_epoch(self, identity: Identity) -> int:
        """The scope's next epoch, taken."""
        ...

    def next_sequence(self, identity: Identity) -> int:
        """The scope's next sequence number, taken."""
        ...

    def find(self, identity: Identity) -> Record | None:
        """The record of this name."""
        ...

    def read(self, tenant: str, execution: str) -> Record | None:
        """The record with this id."""
        ...

    def running(self, identity: Identity) -> Record | None:
        """The one that runs in the scope."""
        ...

    def queued(self, identity: Identity) -> list[Record]:
        """Those that wait in the scope, oldest first."""
        ...

    def insert(self, record: Record) -> None:
        """Store a new record."""
        ...

    def begin(self, record: Record, *, owner: str, epoch: int, ttl: float) -> Record:
        """It runs from now on, one attempt more."""
        ...

    def requeue(self, record: Record) -> Record:
        """It waits again, in its old place, without an epoch."""
        ...

    def end(self, record: Record, *, status: Status, body: bytes, reason: StopReason | None) -> Record:
        """It is final, and its terminal event says so."""
        ...

    def touch(self, *, tenant: str, execution: str, epoch: int, ttl: float) -> bool:
        """Whether it runs with that epoch, and then it is alive for `ttl`."""
        ...

    def log(self, record: Record, events: Sequence[Emitted]) -> Record:
        """Append events."""
        ...

    def answer_of(self, message: str) -> str:
        """Who answered a message; "" if nobody did."""
        ...

    def answer(self, record: Record) -> None:
        """This execution answers its message, instead of whoever did."""
        ...

    def newest_answered(self, identity: Identity) -> str:
        """The message that was answered last in the scope."""
        ...

    def drop_payload(self, record: Record) -> None:
        """The text of an answered message is not kept."""
        ...
