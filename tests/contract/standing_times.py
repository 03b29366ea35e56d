"""A store's time that stands still until a test moves it, and a boot that a test may end."""

from __future__ import annotations


class StandingTimes:
    def __init__(self) -> None:
        self._monotonic = 1000.0
        self._wall = 1_800_000_000.0
        self.boot_id = "this boot"

    def monotonic(self) -> float:
        return self._monotonic

    def wall(self) -> float:
        return self._wall

    def boot(self) -> str:
        return self.boot_id

    def elapse(self, seconds: float) -> None:
        self._monotonic += seconds
        self._wall += seconds

    def reboot(self) -> None:
        """Begin another boot, whose clock starts near zero."""
        self.boot_id += " and another"
        self._monotonic = 1.0

    def step_wall(self, seconds: float) -> None:
        self._wall += seconds
