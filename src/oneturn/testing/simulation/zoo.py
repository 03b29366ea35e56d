"""The zoo: planted bugs, each a small switchable mutation of the real code that the simulation has to find."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

from oneturn.backends.memory.replay import MemoryReplays
from oneturn.backends.memory.table import MemoryTable
from oneturn.core import transitions
from oneturn.core.identity import Identity
from oneturn.core.record import Record
from oneturn.core.rows import Rows
from oneturn.core.status import Status
from oneturn.core.steps import Append, Appended, Claim, Gone, Start
from oneturn.runtime.admission import Admission, Asked, Ticket
from oneturn.runtime.emitter import Emitter
from oneturn.runtime.process import Process

Mutation = Callable[[], AbstractContextManager[object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bug:
    """A planted bug, and the invariants of which at least one has to be seen broken."""

    name: str
    breaks: tuple[str, ...]
    plant: Mutation


def _patched(target: Any, name: str, mutant: Any) -> Mutation:
    return lambda: patch.object(target, name, mutant)


def _no_fence(rows: Rows, *, tenant: str, execution: str, epoch: int) -> Gone | None:  # noqa: ARG001 - that is the bug
    record = rows.read(tenant, execution)
    return None if record is not None else Gone(record=None)


def _append_to_anything(rows: Rows, asked: Append) -> Appended | Gone:
    record = rows.read(asked.tenant, asked.id)
    if record is None:
        return Gone(record=None)
    return Appended(last_seq=rows.log(record, asked.events[max(record.last_seq - asked.after, 0) :]).last_seq)


def _append_again(rows: Rows, asked: Append) -> Appended | Gone:
    record = rows.read(asked.tenant, asked.id)
    if record is None or record.status is not Status.RUNNING or record.epoch != asked.epoch:
        return Gone(record=record)
    return Appended(last_seq=rows.log(record, asked.events).last_seq)


def _unknown(rows: Rows, asked: Claim) -> None:  # noqa: ARG001
    return None


_real_start = transitions.start


def _start_anything(rows: Rows, asked: Start) -> Any:
    record = rows.read(asked.tenant, asked.id)
    if record is not None and record.status is Status.STOPPED:
        return transitions._begin(rows, record, owner=asked.owner, ttl=asked.ttl)  # noqa: SLF001
    return _real_start(rows, asked)


_real_queued = MemoryTable.queued


def _newest_first(self: MemoryTable, identity: Identity) -> list[Record]:
    return _real_queued(self, identity)[::-1]


def _requeue_whatever_died(rows: Rows, record: Record) -> Record:
    rows.raise_epoch(record.identity)
    return rows.requeue(record)


def _end_silently(self: MemoryTable, record: Record, *, status: Status, body: bytes, reason: Any) -> Record:
    return self.put(replace(record, status=status, body=body, reason=reason, ended_at=self.wall, owner=""))


async def _get_of_anybody(self: MemoryReplays, identity: Identity) -> Record | None:
    for kept, (_, record) in self._kept.items():
        if (kept.scope, kept.key) == (identity.scope, identity.key):
            return record
    return None


_real_existing = Admission.existing


def _existing_unseen(self: Admission, record: Record, asked: Asked) -> Ticket:
    return _real_existing(self, record, replace(asked, fingerprint=record.fingerprint))


async def _kept_lease(self: Process, lease: Any) -> None:  # noqa: ARG001
    lease.released()


_real_pending = Emitter.pending


def _pending_from_the_start(self: Emitter) -> Any:
    _, events = _real_pending(self)
    return 0, events


ZOO: tuple[Bug, ...] = (
    Bug(name="a write without the fence", breaks=("I3", "I4", "I7"), plant=_patched(transitions, "check", _no_fence)),
    Bug(
        name="events accepted after the terminal one",
        breaks=("I3", "I5", "I6", "I12"),
        plant=_patched(transitions, "append", _append_to_anything),
    ),
    Bug(name="a repeated append logs twice", breaks=("I5",), plant=_patched(transitions, "append", _append_again)),
    Bug(name="claim without looking the key up", breaks=("I2", "I4"), plant=_patched(transitions, "_known", _unknown)),
    Bug(name="a start after a stop", breaks=("I2", "I3"), plant=_patched(transitions, "start", _start_anything)),
    Bug(
        name="the queue starts its newest first", breaks=("I15",), plant=_patched(MemoryTable, "queued", _newest_first)
    ),
    Bug(
        name="a rerun of what declared none",
        breaks=("I2",),
        plant=_patched(transitions, "_end_dead", _requeue_whatever_died),
    ),
    Bug(name="the terminal event is missing", breaks=("I3",), plant=_patched(MemoryTable, "end", _end_silently)),
    Bug(name="a cache key without tenant", breaks=("I9", "I13"), plant=_patched(MemoryReplays, "get", _get_of_anybody)),
    Bug(
        name="replay before the fingerprint is compared",
        breaks=("I9",),
        plant=_patched(Admission, "existing", _existing_unseen),
    ),
    Bug(name="a lease is never released", breaks=("I14",), plant=_patched(Process, "release", _kept_lease)),
    Bug(
        name="the final commit forgets what was logged",
        breaks=("I5", "I12"),
        plant=_patched(Emitter, "pending", _pending_from_the_start),
    ),
)
