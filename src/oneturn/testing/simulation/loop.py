"""The seeded event loop: time is virtual, and which ready step runs next is drawn from the seed."""

from __future__ import annotations

import asyncio
import contextvars
import heapq
import random
import threading
from collections.abc import Callable
from contextvars import Context, ContextVar
from typing import Any, TypeVarTuple

Ts = TypeVarTuple("Ts")

WALL = 1_800_000_000.0
"""What wall clocks say when a run begins, in seconds."""

LANE: ContextVar[str] = ContextVar("oneturn.simulated_lane", default="")
"""Whose code is running: "h0" (a process's event loop), "h0/keeper" or "h0/work" (its threads); "" is the outside world."""


def host_of(lane: str) -> str:
    """The process that a lane belongs to; "" for the outside world, which is never paused."""
    return lane.partition("/")[0]


def lane_context(lane: str) -> Context:
    """A fresh context of this lane."""
    context = contextvars.Context()
    context.run(LANE.set, lane)
    return context


class Stuck(Exception):
    """Nothing is ready and nothing is scheduled: whoever still waits would wait for ever."""


class _NoFiles:
    """Stands where a selector would: nothing here is a file."""

    def select(self, _: float | None) -> list[Any]:
        return []


class SimulatedLoop(asyncio.BaseEventLoop):
    """Runs one ready handle at a time, drawn from the seed among the lanes that are not paused."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._draw = random.Random(seed).random  # noqa: S311 - reproducible on purpose
        self._now = 0.0
        self._selector = _NoFiles()
        self._paused: dict[str, int] = {}
        self._own_thread = threading.get_ident()
        self.borrowed: Context | None = None
        """The context of the worker thread that runs now, while this loop waits for it."""
        self.steps = 0

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._now

    def pause(self, *lanes: str) -> None:
        """Run nothing of these lanes until each was resumed as often as it was paused."""
        for lane in lanes:
            self._paused[lane] = self._paused.get(lane, 0) + 1

    def resume(self, *lanes: str) -> None:
        """See `pause`."""
        for lane in lanes:
            if self._paused.get(lane, 0) > 1:
                self._paused[lane] -= 1
            else:
                self._paused.pop(lane, None)

    def create_task(self, coro: Any, *, name: object = None, context: Context | None = None) -> asyncio.Task[Any]:
        """As ever; a process's keeper gets a lane of its own, as it has a thread of its own in production."""
        if name == "keeper" and context is not None:
            context.run(LANE.set, f"{context.get(LANE, '')}/keeper")
        return super().create_task(coro, name=name, context=context)

    def call_soon_threadsafe(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        """As ever; what a worker thread calls belongs to that thread's lane."""
        if context is None and threading.get_ident() != self._own_thread:
            context = self.borrowed
        return super().call_soon(callback, *args, context=context)

    def host(self) -> str:
        """The process whose code is running now, on its loop or in one of its threads."""
        lane = LANE.get() if self.borrowed is None else self.borrowed.get(LANE, "")
        return host_of(lane)

    # -- what BaseEventLoop leaves to its children --------------------------------------------------------------------

    def _process_events(self, event_list: Any) -> None:  # noqa: ARG002 - there are none
        return

    def _write_to_self(self) -> None:
        return

    def _run_once(self) -> None:
        ready, scheduled = self._ready, self._scheduled  # type: ignore[attr-defined]
        while scheduled and (scheduled[0]._cancelled or scheduled[0]._when <= self._now):  # noqa: SLF001
            handle = heapq.heappop(scheduled)
            handle._scheduled = False  # noqa: SLF001 - as BaseEventLoop does
            if not handle._cancelled:  # noqa: SLF001
                ready.append(handle)
        index = self._choose(ready)
        if index is None:
            if not scheduled:
                raise Stuck
            self._now = max(self._now, scheduled[0]._when)  # noqa: SLF001
            return
        handle = ready[index]
        del ready[index]
        self.steps += 1
        if not handle._cancelled:  # noqa: SLF001
            handle._run()  # noqa: SLF001

    def _choose(self, ready: Any) -> int | None:
        if not self._paused:
            return int(self._draw() * len(ready)) if ready else None
        able = [place for place, handle in enumerate(ready) if handle._context.get(LANE, "") not in self._paused]  # noqa: SLF001
        return able[int(self._draw() * len(able))] if able else None


class LoopClock:
    """The loop's time as a `Clock`; `offset` and `wall_offset` may be stepped, as a server's clock is."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self._loop = loop
        self.offset = 0.0
        self.wall_offset = WALL

    def monotonic(self) -> float:
        """See `Clock.monotonic`."""
        return self._loop._now + self.offset  # noqa: SLF001 - asked some hundred times a step

    def wall(self) -> float:
        """See `Clock.wall`."""
        return self._loop.time() + self.wall_offset

    async def sleep(self, seconds: float) -> None:
        """See `Clock.sleep`."""
        await asyncio.sleep(seconds)

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Callable[[], None]:
        """See `Clock.call_later`."""
        return self._loop.call_later(max(seconds, 0.0), callback).cancel
