"""A clock that only a test moves."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import threading
from collections.abc import Callable


class ManualClock:
    """Implements `oneturn.core.clock.Clock`: time stands still until `advance`."""

    def __init__(self, *, monotonic: float = 1000.0, wall: float = 1_800_000_000.0) -> None:
        self._now = monotonic
        self._wall_offset = wall - monotonic
        self._timers: list[tuple[float, int, asyncio.AbstractEventLoop, Callable[[], None]]] = []
        self._waiting: set[int] = set()
        """Numbers of the timers that were neither called nor cancelled."""
        self._ids = itertools.count()
        self._change = threading.Lock()

    def monotonic(self) -> float:
        """See `Clock.monotonic`."""
        return self._now

    def wall(self) -> float:
        """See `Clock.wall`."""
        return self._now + self._wall_offset

    def step_wall(self, seconds: float) -> None:
        """Set the wall clock forward or back, as an operator or NTP would; nothing that is monotonic notices."""
        self._wall_offset += seconds

    async def sleep(self, seconds: float) -> None:
        """See `Clock.sleep`."""
        over = asyncio.Event()
        cancel = self.call_later(seconds, over.set)
        try:
            await over.wait()
        finally:
            cancel()

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Callable[[], None]:
        """See `Clock.call_later`."""
        loop, number = asyncio.get_running_loop(), next(self._ids)
        with self._change:
            heapq.heappush(self._timers, (self._now + max(seconds, 0.0), number, loop, callback))
            self._waiting.add(number)
        return lambda: self._waiting.discard(number)

    async def advance(self, seconds: float) -> None:
        """Move time, from deadline to deadline; between them every task that can run does."""
        end = self._now + seconds
        await settle()
        while (timer := self._next(end)) is not None:
            at, _, loop, callback = timer
            self._now = max(self._now, at)
            loop.call_soon_threadsafe(callback)
            await settle()
        self._now = end
        await settle()

    def _next(self, end: float) -> tuple[float, int, asyncio.AbstractEventLoop, Callable[[], None]] | None:
        with self._change:
            while self._timers and self._timers[0][0] <= end:
                timer = heapq.heappop(self._timers)
                _, number, loop, _ = timer
                if number in self._waiting and not loop.is_closed():
                    self._waiting.discard(number)
                    return timer
        return None


async def settle(rounds: int = 60) -> None:
    """Let every task run until the loop is quiet (a bounded number of turns of the loop)."""
    for _ in range(rounds):
        await asyncio.sleep(0)
