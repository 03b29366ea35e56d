"""Recovery: the database says who is dead. Two looks, an interval apart, and nobody vouched in between."""

from __future__ import annotations

import logging

from oneturn.core.errors import BackendUnavailable
from oneturn.core.failpoint import failpoint
from oneturn.core.identity import QUEUE_TOPIC
from oneturn.core.record import Record
from oneturn.core.steps import Abandon, Ended, Requeued, Retention
from oneturn.runtime.process import Process

logger = logging.getLogger(__name__)

BATCH = 256
RETENTION_EVERY = 3600.0

Seen = tuple[str, int | None, float]


class Recovery:
    """The sweeper of one process. Any number may sweep: ending a record is one conditional step."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._seen: dict[Seen, float] = {}
        self._apart = process.settings.renew_every + process.settings.margin

    async def run(self) -> None:
        """Until cancelled."""
        clock = self._process.clock
        retained_at = clock.monotonic()
        while True:
            try:
                await self.sweep()
                if clock.monotonic() - retained_at >= RETENTION_EVERY:
                    retained_at = clock.monotonic()
                    await self.retain()
            except Exception:
                # One bad row must not end the recovery of all the others.
                logger.exception("a sweep failed; the next one follows")
            await clock.sleep(self._pause())

    def _pause(self) -> float:
        """Until the next sweep: jitter keeps a fleet from sweeping in step; a second look comes when it is due."""
        regular = self._process.settings.sweep_every * (0.75 + 0.25 * self._process.ids.jitter())
        now = self._process.clock.monotonic()
        second_looks = [left for first in self._seen.values() if (left := first + self._apart - now) > 0]
        return min([regular, *(left + 0.05 for left in second_looks)])

    async def sweep(self) -> int:
        """Look at all lapsed records once; answers how many were ended or queued again."""
        process = self._process
        try:
            due = await process.records.due(
                handlers=tuple(process.handlers),
                limit=BATCH,
                unknown_after=process.settings.unknown_handler_after,
            )
        except BackendUnavailable:
            self._seen.clear()  # while the database was away nobody could vouch: begin counting again
            return 0
        now = process.clock.monotonic()
        seen = {(record.id, record.epoch, record.alive_until): record for record in due.lapsed}
        self._seen = {key: self._seen.get(key, now) for key in seen}
        ended = 0
        for key, record in seen.items():
            if now - self._seen[key] >= self._apart and not await process.request_key_held(record):
                ended += await self._abandon(record)
        return ended

    async def _abandon(self, record: Record) -> bool:
        process = self._process
        await failpoint("recovery.abandon.before")
        step = Abandon(
            tenant=record.identity.tenant, id=record.id, epoch=record.epoch or 0, alive_until=record.alive_until
        )
        try:
            answer = await process.records.abandon(step)
        except BackendUnavailable:
            return False
        match answer:
            case Ended(record=after):
                process.decide("abandoned", after)
                await process.ended(after)
            case Requeued(record=after):
                process.decide("requeued", after, attempt=after.attempt)
                process.announce(after)
                process.signals.publish(QUEUE_TOPIC)
            case _:
                return False
        return True

    async def retain(self) -> None:
        """Drop what has been kept for long enough."""
        settings = self._process.settings
        try:
            await self._process.records.sweep(
                Retention(
                    results=settings.keep_results,
                    tombstones=settings.keep_tombstones,
                    events=settings.keep_events,
                )
            )
        except BackendUnavailable:
            return
