"""The keeper: renews every lease of the process in one call an interval, on a loop that user code cannot block."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from oneturn.core.clock import Clock
from oneturn.core.errors import BackendUnavailable
from oneturn.core.lease import Grant, LeaseStore, Renewal
from oneturn.core.record import Record
from oneturn.core.status import Status, StopReason
from oneturn.core.steps import Vouch
from oneturn.core.store import RecordStore
from oneturn.runtime.lease import Lease
from oneturn.runtime.waiting import Bell, wake

logger = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class Kept:
    """One lease in the keeper's care. `vouch` is set once a record in the database stands behind it."""

    lease: Lease
    renew_at: float
    vouch: Vouch | None = None
    touch_at: float = 0.0
    retries: int = field(default=0)


class Keeper:
    """Renews keys, vouches for records, and declares loss. Thread-safe; `run` is its one coroutine.

    Three loops that never wait for each other: a hung lock service delays neither the database's vouchers nor the moment at
    which a deadline is noticed.
    """

    def __init__(
        self,
        *,
        leases: LeaseStore,
        records: RecordStore,
        clock: Clock,
        renew_every: float,
        check_every: float,
        margin: float,
    ) -> None:
        self._leases = leases
        self._records = records
        self._clock = clock
        self._renew_every = renew_every
        self._touch_every = min(check_every, renew_every)
        self._margin = margin
        self._items: dict[Kept, None] = {}  # in the order of arrival: a run can be repeated
        self._change = threading.Lock()
        self._bells: tuple[Bell, ...] = ()

    def margin(self, ttl: float) -> float:
        """How much earlier than the store we believe a lease of this TTL to have ended."""
        return min(self._margin, ttl / 10)

    def add(self, lease: Lease) -> Kept:
        """Keep `lease` from now on."""
        item = Kept(lease=lease, renew_at=self._clock.monotonic() + self._interval(lease.grant.ttl))
        with self._change:
            self._items[item] = None
        self._ring()
        return item

    def vouch(self, item: Kept, vouch: Vouch, *, asked_at: float) -> None:
        """A record now stands behind the lease: alive until `asked_at` + its TTL, to be touched from here on."""
        item.lease.extend(asked_at + vouch.ttl - self.margin(vouch.ttl))
        item.touch_at = asked_at + self._touch_every
        item.vouch = vouch
        self._ring()

    def look(self, item: Kept) -> None:
        """Ask the database about this one now: somebody says that it was ended."""
        item.touch_at = 0.0
        self._ring()

    def remove(self, item: Kept) -> None:
        """Renew it no more."""
        with self._change:
            self._items.pop(item, None)

    async def run(self, ready: Callable[[], object]) -> None:
        """Keep until cancelled. Every await here is safe to cancel: a renewal that nobody reads merely keeps a key longer."""
        self._bells = tuple(Bell(self._clock) for _ in range(3))
        ready()
        async with asyncio.TaskGroup() as loops:
            for bell, step in zip(self._bells, (self._renew, self._touch, self._watch), strict=True):
                loops.create_task(self._loop(bell, step))

    async def _loop(self, bell: Bell, step: Callable[[], Awaitable[float | None]]) -> None:
        while True:
            pause = await step()
            await bell.wait(pause)

    def _ring(self) -> None:
        for bell in self._bells:
            bell.ring()

    def _all(self) -> list[Kept]:
        with self._change:
            return list(self._items)

    def _interval(self, ttl: float) -> float:
        return min(self._renew_every, ttl / 3)

    # -- keys ---------------------------------------------------------------------------------------------------------

    async def _renew(self) -> float | None:
        now = self._clock.monotonic()
        items = [item for item in self._all() if not self._ended(item, now)]
        # Take along what is due soon: leases that began apart drift into one call per interval.
        due = [item for item in items if item.renew_at <= now + self._interval(item.lease.grant.ttl) / 4]
        if any(item.renew_at <= now for item in due):
            await self._renew_batch(due)
        return self._pause(item.renew_at for item in items)

    async def _renew_batch(self, items: Sequence[Kept]) -> None:
        asked_at = self._clock.monotonic()
        grants = [item.lease.grant for item in items]
        try:
            answers = await self._leases.renew(grants)
        except BackendUnavailable:
            for item in items:
                item.lease.suspect()
                item.retries += 1
                ttl = item.lease.grant.ttl
                item.renew_at = self._clock.monotonic() + min(ttl / 20 * 2 ** min(item.retries, 5), ttl / 6)
            return
        for item, grant, answer in zip(items, grants, answers, strict=True):
            item.retries = 0
            item.renew_at = asked_at + self._interval(grant.ttl)
            if item.lease.grant is grant:  # an answer vouches only for the generation that it was asked about
                await self._renewed(item, grant, answer, asked_at=asked_at)

    async def _renewed(self, item: Kept, grant: Grant, answer: Renewal, *, asked_at: float) -> None:
        lease = item.lease
        match answer:
            case Renewal.KEPT:
                lease.extend(asked_at + grant.ttl - self.margin(grant.ttl))
            case Renewal.REVOKED:
                lease.lose(StopReason.REVOKED)
            case Renewal.FOREIGN:
                lease.lose(StopReason.LEASE_LOST)
            case Renewal.ABSENT if item.vouch is not None and lease.stopping is None:
                await self._regrant(item, grant)
            case Renewal.ABSENT:
                lease.lose(StopReason.LEASE_LOST)

    async def _regrant(self, item: Kept, grant: Grant) -> None:
        # The lock service lost its data; the record in the database still vouches, so the same owner may take its keys again.
        asked_at = self._clock.monotonic()
        try:
            answer = await self._leases.acquire(grant.keys, owner=grant.owner, ttl=grant.ttl)
        except BackendUnavailable:
            item.lease.suspect()
            item.renew_at = asked_at + grant.ttl / 20
            return
        if isinstance(answer, Grant):
            item.lease.regrant(answer)
            item.lease.extend(asked_at + grant.ttl - self.margin(grant.ttl))
            if item not in self._all():  # removed while we asked: give back what nobody will release
                await self._leases.release(answer)
        else:
            item.lease.lose(StopReason.LEASE_LOST)

    # -- records ------------------------------------------------------------------------------------------------------

    async def _touch(self) -> float | None:
        now = self._clock.monotonic()
        items = [(item, item.vouch) for item in self._all() if item.vouch is not None and not self._ended(item, now)]
        due = [(item, vouch) for item, vouch in items if item.touch_at <= now + self._touch_every / 4]
        if any(item.touch_at <= now for item, _ in due):
            for item, _ in due:
                item.touch_at = now + self._touch_every
            try:
                answers = await self._records.touch([vouch for _, vouch in due])
            except BackendUnavailable:
                for item, _ in due:
                    item.touch_at = self._clock.monotonic() + self._touch_every / 4
            else:
                for (item, vouch), record in zip(due, answers, strict=True):
                    self._touched(item, vouch, record, asked_at=now)
        return self._pause(item.touch_at for item, _ in items)

    def _touched(self, item: Kept, vouch: Vouch, record: Record | None, *, asked_at: float) -> None:
        if record is None:
            item.lease.extend(asked_at + vouch.ttl - self.margin(vouch.ttl))
        elif record.status is Status.STOPPED and record.reason is not None:
            item.lease.stop(record.reason)
            item.vouch = None  # ended: nothing to vouch for; the keys stay until the work has really ended
        elif item in self._all():
            item.vouch = None
            item.lease.lose(StopReason.LEASE_LOST)

    # -- deadlines ----------------------------------------------------------------------------------------------------

    async def _watch(self) -> float | None:
        now = self._clock.monotonic()
        instants: list[float] = []
        for item in self._all():
            lease = item.lease
            if lease.limit_at is not None and now >= lease.limit_at:
                lease.stop(StopReason.RUN_LIMIT)
                self.remove(item)  # no renewal past the run limit
            elif now >= lease.deadline:
                lease.lose(StopReason.LEASE_LOST)
            else:
                instants += [lease.deadline] if lease.limit_at is None else [lease.deadline, lease.limit_at]
        return self._pause(instants)

    def _ended(self, item: Kept, now: float) -> bool:
        limit_at = item.lease.limit_at
        return item.lease.state in ("lost", "released") or (limit_at is not None and now >= limit_at)

    def _pause(self, instants: Any) -> float | None:
        now = self._clock.monotonic()
        earliest = min(instants, default=None)
        return None if earliest is None else max(earliest - now, 0.001)


class KeeperHost:
    """Where the keeper runs: a thread with a loop of its own, or (simulation, moved clocks) the application's loop."""

    def __init__(self, keeper: Keeper, *, on: Literal["thread", "loop"]) -> None:
        self.keeper = keeper
        self._on = on
        self._stop: Callable[[], object] = lambda: None
        self._task: asyncio.Task[None] | None = None
        self._over: asyncio.Future[None] | None = None
        self._stopping = False

    async def start(self, spawn: Callable[..., asyncio.Task[None]]) -> None:
        """Return once the keeper listens; cancelled before that, it is stopped again."""
        loop = asyncio.get_running_loop()
        ready = loop.create_future()

        def is_ready() -> None:
            loop.call_soon_threadsafe(wake, ready)

        if self._on == "loop":
            self._task = spawn(self.keeper.run(is_ready), name="keeper")
            self._stop = self._task.cancel
        else:
            over = self._over = loop.create_future()

            def is_over() -> None:
                loop.call_soon_threadsafe(wake, over)

            serve = threading.Thread(target=self._serve, args=(is_ready, is_over), name="oneturn-keeper", daemon=True)
            serve.start()
        try:
            await ready
        except BaseException:
            await self.stop()
            raise

    def _serve(self, is_ready: Callable[[], None], is_over: Callable[[], None]) -> None:
        async def main() -> None:
            task, loop = asyncio.current_task(), asyncio.get_running_loop()
            assert task is not None  # noqa: S101 - a running coroutine has a task
            self._stop = lambda: loop.call_soon_threadsafe(task.cancel)
            if self._stopping:  # told before there was anything to stop
                return
            await self.keeper.run(is_ready)

        try:
            asyncio.run(main())
        except asyncio.CancelledError:
            return
        except BaseException:
            logger.exception("the keeper died: leases of this process will lapse")
        finally:
            is_over()

    async def stop(self) -> None:
        """End it and wait for its end."""
        self._stopping = True
        with contextlib.suppress(RuntimeError):  # its loop has ended by itself
            self._stop()
        if self._over is not None:
            await asyncio.shield(self._over)
        elif self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)
