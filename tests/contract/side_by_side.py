"""Two backends side by side: the same steps in the same order on the same time, and their answers compared."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import HealthCheck, Phase, settings
from standing_times import StandingTimes

from oneturn.backends.memory import memory_backend
from oneturn.backends.sqlite import sqlite_backend
from oneturn.core.backend import Backend
from oneturn.core.record import Record

T = TypeVar("T")

QUICK = settings(
    max_examples=40,
    stateful_step_count=40,
    deadline=None,
    # Shrinking would open thousands of databases: a failure is told as it was found, within the test's time.
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=[HealthCheck.too_slow],
)
"""A few seconds. To make a failure small, add `Phase.shrink` and wait."""


class SideBySide:
    """Owns an event loop, because a state machine is synchronous and the stores are not."""

    def __init__(self) -> None:
        self.times = StandingTimes()
        self._loop = asyncio.Runner()
        self._folder = tempfile.TemporaryDirectory()
        self.memory = memory_backend(clock=self.times)
        self.sqlite = self._loop.run(sqlite_backend(Path(self._folder.name) / "r.db", times=self.times))

    def close(self) -> None:
        self._loop.run(self._close())
        self._loop.close()
        self._folder.cleanup()

    async def _close(self) -> None:
        await self.sqlite.close()

    def ask(self, step: Callable[[Backend], Awaitable[T]]) -> T:
        """What both answer to the step."""
        # No two steps are at the same instant: what is ordered by time has one order.
        self.times.elapse(0.001)

        async def both() -> tuple[T, T]:
            return await step(self.memory), await step(self.sqlite)

        memory, sqlite = self._loop.run(both())
        assert comparable(memory) == comparable(sqlite)
        return memory


def comparable(answer: Any) -> Any:
    """An answer without what two stores may tell differently: how long nobody has vouched for what never ran."""
    if isinstance(answer, Record):
        return replace(answer, remaining=0.0 if answer.started_at is None else round(answer.remaining, 6))
    if isinstance(answer, list | tuple):
        return [comparable(part) for part in answer]
    if is_dataclass(answer) and not isinstance(answer, type):
        return type(answer).__name__, {f.name: comparable(getattr(answer, f.name)) for f in fields(answer)}
    return answer
