"""Planted bugs of waiting: who is served when, and who is woken."""
# ruff: noqa: SLF001 - a mutant sits inside of what it mutates

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from oneturn.backends.memory.records import MemoryRecords
from oneturn.backends.memory.table import MemoryTable
from oneturn.core.identity import QUEUE_TOPIC, Identity
from oneturn.core.record import Record
from oneturn.core.signals import Signals
from oneturn.core.steps import Due
from oneturn.runtime import engine
from oneturn.runtime.engine import Engine
from oneturn.runtime.execution import Execution
from oneturn.runtime.pool import WorkerPool
from oneturn.runtime.process import Process
from oneturn.runtime.queue import Queue
from oneturn.runtime.waiting import Bell, listening
from oneturn.testing.simulation.zoo.bug import Bug, patched

_real_queued = MemoryTable.queued


def _newest_first(self: MemoryTable, identity: Identity) -> list[Record]:
    return _real_queued(self, identity)[::-1]


_real_due = MemoryRecords.due


async def _due_without_reruns(self: MemoryRecords, **named: Any) -> Due:
    due = await _real_due(self, **named)
    return replace(due, startable=tuple(record for record in due.startable if record.attempt == 0))


_real_finalise = Execution._finalise


async def _announce_then_finalise(self: Execution, *outcome: Any) -> None:
    self._process.announce(self.record)
    await _real_finalise(self, *outcome)


async def _ended_unannounced(self: Process, record: Record) -> None:
    await self.remember(record)
    self.signals.publish(QUEUE_TOPIC)


async def _sleep_until_told(self: Engine, record: Record, *, wait: float | None, through_drain: bool = False) -> Record:
    process = self.process
    end = None if wait is None else process.clock.monotonic() + wait
    with listening(process.signals, record.identity.topic(), clock=process.clock) as bell:
        while True:
            record = await process.records.read(tenant=record.identity.tenant, id=record.id) or record
            left = None if end is None else end - process.clock.monotonic()
            if record.status.final or (left is not None and left <= 0) or not (process.accepting or through_drain):
                return record
            await bell.wait(left)


@contextmanager
def _listening_for_ever(signals: Signals, *topics: str, clock: Any) -> Iterator[Bell]:
    bell = Bell(clock)
    for topic in topics:
        signals.subscribe(topic, bell.ring)
    yield bell


def _run_and_keep_the_slot(self: WorkerPool, future: Any, function: Callable[[], Any]) -> None:
    try:
        future.set_result(function())
    except BaseException as error:  # noqa: BLE001 - as the pool does
        future.set_exception(error)
    finally:
        with self._change:
            self._dispatch()


class _Growing(set[str]):
    """A set that forgets nothing."""

    def discard(self, _: object) -> None:
        return


_real_queue = Queue.__init__


def _try_each_once(self: Queue, process: Process) -> None:
    _real_queue(self, process)
    self._trying = _Growing()


BUGS: tuple[Bug, ...] = (
    Bug(
        name="the queue starts its newest first",
        breaks=("I15",),
        plant=patched((MemoryTable, "queued", _newest_first)),
    ),
    Bug(
        name="the queue skips who was started before",
        breaks=("I3", "I15"),
        plant=patched((MemoryRecords, "due", _due_without_reruns)),
    ),
    Bug(
        name="a wake-up before the commit, and no second look",
        breaks=("I15",),
        plant=patched(
            (Execution, "_finalise", _announce_then_finalise),
            (Process, "ended", _ended_unannounced),
            (Engine, "outcome", _sleep_until_told),
        ),
    ),
    Bug(
        name="a subscription never ends",
        breaks=("I14",),
        plant=patched((engine, "listening", _listening_for_ever)),
    ),
    Bug(
        name="a worker thread's slot is never given back",
        breaks=("I14",),
        plant=patched((WorkerPool, "_run", _run_and_keep_the_slot)),
    ),
    Bug(
        name="the queue tries each record once",
        breaks=("I3", "I15"),
        plant=patched((Queue, "__init__", _try_each_once)),
    ),
)
