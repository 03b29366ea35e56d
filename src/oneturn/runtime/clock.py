"""The clock of a real process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable


class SystemClock:
    """See `oneturn.core.clock.Clock`."""

    def monotonic(self) -> float:
        """See `Clock.monotonic`."""
        return time.monotonic()

    def wall(self) -> float:
        """See `Clock.wall`."""
        return time.time()  # noqa: TID251 - this is the Clock

    async def sleep(self, seconds: float) -> None:
        """See `Clock.sleep`."""
        await asyncio.sleep(seconds)

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Callable[[], None]:
        """See `Clock.call_later`."""
        return asyncio.get_running_loop().call_later(max(seconds, 0.0), callback).cancel
