"""The time of a store that lives in this process."""

from __future__ import annotations

import time


class SystemTimes:
    """See `oneturn.core.clock.Times`."""

    def monotonic(self) -> float:
        """See `Times.monotonic`."""
        return time.monotonic()

    def wall(self) -> float:
        """See `Times.wall`."""
        return time.time()  # noqa: TID251 - the store's own clock
