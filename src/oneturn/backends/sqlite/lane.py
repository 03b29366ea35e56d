"""A lane: one thread with one connection; all steps that wait commit together."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

from oneturn.core.errors import BackendUnavailable
from oneturn.core.failpoint import failpoint
from oneturn.core.store import Execute

T = TypeVar("T")
Step = Callable[[Execute], T]

BREATH = 0.001
"""Seconds between two batches of a writer: other processes get in, and more steps gather."""


@dataclass(slots=True, eq=False)
class _Waiting:
    step: Step[Any]
    future: Future[Any]


class Lane:
    """Runs steps in order, many to a transaction, each with its own answer.

    A step that raises takes the batch back; then each step is run alone, so that only the culprit fails. A transaction that
    cannot begin or commit fails all of its steps as *unknown*. A caller that is cancelled loses only its own waiting.
    """

    def __init__(self, connect: Callable[[], sqlite3.Connection], *, name: str, writes: bool) -> None:
        self._connect = connect
        self._begin = "BEGIN IMMEDIATE" if writes else "BEGIN"
        self._breath = BREATH if writes else 0.0
        self._queue: deque[_Waiting] = deque()
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
        await asyncio.wrap_future(self._opened)

    def submit(self, step: Step[T], *, first: bool = False) -> Future[T]:
        """Put a step in the line (at its head with `first`); callable from any thread."""
        future: Future[T] = Future()
        with self._wake:
            if self._closing:
                future.set_exception(BackendUnavailable("this backend is closed"))
                return future
            waiting = _Waiting(step=step, future=future)
            if first:
                self._queue.appendleft(waiting)
            else:
                self._queue.append(waiting)
            self._wake.notify()
        return future

    async def run(self, name: str, step: Step[T], *, first: bool = False) -> T:
        """Run a step and await its commit, from any loop. Cancelled here: the step still happens."""
        await failpoint(f"{name}.before")
        answer = await asyncio.shield(asyncio.wrap_future(self.submit(step, first=first)))
        await failpoint(f"{name}.after")
        return answer

    async def close(self) -> None:
        """Finish what waits, then end the thread."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        await asyncio.shield(asyncio.wrap_future(self._closed))

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

        try:
            while batch := self._take():
                self._commit(batch, connection, run)
        finally:
            connection.close()
            self._closed.set_result(None)

    def _take(self) -> list[_Waiting]:
        with self._wake:
            while not self._queue and not self._closing:
                self._wake.wait()
            if self._breath and self._queue and self.commits and not self._closing:
                self._wake.wait(self._breath)
            batch = list(self._queue)
            self._queue.clear()
        return batch

    def _commit(self, batch: list[_Waiting], connection: sqlite3.Connection, run: Execute) -> None:
        try:
            run(self._begin, ())
        except sqlite3.Error as error:
            _fail(batch, error)
            return
        answers: list[Any] = []
        try:
            answers.extend(waiting.step(run) for waiting in batch)
        except BaseException as error:  # noqa: BLE001 - belongs to one step of the batch
            connection.rollback()
            if len(batch) == 1:
                _fail(batch, error)
            else:
                for waiting in batch:
                    self._commit([waiting], connection, run)
            return
        try:
            run("COMMIT", ())
        except sqlite3.Error as error:
            if connection.in_transaction:
                connection.rollback()
            _fail(batch, error)
            return
        self.commits += 1
        for waiting, answer in zip(batch, answers, strict=True):
            waiting.future.set_result(answer)


def _fail(batch: list[_Waiting], error: BaseException) -> None:
    unavailable = isinstance(error, sqlite3.Error)
    for waiting in batch:
        told = BackendUnavailable(f"SQLite: {error}") if unavailable else error
        told.__cause__ = error if unavailable else error.__cause__
        waiting.future.set_exception(told)
