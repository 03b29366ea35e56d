"""A simulated process: a gate of the real library behind a wire, with lanes that can be paused, and requests that can drop."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from oneturn.core.decision import Decision
from oneturn.gate import Gate
from oneturn.runtime.process import Process
from oneturn.runtime.waiting import wake
from oneturn.testing.evidence import Left
from oneturn.testing.simulation.loop import LoopClock, lane_context
from oneturn.testing.simulation.network import Wire
from oneturn.testing.simulation.threads import SimulatedThreads

if TYPE_CHECKING:
    from oneturn.testing.simulation.world import World

T = TypeVar("T")


class Dropped(Exception):
    """The connection to the process is gone: it died, it closed, or the client left."""


class Host:
    """One process."""

    def __init__(self, world: World, name: str) -> None:
        self.name = name
        self.alive = True
        self.open = False
        self._world = world
        self._context = lane_context(name)
        self._requests: dict[asyncio.Task[Any], asyncio.Future[Any]] = {}
        self._threads: list[SimulatedThreads] = []
        self.wire = Wire(
            name, servers=world.servers, loop=world.loop, weather=world.weather, boundary=world.nemesis.boundary
        )
        self.gate = Gate(
            world.settings,
            backend=self.wire.backend(),
            clock=LoopClock(world.loop),
            ids=world.ids,
            decisions=self._decided,
            keeper_on="loop",
            threads=self._new_threads,
        )

    def _new_threads(self, _: int) -> SimulatedThreads:
        # How many jobs run at once is the pool's business.
        made = SimulatedThreads(self._world.loop, self.name, self._world.stream(f"threads {self.name}"))
        self._threads.append(made)
        return made

    def _decided(self, decision: Decision) -> None:
        if self.alive:
            self._world.evidence.decisions.append(decision)

    @property
    def lanes(self) -> tuple[str, str, str]:
        """Its event loop, its keeper's thread, its worker threads."""
        return self.name, f"{self.name}/keeper", f"{self.name}/work"

    @property
    def process(self) -> Process:
        """The runtime within; only while it is open."""
        return self.gate.engine.process

    def spawn(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run something in this process."""
        return self._world.loop.create_task(work, context=self._context.copy())

    async def start(self) -> None:
        """Begin: from here on it takes requests."""
        await self.spawn(self.gate.__aenter__())
        self.open = True

    async def request(self, work: Coroutine[Any, Any, T], *, patience: float) -> T:
        """A request to this process, from outside. `Dropped` if it dies, or after `patience` seconds: the client leaves."""
        if not self.alive:
            work.close()
            raise Dropped
        task = self.spawn(work)
        over: asyncio.Future[None] = self._world.loop.create_future()
        self._requests[task] = over
        task.add_done_callback(lambda _: wake(over))
        try:
            async with asyncio.timeout(patience):
                await over
            if not task.done() or task.cancelled():
                raise Dropped
            return task.result()
        except TimeoutError as error:
            raise Dropped from error
        finally:
            task.cancel()
            self._requests.pop(task, None)

    async def kill(self) -> None:
        """As `kill -9`: not one more step of it is taken, what it had sent still arrives."""
        if not self.alive:
            return
        self.alive = self.open = False
        self.cut_off()
        self._hang_up()
        if self.gate.running:
            await self.process.supervisor.close()
            self.process.pool.close()

    def cut_off(self) -> None:
        """Nothing that it asks is answered any more, and its threads are gone."""
        self.wire.cut = True
        self._world.loop.resume(*self.lanes)
        for threads in self._threads:
            threads.kill()

    async def drain(self) -> list[Left]:
        """As SIGTERM: close the gate, then say what is left of this process."""
        if not self.alive or not self.open:
            return []
        self.open = False
        process = self.process
        closing = self.spawn(self.gate.__aexit__(None, None, None))
        await asyncio.wait([closing])
        if not self.alive:
            return []
        closing.result()
        left = [Left(what="task", name=task.get_name(), where=self.name, when="drained") for task in _open(process)]
        left += [Left(what="execution", name=turn, where=self.name, when="drained") for turn in process.executions]
        left += self._slots_left(process)
        self._hang_up()
        return left

    def _slots_left(self, process: Process) -> list[Left]:
        """Places of the pool that no job takes, and that nobody gave back."""
        taken = self._world.settings.worker_threads - process.pool._free  # noqa: SLF001 - no other way to see it
        lost = taken - sum(threads.jobs + threads.dropped for threads in self._threads)
        return [Left(what="thread", name=f"{lost} slots", where=self.name, when="closed")] if lost > 0 else []

    def threads_left(self) -> list[Left]:
        """Jobs of worker threads that never ended."""
        jobs = sum(threads.jobs for threads in self._threads)
        return [Left(what="thread", name=f"{jobs} jobs", where=self.name, when="closed")] if jobs else []

    def _hang_up(self) -> None:
        for task, over in tuple(self._requests.items()):
            task.cancel()
            wake(over)


def _open(process: Process) -> list[asyncio.Task[Any]]:
    return sorted((task for task in process.supervisor.tasks if not task.done()), key=lambda task: task.get_name())
