"""A lane: one thread with one connection; all steps that wait commit together."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

from oneturn.backends.sqlite.patience import patiently
from oneturn.core.errors import BackendUnavailable
from oneturn.core.failpoint import failpoint
from oneturn.core.store import Execute

T = TypeVar("T")
Step = Callable[[Execute], T]

logger = logging.getLogger(__name__)

BREATH = 0.001
"""Seconds between two batches of a busy writer: other processes get in, and more steps gather."""


class Waiting:
    """A step in the line. `then` is told, in the lane's thread, what it answered or why it failed."""

    __slots__ = ("answer", "error", "future", "loop", "step", "then")

    def __init__(
        self,
        step: Step[Any],
        *,
        loop: asyncio.AbstractEventLoop | None = None,
        then: Callable[[BaseException | None], None] | None = None,
    ) -> None:
        self.step = step
        self.loop = loop
        self.future: asyncio.Future[Any] | None = loop.create_future() if loop is not None else None
        self.then = then
        self.answer: Any = None
        self.error: BaseException | None = None


class Lane:
    """Runs steps in order, many to a transaction, each with its own answer.

    A step may run twice: one that raises takes its batch back, and then each step is run alone, so that only the culprit
    fails. A transaction that cannot begin or commit fails all of its steps as *unknown*. A caller that is cancelled loses
    only its own waiting.
    """

    def __init__(self, connect: Callable[[], sqlite3.Connection], *, name: str, writes: bool) -> None:
        self._connect = connect
        self._writes = writes
        self._breath = BREATH if writes else 0.0
        self._queue: deque[Waiting] = deque()
        self._wake = threading.Condition()
        self._closing = False
        self._closed: Future[None] = Future()
        self._opened: Future[None] = Future()
        self.commits = 0
        """How many transactions were committed so far."""
        self._thread = threading.Thread(target=self._serve, name=f"oneturn-{name}", daemon=True)

    async def open(self) -> None:
        """Start the thread; raises what opening the file raised."""
        self._thread.start()
        await asyncio.shield(asyncio.wrap_future(self._opened))

    def post(self, step: Step[object], *, then: Callable[[BaseException | None], None]) -> None:
        """Put a step in the line and go on; `then` is called in the lane's thread. Callable from any thread."""
        self._submit(Waiting(step, then=then), first=False)

    async def run(self, name: str, step: Step[T], *, first: bool = False) -> T:
        """Run a step (`first`: before all that waits) and await its commit. Cancelled here: the step still happens."""
        await failpoint(f"{name}.before")
        waiting = Waiting(step, loop=asyncio.get_running_loop())
        self._submit(waiting, first=first)
        assert waiting.future is not None  # noqa: S101 - it has a loop
        answer: T = await waiting.future
        await failpoint(f"{name}.after")
        return answer

    async def close(self) -> None:
        """Finish what waits, then end the thread."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        await asyncio.shield(asyncio.wrap_future(self._closed))

    def _submit(self, waiting: Waiting, *, first: bool) -> None:
        with self._wake:
            if not self._closing:
                (self._queue.appendleft if first else self._queue.append)(waiting)
                self._wake.notify()
                return
        waiting.error = BackendUnavailable("this backend is closed")
        _tell([waiting])

    # -- in the thread ------------------------------------------------------------------------------------------------

    def _serve(self) -> None:
        try:
            connection = self._connect()
        except BaseException as error:  # noqa: BLE001 - handed to whoever opens
            self._opened.set_exception(error)
            return
        self._opened.set_result(None)

        def run(sql: str, parameters: Any = ()) -> list[tuple[Any, ...]]:
            return connection.execute(sql, parameters).fetchall()

        if self._writes:
            # SQLite's own patience sleeps longer and longer, up to 100 ms, past every breath of a busy neighbour.
            run("PRAGMA busy_timeout = 1")
        crowded = False
        try:
            while batch := self._take(crowded=crowded):
                self._commit(batch, connection, run)
                # Seen before anybody is told: one caller alone, who asks again at once, is no crowd.
                crowded = len(batch) > 1 or bool(self._queue)
                _tell(batch)
        finally:
            with contextlib.suppress(sqlite3.Error):
                connection.close()
            self._closed.set_result(None)

    def _take(self, *, crowded: bool) -> list[Waiting]:
        """What waits; empty: the lane is closed. `crowded`: several steps came at once, the last time."""
        # A writer that takes the lock again at once starves other processes, whose busy handlers sleep between two looks.
        # Several callers' steps come back one by one: a moment's wait gathers them again. One caller alone is not held up.
        if self._breath and crowded and not self._closing:
            time.sleep(self._breath)
        with self._wake:
            while not self._queue and not self._closing:
                self._wake.wait()
            batch = list(self._queue)
            self._queue.clear()
        return batch

    def _begin(self, run: Execute) -> None:
        if self._writes:
            patiently(lambda: run("BEGIN IMMEDIATE", ()), pause=0.0)
        else:
            run("BEGIN", ())

    def _commit(self, batch: Sequence[Waiting], connection: sqlite3.Connection, run: Execute) -> None:
        """Run a batch in one transaction, leaving its answers or errors in it. Never raises."""
        culprit: Waiting | None = None
        try:
            self._begin(run)
            for waiting in batch:
                culprit = waiting
                waiting.answer = waiting.step(run)
            culprit = None
            run("COMMIT", ())
            self.commits += 1
        except BaseException as error:  # noqa: BLE001 - belongs to whoever waits for it
            # Should this fail too, so will the next BEGIN, and its steps are told.
            with contextlib.suppress(sqlite3.Error):
                connection.rollback()
            if culprit is None or len(batch) == 1:
                _fail(batch, error)
                return
            for waiting in batch:
                self._commit([waiting], connection, run)


def _fail(batch: Sequence[Waiting], error: BaseException) -> None:
    for waiting in batch:
        if isinstance(error, sqlite3.Error):
            waiting.error = BackendUnavailable(f"SQLite: {error}")
            waiting.error.__cause__ = error
        else:
            waiting.error = error


def _tell(batch: Sequence[Waiting]) -> None:
    """Hand out answers, with one wake-up per event loop: a wake-up is a system call."""
    by_loop: dict[asyncio.AbstractEventLoop, list[Waiting]] = {}
    for waiting in batch:
        if waiting.loop is not None:
            by_loop.setdefault(waiting.loop, []).append(waiting)
        elif waiting.then is not None:
            waiting.then(waiting.error)
    for loop, some in by_loop.items():
        # A loop that was closed meanwhile has nobody left who waits.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(_settle, some)


def _settle(batch: Sequence[Waiting]) -> None:
    for waiting in batch:
        if waiting.future is None or waiting.future.done():
            continue  # the caller was cancelled; the step happened all the same
        if waiting.error is not None:
            waiting.future.set_exception(waiting.error)
        else:
            waiting.future.set_result(waiting.answer)
