"""Planted bugs of recovery: who is declared dead, by whom, and what becomes of the work."""
# ruff: noqa: SLF001, ARG001 - a mutant sits inside of what it mutates, and leaves out what it should have looked at

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from oneturn.backends.memory.records import MemoryRecords
from oneturn.core import transitions
from oneturn.core.record import Record
from oneturn.core.rows import Rows
from oneturn.core.status import Status
from oneturn.core.steps import Abandon, Due, Ended, Gone, Requeued
from oneturn.runtime.keeper import Keeper
from oneturn.runtime.process import Process
from oneturn.runtime.recovery import Recovery
from oneturn.testing.simulation.zoo.bug import Bug, patched

_real_due, _real_init = MemoryRecords.due, Recovery.__init__


def _requeue_whatever_died(rows: Rows, record: Record) -> Record:
    rows.raise_epoch(record.identity)
    return rows.requeue(record)


def _abandon_the_living(rows: Rows, asked: Abandon) -> Ended | Requeued | Gone:
    record = rows.read(asked.tenant, asked.id)
    if record is None or record.status is not Status.RUNNING or record.epoch != asked.epoch:
        return Gone(record=record)
    after = transitions._end_dead(rows, record)
    return Ended(record=after) if after.status.final else Requeued(record=after)


async def _due_early(self: MemoryRecords, **named: Any) -> Due:
    """Whoever was not touched for half a TTL counts as dead."""
    due = await _real_due(self, **named)
    running = [record for record in self.table.records.values() if record.status is Status.RUNNING]
    early = tuple(self.table.seen(record) for record in running)
    return replace(due, lapsed=tuple(record for record in early if record.remaining < 5))  # noqa: PLR2004


async def _due_running(self: MemoryRecords, **named: Any) -> Due:
    """Whoever runs may be dead: the lock service will say."""
    due = await _real_due(self, **named)
    running = [record for record in self.table.records.values() if record.status is Status.RUNNING]
    return replace(due, lapsed=tuple(self.table.seen(record) for record in running))


async def _not_held(self: Process, record: Record) -> bool:
    return False


def _one_look(self: Recovery, process: Process) -> None:
    _real_init(self, process)
    self._apart = 0.0


async def _touch_nothing(self: Keeper) -> float | None:
    return None


_real_precede = Process.precede


async def _precede_the_living(self: Process, step: Callable[..., Awaitable[Any]]) -> Any:
    return await _real_precede(self, lambda dead, alive: step(dead or alive, None))


BUGS: tuple[Bug, ...] = (
    Bug(
        name="a rerun of what declared none",
        breaks=("I2",),
        plant=patched((transitions, "_end_dead", _requeue_whatever_died)),
    ),
    Bug(
        name="abandoned after one look, whoever vouches",
        breaks=("I3",),
        plant=patched(
            (Recovery, "__init__", _one_look),
            (MemoryRecords, "due", _due_early),
            (Process, "request_key_held", _not_held),
            (transitions, "abandon", _abandon_the_living),
        ),
    ),
    Bug(
        name="an emptied lock service declares everybody dead",
        breaks=("I3",),
        plant=patched(
            (Recovery, "__init__", _one_look),
            (MemoryRecords, "due", _due_running),
            (transitions, "abandon", _abandon_the_living),
        ),
    ),
    Bug(name="the keeper does not touch records", breaks=("I3",), plant=patched((Keeper, "_touch", _touch_nothing))),
    Bug(
        name="a claim ends whose keys are held",
        breaks=("I3",),
        plant=patched((Process, "precede", _precede_the_living)),
    ),
    Bug(
        name="a sweeper looks once",
        breaks=("I3",),
        plant=patched((Recovery, "__init__", _one_look)),
    ),
)
