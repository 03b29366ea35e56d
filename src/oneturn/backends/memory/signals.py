"""Signals within one process."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from oneturn.core.signals import Wake

logger = logging.getLogger(__name__)


class MemorySignals:
    """See `oneturn.core.signals.Signals`."""

    def __init__(self) -> None:
        self._wakes: dict[str, dict[int, Wake]] = {}
        self._next = 0
        self._lock = threading.Lock()

    def publish(self, topic: str) -> None:
        """See the port."""
        with self._lock:
            wakes = list(self._wakes.get(topic, {}).values())
        for wake in wakes:
            try:
                wake()
            except Exception:
                logger.warning("a subscriber could not be woken", extra={"topic": topic}, exc_info=True)

    def subscribe(self, topic: str, wake: Wake) -> Callable[[], None]:
        """See the port."""
        with self._lock:
            self._next += 1
            number = self._next
            self._wakes.setdefault(topic, {})[number] = wake

        def end() -> None:
            with self._lock:
                wakes = self._wakes.get(topic, {})
                wakes.pop(number, None)
                if not wakes:
                    self._wakes.pop(topic, None)

        return end

    @property
    def topics(self) -> frozenset[str]:
        """What somebody listens to."""
        with self._lock:
            return frozenset(self._wakes)
