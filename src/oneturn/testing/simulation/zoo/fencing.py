"""Planted bugs of the fence and of epochs: who may write, and by which number that is told."""
# ruff: noqa: SLF001, ARG001 - a mutant sits inside of what it mutates, and leaves out what it should have looked at

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from oneturn.backends.memory.table import MemoryTable
from oneturn.core import transitions
from oneturn.core.event import stop_body
from oneturn.core.identity import Identity
from oneturn.core.record import Record
from oneturn.core.rows import Rows
from oneturn.core.status import Status
from oneturn.core.steps import Ended, Gone, Start, Stop
from oneturn.runtime.execution import Execution
from oneturn.runtime.fence import Fence
from oneturn.runtime.process import Process
from oneturn.testing.simulation.zoo.bug import Bug, patched


def _no_fence(rows: Rows, *, tenant: str, execution: str, epoch: int) -> Gone | None:
    record = rows.read(tenant, execution)
    return None if record is not None else Gone(record=None)


def _fence_by_status(rows: Rows, *, tenant: str, execution: str, epoch: int) -> Gone | None:
    record = rows.read(tenant, execution)
    return None if record is not None and record.status is Status.RUNNING else Gone(record=record)


def _fence_by_epoch_alone(rows: Rows, *, tenant: str, execution: str, epoch: int) -> Gone | None:
    current, record = rows.lock_scope_of(tenant, execution), rows.read(tenant, execution)
    return None if record is not None and record.epoch == epoch == current else Gone(record=record)


def _fence_by_scope_alone(rows: Rows, *, tenant: str, execution: str, epoch: int) -> Gone | None:
    return None if rows.lock_scope_of(tenant, execution) == epoch else Gone(record=rows.read(tenant, execution))


@contextmanager
def _epochs_of_the_lock_service() -> Iterator[None]:
    tokens: dict[str, int] = {}
    real = Process.leased

    def leased(self: Process, grant: Any, **named: Any) -> Any:
        tokens[grant.owner] = grant.fencing_token
        return real(self, grant, **named)

    def begin(rows: Any, record: Record, *, owner: str, ttl: float) -> Any:
        def number(identity: Identity) -> int:
            rows.scope(identity.tenant, identity.scope).epoch = tokens[owner]
            return tokens[owner]

        with patch.object(rows, "raise_epoch", number):
            return _real_begin(rows, record, owner=owner, ttl=ttl)

    with patch.object(Process, "leased", leased), patch.object(transitions, "_begin", begin):
        yield


_real_begin = transitions._begin


def _begin_without_raising(rows: Any, record: Record, *, owner: str, ttl: float) -> Any:
    with patch.object(rows, "raise_epoch", rows.lock_scope):
        return _real_begin(rows, record, owner=owner, ttl=ttl)


def _stop_and_leave_the_epoch(rows: Rows, asked: Stop) -> Ended | Gone:
    record = rows.read(asked.tenant, asked.id)
    if record is None:
        return Gone(record=None)
    if record.status.final:
        return Ended(record=record, here=False)
    return Ended(record=rows.end(record, status=Status.STOPPED, body=stop_body(asked.reason), reason=asked.reason))


def _end_dead_and_leave_the_epoch(rows: Rows, record: Record) -> Record:
    if record.recovery == "rerun" and record.attempt < transitions.MAX_ATTEMPTS:
        return rows.requeue(record)
    return rows.end(record, status=Status.ABANDONED, body=b"", reason=None)


def _requeue_with_the_epoch(self: MemoryTable, record: Record) -> Record:
    return self.put(replace(record, status=Status.QUEUED, owner=""))


def _begin_again_as_before(rows: Any, record: Record, *, owner: str, ttl: float) -> Any:
    def as_before(identity: Identity) -> int:
        rows.scope(identity.tenant, identity.scope).epoch = record.epoch
        return record.epoch or 0

    with patch.object(rows, "raise_epoch", rows.raise_epoch if record.epoch is None else as_before):
        return _real_begin(rows, record, owner=owner, ttl=ttl)


def _fence_of_what_ended_well(rows: Rows, *, tenant: str, execution: str, epoch: int) -> Gone | None:
    record = rows.read(tenant, execution)
    ended = record is None or record.status in (Status.SUCCEEDED, Status.FAILED)  # so that a repeated finish is told so
    return Gone(record=record) if ended else None


_real_finalise = Execution._finalise


async def _check_then_finish(self: Execution, *outcome: Any) -> None:
    record, records = self.record, self._process.records
    found = await self._process.persistently(lambda: records.read(tenant=record.identity.tenant, id=record.id))
    if found is not None and found.status is Status.RUNNING and found.epoch == record.epoch:
        await _real_finalise(self, *outcome)


def _touch_whoever_runs(self: MemoryTable, *, tenant: str, execution: str, epoch: int, ttl: float) -> bool:
    record = self.read(tenant, execution)
    if record is None or record.status is not Status.RUNNING:
        return False
    self.put(replace(record, alive_until=self.now + ttl))
    return True


_real_start = transitions.start


def _start_anything(rows: Rows, asked: Start) -> Any:
    record = rows.read(asked.tenant, asked.id)
    if record is not None and record.status is Status.STOPPED:
        return transitions._begin(rows, record, owner=asked.owner, ttl=asked.ttl)
    return _real_start(rows, asked)


def _sequence_of_the_waiting(self: MemoryTable, identity: Identity) -> int:
    return 1 + sum(not record.status.final for record in self.of(identity.tenant, identity.scope))


def _commit_unasked(self: Fence, session: Any) -> None:
    return


BUGS: tuple[Bug, ...] = (
    Bug(
        name="a write without the fence",
        breaks=("I1", "I3", "I4", "I6", "I7"),
        plant=patched((transitions, "check", _no_fence)),
    ),
    Bug(
        name="the lease is still ours, so the write is fenced",
        breaks=("I1", "I6"),
        plant=patched((transitions, "check", _fence_by_status)),
    ),
    Bug(name="the epoch is the lock service's number", breaks=("I1", "I6"), plant=_epochs_of_the_lock_service),
    Bug(
        name="a claim raises no epoch",
        breaks=("I1",),
        plant=patched((transitions, "_begin", _begin_without_raising)),
    ),
    Bug(
        name="a stop leaves the epoch",
        breaks=("I3", "I6"),
        plant=patched((transitions, "stop", _stop_and_leave_the_epoch), (transitions, "check", _fence_by_epoch_alone)),
    ),
    Bug(
        name="the end of a dead one leaves the epoch",
        breaks=("I3", "I6"),
        plant=patched(
            (transitions, "_end_dead", _end_dead_and_leave_the_epoch), (transitions, "check", _fence_by_scope_alone)
        ),
    ),
    Bug(
        name="a rerun keeps its old epoch",
        breaks=("I1", "I2"),
        plant=patched(
            (MemoryTable, "requeue", _requeue_with_the_epoch), (transitions, "_begin", _begin_again_as_before)
        ),
    ),
    Bug(
        name="check first, finish afterwards",
        breaks=("I1", "I3", "I6"),
        plant=patched((transitions, "check", _fence_of_what_ended_well), (Execution, "_finalise", _check_then_finish)),
    ),
    Bug(
        name="a stale worker vouches for its successor",
        breaks=("I3", "I10", "model"),
        plant=patched((MemoryTable, "touch", _touch_whoever_runs)),
    ),
    Bug(name="a start after a stop", breaks=("I2", "I3"), plant=patched((transitions, "start", _start_anything))),
    Bug(
        name="sequence numbers are used again",
        breaks=("I15",),
        plant=patched((MemoryTable, "next_sequence", _sequence_of_the_waiting)),
    ),
    Bug(
        name="a fence that does not ask at the commit",
        breaks=("I1", "I4"),
        plant=patched((Fence, "_before_commit", _commit_unasked)),
    ),
)
