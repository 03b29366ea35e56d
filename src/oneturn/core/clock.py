"""The one source of time: everything that waits or measures takes a `Clock`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Times(Protocol):
    """What a store needs to know of time."""

    def monotonic(self) -> float:
        """Seconds that never go back; only differences mean anything, only within this process."""
        ...

    def wall(self) -> float:
        """Seconds since the epoch, for people to read. Never compared with another machine's."""
        ...


class Clock(Times, Protocol):
    """Time as the process sees it. Waiting on it lives in `oneturn.runtime.waiting`."""

    async def sleep(self, seconds: float) -> None:
        """Return once `seconds` have passed on this clock."""
        ...

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` on the running event loop once `seconds` have passed on this clock; answers how to cancel it.

        Everything in the runtime that waits with a bound is built on this one call.
        """
        ...
