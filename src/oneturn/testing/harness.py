"""The harness: one process after another of the real library, on a shared backend and a clock that tests move."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Self

from oneturn.core.backend import Backend
from oneturn.core.clock import Clock
from oneturn.core.decision import Decision
from oneturn.core.identity import Principal
from oneturn.core.ids import SeededIds
from oneturn.gate import Gate
from oneturn.runtime.settings import Settings
from oneturn.testing.clock import ManualClock
from oneturn.testing.link import Link


class Harness:
    """A test's view of the system: the current process's gate, what was decided, time, and a kill switch."""

    def __init__(self, backend: Backend, *, clock: Clock, settings: Settings | None = None, seed: int = 1) -> None:
        self.clock = clock
        self.principal = Principal(tenant="acme", subject="ada")
        self.decisions: list[Decision] = []
        self.settings = settings or Settings()
        self.backend = backend
        self._ids = SeededIds(seed)
        self._declare: list[Callable[[Gate], object]] = []
        self._others: list[Gate] = []
        self._link = Link(backend)
        self.gate = self._new_gate()

    def _new_gate(self) -> Gate:
        self._link = Link(self.backend)
        gate = Gate(
            self.settings,
            backend=self._link.backend(),
            clock=self.clock,
            ids=self._ids,
            decisions=self.decisions.append,
            keeper_on="loop",
        )
        for declare in self._declare:
            declare(gate)
        return gate

    def turn(self, name: str, **options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """`gate.turn`, for this process and for those that follow it."""

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            def declare(gate: Gate) -> object:
                return gate.turn(name, **options)(function)

            self._declare.append(declare)
            declare(self.gate)
            return function

        return register

    def calls(self, function: Callable[..., Any]) -> int:
        """How often the work of this handler was started, in all processes together."""
        name = self.gate.handler(function).name
        return sum(
            decision.event == "started" and decision.detail.get("handler") == name for decision in self.decisions
        )

    async def another(self) -> Gate:
        """One more live process on the same backend, with the same handlers; closed with the harness."""
        link, gate = self._link, self._new_gate()
        self._link = link
        await gate.__aenter__()
        self._others.append(gate)
        return gate

    async def crash(self) -> None:
        """Kill the current process as `kill -9` would (nothing is released, finished or told) and start a fresh one."""
        dead, process = self.gate, self.gate.engine.process
        self._link.cut = True
        await process.supervisor.close()
        process.pool.close()
        dead.abandon_without_closing()
        self.gate = self._new_gate()
        await self.gate.__aenter__()

    async def elapse(self, seconds: float) -> None:
        """Let time pass, for the process and for the store alike."""
        if not isinstance(self.clock, ManualClock):
            raise TypeError("this harness runs on real time: give it a ManualClock to move")
        await self.clock.advance(seconds)

    async def __aenter__(self) -> Self:
        await self.gate.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        # Closing waits on the clock for work that does not end: let that time pass.
        async with asyncio.TaskGroup() as closing:
            ends = [closing.create_task(gate.__aexit__(*exc)) for gate in (*self._others, self.gate)]
            while isinstance(self.clock, ManualClock) and not all(end.done() for end in ends):
                await self.clock.advance(1)
