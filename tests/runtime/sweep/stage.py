"""The stage: one process of the real library in virtual time, what it may hold, and the check that nothing else is left."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from virtual_time import Time, VirtualLoop

from asking import Ask
from oneturn import Handle, Principal, Settings, Turn
from oneturn.core.backend import Backend
from oneturn.core.decision import Decision
from oneturn.core.errors import BackendUnavailable
from oneturn.core.identity import Identity, scope_lock
from oneturn.core.ids import SeededIds
from oneturn.core.lease import Held
from oneturn.core.record import Record
from oneturn.core.status import Status
from oneturn.core.steps import Claimed, Vouch
from oneturn.gate import Gate
from oneturn.runtime.admission import Asked, claim_of
from oneturn.runtime.execution import Execution
from oneturn.runtime.keeper import Kept
from oneturn.runtime.lease import Lease
from oneturn.runtime.process import Process

SETTINGS = Settings(records="memory://", grace=1, hard_deadline=5)
STORES = ("leases.", "records.", "replay.")
OVER = SETTINGS.ttl + SETTINGS.renew_every + SETTINGS.margin + SETTINGS.sweep_every + 3 * SETTINGS.check_every
"""By then the record of a dead executor is final."""


async def _nothing() -> None:
    return


class Stage:
    """One scope, one gate, and the handlers `quick`, `held` (until `go`) and `threaded`."""

    def __init__(self, time: Time, backend: Backend, *, number: int, settings: Settings = SETTINGS) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        self.loop = loop
        self.time = time
        self.number = number
        self.scope = f"c{number}"
        self.settings = settings
        self.principal = Principal(tenant="acme", subject="ada")
        self.backend = replace(backend, close=_nothing)
        self.ids = SeededIds(number)
        self.decisions: list[Decision] = []
        self.go = asyncio.Event()
        self.turns: dict[str, Turn[Ask]] = {}
        self.keys = {"fresh"}
        self.losing = 0
        self.mine: set[str] = set()
        """Owners of what the scenario itself holds until it is put away."""
        self.gates: list[Gate] = []
        self.afterwards: list[Callable[[Any], Awaitable[object]]] = []
        """Called once all has settled, with what the call answered, or None if it was cancelled."""
        self.at_once: list[Callable[[], Awaitable[object]]] = []
        """Called right after the call ended."""
        self.put_away: list[Callable[[], Awaitable[object]]] = []
        """Called before the end in any case: what the scenario itself holds."""
        self.gate = self.another_gate()
        loop.barriers.append(self._until_threads_have_said_it)

    # -- putting up ---------------------------------------------------------------------------------------------------

    def another_gate(self) -> Gate:
        gate = Gate(
            self.settings,
            backend=self.backend,
            clock=self.time,
            ids=self.ids,
            decisions=self.decisions.append,
            keeper_on="loop",
        )

        async def quick(turn: Turn[Ask]) -> str:
            await turn.history()
            turn.text("half")
            await turn.flush()
            turn.text(" an answer")
            return turn.payload.text

        async def held(turn: Turn[Ask]) -> str:
            self.turns[turn.key] = turn
            await self.go.wait()
            return turn.payload.text

        def threaded(turn: Turn[Ask]) -> str:
            turn.text("from a thread")
            return turn.payload.text

        for handler in (quick, held, threaded):
            gate.turn(handler.__name__)(handler)
        self.gates.append(gate)
        return gate

    async def opened_gate(self) -> Gate:
        """One more process, closed at the end."""
        gate = self.another_gate()
        await gate.__aenter__()
        return gate

    @property
    def process(self) -> Process:
        return self.gate.engine.process

    def identity(self, key: str) -> Identity:
        self.keys.add(key)
        return Identity(tenant="acme", subject="ada", scope=self.scope, key=key)

    def asked(self, handler: str, key: str) -> Asked:
        self.keys.add(key)
        engine = self.gate.engine
        sent = {"text": key}
        return engine.asked(
            self.process.handlers[handler],
            payload=b'{"text": "%s"}' % key.encode(),
            sent=sent,
            conversation=self.scope,
            key=key,
            principal=self.principal,
            on_busy=None,
            regenerate=None,
        )

    async def ask(self, handler: str, key: str, *, gate: Gate | None = None, session: Any = None) -> Handle[Any]:
        self.keys.add(key)
        gate = gate or self.gate
        function = gate.engine.process.handlers[handler].function
        return await gate.ask(
            function, Ask(text=key), conversation=self.scope, key=key, principal=self.principal, session=session
        )

    async def running(self, key: str, *, gate: Gate | None = None) -> Handle[Any]:
        """A turn whose handler waits for `go`."""
        handle = await self.ask("held", key, gate=gate)
        while key not in self.turns:  # noqa: ASYNC110 - virtual time
            await asyncio.sleep(0.01)
        return handle

    async def ended(self, key: str, *, handler: str = "quick") -> Record:
        handle = await self.ask(handler, key)
        await handle.result()
        await asyncio.sleep(0.5)
        record = await self.process.records.read(tenant="acme", id=handle.id)
        assert record is not None
        return record

    async def leased(self, key: str) -> tuple[Lease, Kept]:
        got = await self.process.acquire(self.identity(key), owner=self.ids.new(), run_limit=600)
        assert not isinstance(got, Held)
        return got

    async def claimed(self, key: str, *, handler: str = "quick") -> tuple[Claimed, Lease, Kept]:
        """A record that runs as far as the database knows, and nobody who works on it yet."""
        lease, kept = await self.leased(key)
        claim = claim_of(self.asked(handler, key), process=self.process, owner=lease.grant.owner)
        answer = await self.process.records.claim(claim)
        assert isinstance(answer, Claimed)
        return answer, lease, kept

    async def orphan(self, key: str) -> Record:
        """A running record whose executor is gone."""
        answer, lease, kept = await self.claimed(key)
        await self.process.give_back(lease, kept)
        return answer.record

    async def execution(self, key: str, *, handler: str) -> Execution:
        """As `Process.execute`, but nobody has begun to observe it."""
        process = self.process
        asked_at = self.time.monotonic()
        answer, lease, kept = await self.claimed(key, handler=handler)
        record = answer.record
        vouch = Vouch(tenant="acme", id=record.id, epoch=record.epoch or 0, ttl=self.settings.ttl)
        process.keeper.vouch(kept, vouch, asked_at=asked_at)
        return Execution(answer, handler=process.handlers[handler], lease=lease, kept=kept, process=process)

    def soon(self, action: Callable[[], object], seconds: float = 0.5) -> None:
        self.loop.call_later(seconds, action)

    def _until_threads_have_said_it(self, _: VirtualLoop) -> None:
        for gate in self.gates:
            while gate.running and gate.engine.process.pool._free < self.settings.worker_threads:
                self.loop.woken.clear()
                if self.loop.ready:
                    return
                self.loop.woken.wait(0.01)

    # -- weather ------------------------------------------------------------------------------------------------------

    async def failpoint(self, name: str) -> None:
        """One real suspension at every boundary: before a store applies a step, between that and its answer, and elsewhere."""
        await asyncio.sleep(0)
        if self.losing and name.startswith(STORES):
            self.losing -= 1
            raise BackendUnavailable(f"lost at {name}")

    def heal(self) -> None:
        self.losing = 0

    # -- what is there ------------------------------------------------------------------------------------------------

    async def held_by(self) -> dict[str, str]:
        """Key → owner, of every key that this scope may have taken."""
        names = [scope_lock(tenant="acme", scope=self.scope)]
        names += [self.identity(key).request_lock() for key in sorted(self.keys)]
        found = [await self.backend.leases.inspect(name) for name in names]
        return {holding.key: holding.owner for holding in found if holding is not None}

    async def records(self) -> list[Record]:
        return await self.backend.records.turns(tenant="acme", scope=self.scope, limit=1000)

    def topics(self) -> frozenset[str]:
        signals: Any = self.backend.signals
        return frozenset(getattr(signals, "_here", signals).topics)

    async def working(self) -> set[str]:
        """Owners of the leases of executions that still run here, as the database says, too."""
        processes = [gate.engine.process for gate in self.gates if gate.running]
        running = {record.id for record in await self.records() if record.status is Status.RUNNING}
        return self.mine | {
            execution.lease.grant.owner
            for process in processes
            for execution in process.executions.values()
            if execution.record.id in running
        }

    async def no_key_of_the_dead(self) -> None:
        held = await self.held_by()
        assert set(held.values()) <= await self.working(), f"a lease outlived its execution: {held}"

    async def all_final(self) -> None:
        """Every admitted record has one final state and one terminal event."""
        until = self.time.now + OVER
        while any(not record.status.final for record in await self.records()) and self.time.now < until:  # noqa: ASYNC110 - virtual time
            await asyncio.sleep(1)
        for record in await self.records():
            assert record.status.final, f"{record.identity.key} is still {record.status.value}"
            if record.expired:
                continue
            log = await self.backend.records.events(tenant="acme", id=record.id, after=0)
            assert [event.seq for event in log] == list(range(1, len(log) + 1))
            assert [event.terminal for event in log] == [False] * (len(log) - 1) + [True]

    async def a_fresh_question_is_answered(self) -> None:
        handle = await self.ask("quick", "fresh")
        assert await handle.result(wait=10) == "fresh"
        await asyncio.sleep(1)

    async def close(self) -> None:
        for gate in self.gates:
            if gate.running:
                await gate.__aexit__(None, None, None)

    async def nothing_is_left(self, before: set[asyncio.Task[Any]], *, unfinished: bool) -> None:
        """After the close: no key, no task, no subscription; `unfinished`: whether a running record may be."""
        await asyncio.sleep(1)
        assert await self.held_by() == {}, "a lease outlived its process"
        assert asyncio.all_tasks() - before == set(), "a task outlived its process"
        assert self.topics() == frozenset(), "a subscription outlived its process"
        running = [record.identity.key for record in await self.records() if record.status is Status.RUNNING]
        assert unfinished or not running, f"left unfinished: {running}"


class Baseline:
    """What a process holds while it does nothing."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._tasks = asyncio.all_tasks()
        self._owned = stage.process.supervisor.tasks
        self._topics = stage.topics()

    def holds(self) -> None:
        process = self._stage.process
        left = {task.get_name() for task in process.supervisor.tasks - self._owned}
        assert left == set(), f"tasks beyond the baseline: {left}"
        assert asyncio.all_tasks() <= self._tasks, f"beyond: {asyncio.all_tasks() - self._tasks}"
        assert self._stage.topics() == self._topics, f"{self._stage.topics() - self._topics}"
        assert process.pool._free == self._stage.settings.worker_threads
        assert process.executions == {}
        assert not process.keeper._items
