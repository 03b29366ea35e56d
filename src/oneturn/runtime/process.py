"""What the parts of one process share: ports, clock, tasks, running executions; and the steps that several of them take."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

from oneturn.core.backend import Backend
from oneturn.core.clock import Clock
from oneturn.core.decision import DecisionLog
from oneturn.core.errors import BackendUnavailable, ConfigurationError
from oneturn.core.failpoint import failpoint
from oneturn.core.identity import QUEUE_TOPIC, Identity, scope_topic, stop_topic, turn_topic
from oneturn.core.ids import Ids
from oneturn.core.lease import Grant, Held
from oneturn.core.record import Record
from oneturn.core.status import StopReason
from oneturn.core.steps import Claimed, Lapsed, Stop, Vouch
from oneturn.core.store import TransactionalRecords
from oneturn.runtime.execution import Execution
from oneturn.runtime.handler import Handler
from oneturn.runtime.keeper import Keeper, Kept
from oneturn.runtime.lease import Lease
from oneturn.runtime.pool import Threads, WorkerPool, real_threads
from oneturn.runtime.settings import Settings
from oneturn.runtime.supervisor import Supervisor

T = TypeVar("T")


class Process:
    """One process's share of the system. `records` and `leases` may come from two backends."""

    def __init__(
        self,
        *,
        settings: Settings,
        records: Backend,
        leases: Backend,
        clock: Clock,
        ids: Ids,
        decisions: DecisionLog,
        threads: Threads = real_threads,
    ) -> None:
        self.settings = settings
        self.clock = clock
        self.ids = ids
        self.backend = records
        self.records = records.records
        self.leases = leases.leases
        self.signals = leases.signals
        self.replays = leases.replay
        self.supervisor = Supervisor()
        self.keeper = Keeper(
            leases=self.leases,
            records=self.records,
            clock=clock,
            renew_every=settings.renew_every,
            check_every=settings.check_every,
            margin=settings.margin,
        )
        self.pool = WorkerPool(settings.worker_threads, threads=threads)
        self.handlers: dict[str, Handler] = {}
        self.executions: dict[str, Execution] = {}
        self.accepting = True
        self.stopping: StopReason | None = None
        """Once set, whatever is started is told at once."""
        self.closed = False
        self._decisions = decisions

    def transactional(self) -> TransactionalRecords:
        """The steps for an application's own transaction, or a sentence that says why there are none."""
        if self.backend.transactional is None:
            raise ConfigurationError(
                f"the backend {self.backend.name!r} keeps records outside of any database of yours: turn.fence and "
                "gate.ask(session=…) need records in the database of the session, such as sqlite:///app.db"
            )
        return self.backend.transactional

    def refuse_closed(self) -> None:
        """BackendUnavailable for whoever waits here after the gate was closed: nothing will be heard here any more."""
        if self.closed:
            raise BackendUnavailable(
                "this gate was closed while the turn was watched: it may have ended, or go on elsewhere; ask an open gate"
            )

    # -- leases -------------------------------------------------------------------------------------------------------

    async def acquire(self, identity: Identity, *, owner: str, run_limit: float) -> tuple[Lease, Kept] | Held:
        """Lease the request key and, if it is free, the scope key in the same step. `Held`: the request key is somebody's.

        A scope key in other hands is no refusal: busy is a fact of the record, and the claim decides it.
        """
        request, scope = identity.request_lock(), identity.scope_lock()
        answer = await self._acquire((request, scope), owner=owner, run_limit=run_limit)
        if isinstance(answer, Held) and answer.key == scope:
            answer = await self._acquire((request,), owner=owner, run_limit=run_limit)
        return answer

    async def _acquire(self, keys: tuple[str, ...], *, owner: str, run_limit: float) -> tuple[Lease, Kept] | Held:
        # Cancelled on the way, the outcome is learnt all the same, and then given back: a hasty release could overtake the
        # acquire that it should undo.
        left = asyncio.Event()
        taking = self.supervisor.spawn(
            self._take(keys, owner=owner, run_limit=run_limit, left=left),
            name=f"acquire {owner}",
            judged=True,
            whole=True,
        )
        try:
            return await asyncio.shield(taking)
        except asyncio.CancelledError:
            left.set()
            if taking.done() and not taking.cancelled() and taking.exception() is None:
                got = taking.result()  # it had come, but not been heard of
                if not isinstance(got, Held):
                    self.supervisor.spawn(self.give_back(*got), name=f"give back {owner}", whole=True)
            raise

    async def _take(
        self, keys: tuple[str, ...], *, owner: str, run_limit: float, left: asyncio.Event
    ) -> tuple[Lease, Kept] | Held:
        asked_at, ttl = self.clock.monotonic(), self.settings.ttl
        answer = await self.persistently(
            lambda: self.leases.acquire(keys, owner=owner, ttl=ttl), bound=self.settings.check_every
        )
        if isinstance(answer, Held):
            return answer
        lease = self.leased(answer, asked_at=asked_at, limit_at=asked_at + run_limit)
        kept = self.keeper.add(lease)
        if left.is_set():
            await self.give_back(lease, kept)
        return lease, kept

    def leased(self, grant: Grant, *, asked_at: float, limit_at: float | None) -> Lease:
        """A grant as a lease: counted from before the request left, so that our deadline can only be early."""
        deadline = asked_at + grant.ttl - self.keeper.margin(grant.ttl)
        return Lease(grant, deadline=deadline, clock=self.clock, limit_at=limit_at)

    async def give_back(self, lease: Lease, kept: Kept) -> None:
        """Nothing was started with it."""
        self.keeper.remove(kept)
        await self.release(lease)

    async def release(self, lease: Lease) -> None:
        """Free its keys; a store that is away frees them by their TTL."""
        lease.released()
        try:
            await self._release(lease)
        except asyncio.CancelledError:
            # It may not have happened. Once more, by itself: a key that is somebody else's by now is not touched.
            self.supervisor.spawn(self._release(lease), name=f"release {lease.grant.owner}", whole=True)
            raise

    async def _release(self, lease: Lease) -> None:
        try:
            await self.persistently(lambda: self.leases.release(lease.grant), bound=lease.grant.ttl / 2)
        except BackendUnavailable:
            self._decisions.write("release unknown", detail_owner=lease.grant.owner)
        for key in lease.grant.keys:
            self.signals.publish(key)

    async def request_key_held(self, record: Record) -> bool:
        """Whether the lock service still vouches for a record; without an answer `alive_until` decides alone."""
        try:
            holding = await self.leases.inspect(record.identity.request_lock())
        except BackendUnavailable:
            return False
        return holding is not None and holding.owner == record.owner

    async def precede(self, step: Callable[[str | None, str | None], Awaitable[T | Lapsed]]) -> tuple[float, T]:
        """Take a step `(dead, alive)` that may meet a lapsed record: see whether its request key is held, and say so.

        Answers (the instant before the first try was sent, its answer): any try may be the one that was applied, however
        late it arrived, and those after it are only told so.
        """
        dead: str | None = None
        alive: str | None = None
        asked_at = self.clock.monotonic()
        while True:
            # Only a write under the row's lock settles an unknown step: the same owner is told the same again.
            answer = await self.persistently(partial(step, dead, alive), bound=self.settings.check_every)
            await failpoint("process.preceded")
            if not isinstance(answer, Lapsed):
                return asked_at, answer
            if await self.request_key_held(answer.record):
                dead, alive = None, answer.record.id
            else:
                dead, alive = answer.record.id, None

    # -- executions ---------------------------------------------------------------------------------------------------

    def execute(self, claimed: Claimed, *, lease: Lease, kept: Kept, claimed_at: float) -> Execution:
        """Start the work of a claimed record; it is observed until its real end."""
        record = claimed.record
        vouch = Vouch(tenant=record.identity.tenant, id=record.id, epoch=record.epoch or 0, ttl=self.settings.ttl)
        self.keeper.vouch(kept, vouch, asked_at=claimed_at)
        if self.stopping is not None:
            lease.stop(self.stopping)
        execution = Execution(claimed, handler=self.handlers.get(record.handler), lease=lease, kept=kept, process=self)
        self.executions[record.id] = execution
        self.decide("started", record, handler=record.handler, attempt=record.attempt)
        task = self.supervisor.spawn(execution.run(), name=f"observer {record.id}")
        task.add_done_callback(lambda _: self._over(record, execution, kept))
        self.announce(record)
        return execution

    def _over(self, record: Record, execution: Execution, kept: Kept) -> None:
        if not execution.observed:  # cancelled before its first step, which would have given its keys back
            self.supervisor.spawn(self.give_back(execution.lease, kept), name=f"give back {record.id}", whole=True)
        if self.executions.get(record.id) is execution:
            del self.executions[record.id]

    async def ended(self, record: Record) -> None:
        """A record became final: cache it, tell everybody. The commit came first; a lost copy or signal loses nothing."""
        await self.remember(record)
        self.announce(record)
        self.signals.publish(QUEUE_TOPIC)

    async def remember(self, record: Record) -> None:
        """Put a final record into the replay cache, best effort."""
        ttl = self.settings.keep_replays
        if ttl > 0 and not record.expired:
            await failpoint("cache.put.before")
            try:
                await self.replays.put(record, ttl=ttl)
            except BackendUnavailable:
                return

    async def stop_record(self, record: Record, reason: StopReason) -> Record | None:
        """End a record from outside, wherever it runs; answers how it stands then.

        A caller that is cancelled leaves a stop that goes on: its end must be told, or the work would learn of it late.
        """
        return await self.supervisor.finish(self._stop_record(record, reason), name=f"stop {record.id}")

    async def _stop_record(self, record: Record, reason: StopReason) -> Record | None:
        step = Stop(tenant=record.identity.tenant, id=record.id, reason=reason)
        answer = await self.persistently(lambda: self.records.stop(step), bound=self.settings.check_every)
        after = answer.record
        if after is not None:
            self.decide("stop", after, reason=reason.value)
            self.signals.publish(stop_topic(record.id))
            await self.ended(after)
        return after

    # -- telling ------------------------------------------------------------------------------------------------------

    def announce(self, record: Record) -> None:
        """Something about this record changed."""
        identity = record.identity
        self.signals.publish(identity.topic())
        self.signals.publish(turn_topic(record.id))
        self.signals.publish(scope_topic(tenant=identity.tenant, scope=identity.scope))

    def announce_events(self, record: Record) -> None:
        """Its log has grown."""
        self.signals.publish(turn_topic(record.id))
        self.signals.publish(scope_topic(tenant=record.identity.tenant, scope=record.identity.scope))

    def decide(self, event: str, record: Record, **detail: Any) -> None:
        """Write one line of the decision log about a record."""
        self._decisions.write(
            event,
            tenant=record.identity.tenant,
            scope=record.identity.scope,
            key=record.identity.key,
            execution=record.id,
            epoch=record.epoch,
            **detail,
        )

    # -- unknown outcomes ---------------------------------------------------------------------------------------------

    async def persistently(self, step: Callable[[], Awaitable[T]], *, bound: float | None = None) -> T:
        """Repeat a step while its outcome is unknown: every step of the ports answers the truth when it is repeated.

        Ours is the only retry. After `bound` seconds (default: the hard deadline after a drain began, else for ever) the
        last `BackendUnavailable` is raised.
        """
        began, tries = self.clock.monotonic(), 0
        while True:
            try:
                return await step()
            except BackendUnavailable:
                tries += 1
                waited = self.clock.monotonic() - began
                if bound is not None and waited >= bound:
                    raise
                pause = min(0.05 * 2 ** min(tries, 6), 2.0) * (0.5 + self.ids.jitter())
                await self.clock.sleep(pause if bound is None else min(pause, max(bound - waited, 0.001)))
