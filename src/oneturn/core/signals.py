"""Signals are hints: they may be lost, doubled or late, and cost latency, never correctness."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

Wake = Callable[[], None]


class Signals(Protocol):
    """Best-effort wake-ups between the processes that share a backend; one connection per process."""

    def publish(self, topic: str) -> None:
        """Tell every subscriber of `topic`, here and in other processes, to look at the store. Never blocks or raises."""
        ...

    def subscribe(self, topic: str, wake: Wake) -> Callable[[], None]:
        """Call `wake` (from any thread, quickly) whenever `topic` was published; answers how to unsubscribe."""
        ...
