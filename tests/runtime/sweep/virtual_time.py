"""Virtual time: a first-in, first-out event loop whose clock jumps to the next timer once nothing is left to do."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any


class Stuck(Exception):
    """Nothing is ready and nothing is scheduled: whoever still waits would wait for ever."""


class Time:
    """The time of one world: its loops one after another, and its stores. Threads may read it."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def wall(self) -> float:
        return self.now + 1_800_000_000.0

    def boot(self) -> str:
        return "this boot"

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Callable[[], None]:
        return asyncio.get_running_loop().call_later(max(seconds, 0.0), callback).cancel


class VirtualLoop(asyncio.BaseEventLoop):
    """Before time jumps, `barriers` wait until threads have said what they had to say."""

    def __init__(self, time: Time) -> None:
        super().__init__()
        self._of = time
        self._selector = self
        self.woken = threading.Event()
        self.barriers: list[Callable[[VirtualLoop], object]] = []
        self.patience = 0.0
        """Real seconds for which a thread may be awaited before time jumps."""

    def time(self) -> float:
        return self._of.now

    @property
    def ready(self) -> bool:
        return bool(self._ready)  # type: ignore[attr-defined]

    def select(self, timeout: float | None) -> list[Any]:
        if timeout is not None and timeout <= 0:
            return []
        for barrier in self.barriers:
            barrier(self)
        self.woken.clear()
        if self.patience and not self.ready:
            self.woken.wait(self.patience)
        if self.ready:
            return []
        if timeout is None:
            raise Stuck
        self._of.now += timeout
        return []

    def _process_events(self, event_list: Any) -> None:
        return

    def _write_to_self(self) -> None:
        self.woken.set()
