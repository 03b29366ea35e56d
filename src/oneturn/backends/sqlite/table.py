"""The rows that steps read and write: each method is one or two statements, without any decision."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from oneturn.backends.sqlite.rows import to_record, to_row
from oneturn.backends.sqlite.statements import statements
from oneturn.backends.sqlite.times import BootTimes
from oneturn.core.event import Logged, terminal_event
from oneturn.core.identity import Identity
from oneturn.core.record import Record, StoredMessage
from oneturn.core.status import Status, StopReason
from oneturn.core.steps import Emitted
from oneturn.core.store import Execute

SQL = statements("records")


class Table:
    """The records' tables within one transaction."""

    def __init__(self, run: Execute, times: BootTimes) -> None:
        self._run = run
        self._times = times
        self.boot = times.boot()
        self._look_at_the_clock()

    def _look_at_the_clock(self) -> None:
        self.now = self._times.monotonic()
        self.wall = self._times.wall()

    # -- scopes -------------------------------------------------------------------------------------------------------

    def lock_scope(self, identity: Identity) -> int:
        """Lock the scope's row, making it if need be; its epoch."""
        epoch = int(self._run(SQL["lock_scope"], (identity.tenant, identity.scope))[0][0])
        # In somebody's own transaction this write is what waits for the lock: what was read before may be long ago.
        self._look_at_the_clock()
        return epoch

    def lock_scope_of(self, tenant: str, execution: str) -> int | None:
        """Lock the row of an execution's scope; its epoch, None if there is no such execution."""
        rows = self._run(SQL["lock_scope_of"], (tenant, execution))
        self._look_at_the_clock()
        return int(rows[0][0]) if rows else None

    def raise_epoch(self, identity: Identity) -> int:
        """The scope's next epoch, taken."""
        return int(self._run(SQL["raise_epoch"], (identity.tenant, identity.scope))[0][0])

    def next_sequence(self, identity: Identity) -> int:
        """The scope's next sequence number, taken."""
        return int(self._run(SQL["next_sequence"], (identity.tenant, identity.scope))[0][0])

    # -- records ------------------------------------------------------------------------------------------------------

    def find(self, identity: Identity) -> Record | None:
        """The record of this name."""
        return self._one(SQL["find"], (identity.tenant, identity.scope, identity.subject, identity.key))

    def read(self, tenant: str, execution: str) -> Record | None:
        """The record with this id."""
        return self._one(SQL["read"], (tenant, execution))

    def running(self, identity: Identity) -> Record | None:
        """The one that runs in the scope."""
        return self._one(SQL["running"], (identity.tenant, identity.scope))

    def queued(self, identity: Identity) -> list[Record]:
        """Those that wait in the scope, oldest first."""
        return self.many(SQL["queued"], (identity.tenant, identity.scope))

    def many(self, sql: str, parameters: Sequence[Any]) -> list[Record]:
        """All records of a statement."""
        return [to_record(row, now=self.now, boot=self.boot) for row in self._run(sql, parameters)]

    def _one(self, sql: str, parameters: Sequence[Any]) -> Record | None:
        return next(iter(self.many(sql, parameters)), None)

    def insert(self, record: Record) -> None:
        """Store a new record."""
        self._run(SQL["insert"], to_row(record))

    def begin(self, record: Record, *, owner: str, epoch: int, ttl: float) -> Record:
        """It runs from now on."""
        until = self.now + ttl
        values = (owner, epoch, record.attempt + 1, until, self.boot, self.wall, record.id)
        self._run(SQL["begin"], values)
        return replace(
            record,
            status=Status.RUNNING,
            owner=owner,
            epoch=epoch,
            attempt=record.attempt + 1,
            alive_until=until,
            remaining=ttl,
            started_at=self.wall,
        )

    def requeue(self, record: Record) -> Record:
        """It waits again, in its old place."""
        self._run(SQL["requeue"], (record.id,))
        return replace(record, status=Status.QUEUED, owner="", epoch=None)

    def end(self, record: Record, *, status: Status, body: bytes, reason: StopReason | None) -> Record:
        """It is final, and its terminal event says so."""
        seq = record.last_seq + 1
        event = terminal_event(seq=seq, status=status, body=body)
        self._run(SQL["log"], (record.id, seq, event.kind, event.data))
        values = (status.value, reason.value if reason else None, body, self.wall, seq, record.id)
        self._run(SQL["end"], values)
        return replace(record, status=status, reason=reason, body=body, ended_at=self.wall, last_seq=seq, owner="")

    def touch(self, *, tenant: str, execution: str, epoch: int, ttl: float) -> bool:
        """Whether it runs with that epoch, and then it is alive for `ttl`."""
        return bool(self._run(SQL["touch"], (self.now + ttl, self.boot, tenant, execution, epoch)))

    # -- events and answers -------------------------------------------------------------------------------------------

    def log(self, record: Record, events: Sequence[Emitted]) -> Record:
        """Append events."""
        seq = record.last_seq
        for emitted in events:
            seq += 1
            self._run(SQL["log"], (record.id, seq, emitted.kind, emitted.data))
        if events:
            self._run(SQL["logged_up_to"], (seq, record.id))
        return replace(record, last_seq=seq)

    def events(self, execution: str, *, after: int, limit: int) -> list[Logged]:
        """A part of its log."""
        rows = self._run(SQL["events"], (execution, after, limit))
        return [Logged(seq=seq, kind=kind, data=data) for seq, kind, data in rows]

    def events_of(self, tenant: str, execution: str, *, after: int, limit: int) -> list[Logged]:
        """A part of its log, if it is this tenant's."""
        rows = self._run(SQL["events_of"], (tenant, execution, execution, after, limit))
        return [Logged(seq=seq, kind=kind, data=data) for seq, kind, data in rows]

    def scope_events(
        self, tenant: str, scope: str, *, after: tuple[int, int], limit: int
    ) -> list[tuple[str, int, Logged]]:
        """A part of the logs of a scope."""
        epoch, seq = after
        rows = self._run(SQL["scope_events"], (tenant, scope, epoch, epoch, seq, limit))
        return [(execution, at, Logged(seq=n, kind=kind, data=data)) for execution, at, n, kind, data in rows]

    def answer_of(self, message: str) -> str:
        """Who answered a message; "" if nobody did."""
        rows = self._run(SQL["answer_of"], (message,))
        return str(rows[0][0]) if rows else ""

    def answer(self, record: Record) -> None:
        """This execution answers its message."""
        identity = record.identity
        self._run(SQL["answer"], (record.message, record.id, identity.tenant, identity.scope, record.epoch))

    def newest_answered(self, identity: Identity) -> str:
        """The message that was answered last in the scope."""
        rows = self._run(SQL["newest_answered"], (identity.tenant, identity.scope))
        return str(rows[0][0]) if rows else ""

    def history(self, tenant: str, scope: str, *, before_epoch: int, without: str, limit: int) -> list[StoredMessage]:
        """Answered messages, oldest first."""
        rows = self._run(SQL["history"], (tenant, scope, before_epoch, without, limit))
        return [
            StoredMessage(turn=turn, sequence=sequence, payload=payload, answered_by=by, answer=body)
            for turn, sequence, payload, by, body in reversed(rows)
        ]

    def drop_payload(self, record: Record) -> None:
        """The text of an answered message is not kept."""
        self._run(SQL["drop_payload"], (record.message, record.id))

    # -- sweeping -----------------------------------------------------------------------------------------------------

    def startable(self, *, handlers: Sequence[str], long_ago: float, limit: int) -> list[Record]:
        """See the port's `due`."""
        values = (self.boot, self.now, long_ago, json.dumps(list(handlers)), limit)
        return self.many(SQL["startable"], values)

    def lapsed(self, *, limit: int) -> list[Record]:
        """See the port's `due`."""
        return self.many(SQL["lapsed"], (self.boot, self.now, limit))

    def empty(self, execution: str) -> None:
        """Leave a tombstone."""
        self._run(SQL["empty"], (execution,))
        self._run(SQL["drop_log"], (execution,))
        self._run(SQL["drop_answers"], (execution, execution))
