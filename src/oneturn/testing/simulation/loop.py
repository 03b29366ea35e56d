"""The seeded event loop: time is virtual, and which ready step runs next is drawn from the seed."""

from __future__ import annotations

import asyncio
import heapq
import random
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

HOST: ContextVar[str] = ContextVar("oneturn.simulated_host", default="")
"""The host that the running code belongs to; "" is the outside world, which is never paused."""


class Stuck(Exception):
    """Nothing is ready and nothing is scheduled: whoever still waits would wait for ever."""


class _NoFiles:
    """Stands where a selector would: nothing here is a file."""

    def select(self, _: float | None) -> list[Any]:
        return []


class SimulatedLoop(asyncio.BaseEventLoop):
    """Runs one ready handle at a time, drawn from the seed among the hosts that are not paused."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.random = random.Random(seed)  # noqa: S311 - reproducible on purpose
        self._now = 0.0
        self._selector = _NoFiles()
        self._paused: dict[str, None] = {}
        self.steps = 0

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._now

    def pause(self, host: str) -> None:
        """Run nothing of this host until `resume`: a stopped process, a long collection, a suspended machine."""
        self._paused[host] = None

    def resume(self, host: str) -> None:
        """See `pause`."""
        self._paused.pop(host, None)

    # -- what BaseEventLoop leaves to its children --------------------------------------------------------------------

    def _process_events(self, event_list: Any) -> None:  # noqa: ARG002 - there are none
        return

    def _write_to_self(self) -> None:
        return

    def _run_once(self) -> None:
        self._move_due_timers()
        index = self._choose()
        if index is None:
            while self._scheduled and self._scheduled[0]._cancelled:  # type: ignore[attr-defined]  # noqa: SLF001
                heapq.heappop(self._scheduled)  # type: ignore[attr-defined]
            if not self._scheduled:  # type: ignore[attr-defined]
                raise Stuck
            self._now = max(self._now, self._scheduled[0]._when)  # type: ignore[attr-defined]  # noqa: SLF001
            return
        ready = self._ready  # type: ignore[attr-defined]
        handle = ready[index]
        del ready[index]
        self.steps += 1
        if not handle._cancelled:  # noqa: SLF001 - as BaseEventLoop does
            handle._run()  # noqa: SLF001

    def _move_due_timers(self) -> None:
        scheduled = self._scheduled  # type: ignore[attr-defined]
        while scheduled and scheduled[0]._when <= self._now:  # noqa: SLF001
            handle = heapq.heappop(scheduled)
            handle._scheduled = False  # noqa: SLF001
            self._ready.append(handle)  # type: ignore[attr-defined]

    def _choose(self) -> int | None:
        ready = self._ready  # type: ignore[attr-defined]
        if not self._paused:
            return self.random.randrange(len(ready)) if ready else None
        able = [place for place, handle in enumerate(ready) if handle._context.get(HOST) not in self._paused]  # noqa: SLF001
        return self.random.choice(able) if able else None


class LoopClock:
    """The loop's time as a `Clock`; the wall clock may be stepped."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self._loop = loop
        self.offset = 1_800_000_000.0

    def monotonic(self) -> float:
        """See `Clock.monotonic`."""
        return self._loop.time()

    def wall(self) -> float:
        """See `Clock.wall`."""
        return self._loop.time() + self.offset

    async def sleep(self, seconds: float) -> None:
        """See `Clock.sleep`."""
        await asyncio.sleep(seconds)

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Callable[[], None]:
        """See `Clock.call_later`."""
        return self._loop.call_later(max(seconds, 0.0), callback).cancel
