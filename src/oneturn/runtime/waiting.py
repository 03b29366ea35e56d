"""The one way to wait: look at the store, sleep until a bell or a bound, look again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from oneturn.core.clock import Clock
from oneturn.core.signals import Signals


class Bell:
    """Wakes one task of one event loop, from any thread. Ringing before the wait is not lost."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._rung = False
        self._waiter: asyncio.Future[None] | None = None

    def ring(self) -> None:
        """Wake the waiter, or let its next wait return at once. Callable from any thread."""
        try:
            self._loop.call_soon_threadsafe(self.ring_here)
        except RuntimeError:
            return  # the loop is closed: nobody waits any more

    def ring_here(self) -> None:
        """`ring`, for callers on the bell's own loop."""
        self._rung = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def wait(self, seconds: float | None) -> bool:
        """Sleep until it rings (True) or `seconds` have passed (False); None: no bound. Clears the ring."""
        if not self._rung and (seconds is None or seconds > 0):
            waiter = self._waiter = self._loop.create_future()
            cancel = None if seconds is None else self._clock.call_later(seconds, lambda: wake(waiter))
            try:
                await waiter
            finally:
                self._waiter = None
                if cancel is not None:
                    cancel()
        rung, self._rung = self._rung, False
        return rung


def wake(waiter: asyncio.Future[None]) -> None:
    """Settle a future that may be settled already."""
    if not waiter.done():
        waiter.set_result(None)


@contextmanager
def listening(signals: Signals, *topics: str, clock: Clock) -> Iterator[Bell]:
    """A bell that rings whenever one of `topics` is published; subscribed before the body looks at anything."""
    bell = Bell(clock)
    ends: list[Callable[[], None]] = []
    try:
        ends.extend(signals.subscribe(topic, bell.ring) for topic in topics)
        yield bell
    finally:
        for end in ends:
            end()


async def settled(future: asyncio.Future[object], clock: Clock, seconds: float | None) -> bool:
    """Whether `future` was done within `seconds`. It is neither cancelled nor asked for its result."""
    bell = Bell(clock)

    def done(_: asyncio.Future[object]) -> None:
        bell.ring_here()

    future.add_done_callback(done)
    try:
        while not future.done():
            if not await bell.wait(seconds):
                break
        return future.done()
    finally:
        future.remove_done_callback(done)
