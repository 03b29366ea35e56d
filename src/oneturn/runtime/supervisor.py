"""The one owner of background tasks: each has a name and a strong reference, and its end is awaited."""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

logger = logging.getLogger(__name__)

T = TypeVar("T")


class Supervisor:
    """Owns every task that outlives the call which began it."""

    def __init__(self) -> None:
        self._tasks: dict[asyncio.Task[Any], None] = {}
        self._whole: set[asyncio.Task[Any]] = set()
        """Those that must not be cut in two: `close` awaits them before it cancels them."""
        self._context = contextvars.copy_context()

    def spawn(
        self, coroutine: Coroutine[Any, Any, T], *, name: str, judged: bool = False, whole: bool = False
    ) -> asyncio.Task[T]:
        """Start `coroutine` in the context that the supervisor was made in: no request's variables leak into its work.

        Its failure is logged, unless its owner looks at its outcome itself (`judged`). What must not be cut in two (`whole`)
        is cancelled by `close` only after half of its patience.
        """
        task = asyncio.get_running_loop().create_task(coroutine, name=name, context=self._context.copy())
        self._tasks[task] = None
        if whole:
            self._whole.add(task)
        task.add_done_callback(self._forget)
        if not judged:
            task.add_done_callback(_log_failure)
        return task

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._tasks.pop(task, None)
        self._whole.discard(task)

    async def finish(self, coroutine: Coroutine[Any, Any, T], *, name: str) -> T:
        """Await what must not be cut in two. Cancelled here, only the waiting ends: the rest goes on by itself."""
        return await asyncio.shield(self.spawn(coroutine, name=name, judged=True, whole=True))

    @property
    def tasks(self) -> frozenset[asyncio.Task[Any]]:
        """Those that have not ended."""
        return frozenset(self._tasks)

    def named(self, *prefixes: str) -> list[asyncio.Task[Any]]:
        """Those that run and whose name begins with one of `prefixes`."""
        return [task for task in self._tasks if not task.done() and task.get_name().startswith(prefixes)]

    async def close(self, *, keep: str | None = None, patience: float = 5.0) -> None:
        """Cancel what still runs (but the caller and the task named `keep`) and await its end, until nothing is left.

        What ignores its cancellation for `patience` seconds is named in the log and left behind.
        """
        rounds = 10
        for number in range(rounds):
            tasks = self._but(keep)
            if not tasks:
                return
            for task in tasks:
                if task not in self._whole or number >= rounds // 2:
                    task.cancel()
            await asyncio.wait(tasks, timeout=patience / rounds)
        if left := sorted(task.get_name() for task in self._but(keep)):
            logger.error("tasks ignore their cancellation and are left behind", extra={"tasks": left})

    def _but(self, keep: str | None) -> list[asyncio.Task[Any]]:
        caller = asyncio.current_task()
        return [task for task in self._tasks if task is not caller and task.get_name() != keep]


def _log_failure(task: asyncio.Task[Any]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.error("background task failed", exc_info=error, extra={"task": task.get_name()})
