"""The queue: starts queued records that nobody owns, whichever process accepted them."""

from __future__ import annotations

import logging

from oneturn.core.errors import BackendUnavailable
from oneturn.core.failpoint import failpoint
from oneturn.core.identity import QUEUE_TOPIC
from oneturn.core.lease import Held
from oneturn.core.record import Record
from oneturn.core.steps import Busy, Claimed, Gone, Lapsed, Start
from oneturn.runtime.process import Process
from oneturn.runtime.waiting import Bell

logger = logging.getLogger(__name__)

BATCH = 64


class Queue:
    """One loop per process: look at what is due, try to start it, sleep until a signal or the check interval.

    Queued → running is one conditional step of the store: any number of processes may try, one succeeds.
    """

    def __init__(self, process: Process) -> None:
        self._process = process
        self._trying: set[str] = set()

    async def run(self) -> None:
        """Until cancelled. A lost signal delays a start by at most the check interval."""
        process = self._process
        bell = Bell(process.clock)
        end = process.signals.subscribe(QUEUE_TOPIC, bell.ring)
        try:
            while True:
                if process.accepting:
                    await self.look(bell)
                await bell.wait(process.settings.check_every)
        finally:
            end()

    async def look(self, bell: Bell) -> None:
        """Start whatever can be started now."""
        process = self._process
        try:
            due = await process.records.due(
                handlers=tuple(process.handlers),
                limit=BATCH,
                unknown_after=process.settings.unknown_handler_after,
            )
        except BackendUnavailable:
            return
        for record in due.startable:
            if record.id not in self._trying:
                self._trying.add(record.id)
                task = process.supervisor.spawn(self._try(record), name=f"start {record.id}")
                task.add_done_callback(lambda _, tried=record.id: self._trying.discard(tried))  # type: ignore[misc]
                if len(due.startable) == BATCH:
                    task.add_done_callback(lambda _: bell.ring_here())

    async def _try(self, record: Record) -> None:
        try:
            await self.start(record)
        except BackendUnavailable:
            return  # it is still queued, or it lapses: the next look finds it

    async def start(self, record: Record) -> bool:
        """Lease the record's own keys, then take it from the queue; True if it runs here now."""
        process, owner = self._process, self._process.ids.new()
        got = await process.acquire(record.identity, owner=owner, run_limit=record.run_limit)
        if isinstance(got, Held):
            return False
        lease, kept = got

        async def step(dead: str | None, alive: str | None) -> Claimed | Busy | Lapsed | Gone:
            return await process.records.start(
                Start(
                    tenant=record.identity.tenant,
                    id=record.id,
                    owner=owner,
                    ttl=process.settings.ttl,
                    dead=dead,
                    alive=alive,
                )
            )

        started = False
        try:
            await failpoint("queue.leased")
            if not process.accepting:
                return False  # it began to drain meanwhile: another process takes it
            claimed_at, answer = await process.precede(step)
            if isinstance(answer, Claimed):
                process.execute(answer, lease=lease, kept=kept, claimed_at=claimed_at)
                started = True
        finally:
            if not started:
                await process.give_back(lease, kept)
        return started
