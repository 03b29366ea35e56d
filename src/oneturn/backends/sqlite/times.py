"""The store's clock: ignores wall-clock steps, counts suspend, and knows which boot it belongs to."""

from __future__ import annotations

import subprocess
import sys
import time
from functools import cache
from pathlib import Path
from typing import Protocol

from oneturn.core.clock import Times


class BootTimes(Times, Protocol):
    """Times whose monotonic readings are comparable between all processes of one boot."""

    def boot(self) -> str:
        """The boot's id: what another boot vouched for has lapsed."""
        ...


class SystemBootTimes:
    """CLOCK_BOOTTIME on Linux; CLOCK_MONOTONIC on macOS, where it counts suspend."""

    _clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

    def monotonic(self) -> float:
        """See `Times.monotonic`."""
        return time.clock_gettime(self._clock)

    def wall(self) -> float:
        """See `Times.wall`."""
        return time.time()  # noqa: TID251 - the store's own clock

    def boot(self) -> str:
        """See `BootTimes.boot`."""
        return _boot_id()


@cache
def _boot_id() -> str:
    linux = Path("/proc/sys/kernel/random/boot_id")
    if linux.exists():
        return linux.read_text(encoding="ascii").strip()
    if sys.platform == "darwin":
        command = ["/usr/sbin/sysctl", "-n", "kern.bootsessionuuid"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603
    return "unknown"
