"""The cut: runs a coroutine as a task and cancels it at its n-th suspension, counted exactly."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from typing import Any


class Cut:
    """Awaits what `call` answers. At the suspensions `at` its own task is cancelled; at `lose` `on_lose` is called."""

    def __init__(
        self,
        call: Callable[[], Awaitable[Any]],
        *,
        at: frozenset[int],
        lose: int = 0,
        on_lose: Callable[[], object] = lambda: None,
    ) -> None:
        self._call = call
        self._at = at
        self._lose = lose
        self._on_lose = on_lose
        self.suspensions = 0
        self.delivered = 0
        """How many cancellations were requested."""

    async def run(self) -> Any:
        """The coroutine of the task."""
        return await self

    def __await__(self) -> Generator[Any, Any, Any]:
        task = asyncio.current_task()
        assert task is not None
        steps = self._call().__await__()
        error: BaseException | None = None
        while True:
            try:
                waited = next(steps) if error is None else steps.throw(error)
            except StopIteration as stop:
                return stop.value
            error = None
            self.suspensions += 1
            if self.suspensions == self._lose:
                self._on_lose()
            if self.suspensions in self._at:
                # Requested in the very step that yields: the task cancels what it waits for before anything else runs.
                self.delivered += 1
                task.cancel()
            try:
                yield waited
            except BaseException as thrown:  # noqa: BLE001 - handed to the coroutine, whatever it is
                error = thrown
