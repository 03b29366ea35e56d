"""Runs guarded SQL on the campus database: read-only, bounded in time and rows, and really stopped when told to stop."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

QueryCode = Literal["sql-error", "statement-timeout", "interrupted"]
OnStop = Callable[[Callable[[], object]], None]

_STEPS = 2_000
"""Virtual-machine steps between two looks at the time: some 50 microseconds."""

_ALLOWED = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A result. `truncated`: there were more rows."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    truncated: bool


class QueryFailed(Exception):
    """The statement gave no result; `code` says in which way."""

    def __init__(self, message: str, *, code: QueryCode) -> None:
        super().__init__(message)
        self.message = message
        self.code: QueryCode = code


class Database:
    """One SQLite file to be asked. A connection lives for one statement and in one thread."""

    def __init__(self, path: Path, *, statement_timeout: float, max_rows: int, threads: int = 8) -> None:
        self._path = path
        self._timeout = statement_timeout
        self._max_rows = max_rows
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="querydata-sql")
        self._count = threading.Lock()
        self.checked_out = 0
        """How many connections are open now."""

    async def run(self, sql: str, *, on_stop: OnStop | None = None) -> Table:
        """The rows of a statement; raises QueryFailed.

        `on_stop` takes a hook that interrupts the statement. If this call is cancelled, the statement is interrupted too, and
        its thread has ended before the cancellation goes on.
        """
        statement = _Statement()
        if on_stop is not None:
            on_stop(statement.interrupt)
        running = asyncio.wrap_future(self._pool.submit(self._run, sql, statement))
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            statement.interrupt()
            await _quietly(running)
            raise

    def close(self) -> None:
        """Take no more statements; the running ones end by their time limit."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    # -- in the thread ------------------------------------------------------------------------------------------------

    def _run(self, sql: str, statement: _Statement) -> Table:
        end = time.monotonic() + self._timeout
        connection = sqlite3.connect(
            f"{self._path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None, check_same_thread=False
        )
        with self._count:
            self.checked_out += 1
        try:
            connection.execute("PRAGMA query_only = ON")
            connection.set_authorizer(_authorize)
            connection.set_progress_handler(lambda: int(time.monotonic() >= end), _STEPS)
            statement.begin(connection)
            return self._fetch(connection, sql)
        except sqlite3.Error as error:
            raise self._failed(error, statement, timed_out=time.monotonic() >= end) from error
        finally:
            statement.end()
            connection.close()
            with self._count:
                self.checked_out -= 1

    def _fetch(self, connection: sqlite3.Connection, sql: str) -> Table:
        cursor = connection.execute(sql)
        columns = tuple(column[0] for column in cursor.description or ())
        rows = cursor.fetchmany(self._max_rows + 1)
        return Table(columns=columns, rows=tuple(rows[: self._max_rows]), truncated=len(rows) > self._max_rows)

    def _failed(self, error: sqlite3.Error, statement: _Statement, *, timed_out: bool) -> QueryFailed:
        if statement.interrupted:
            return QueryFailed("The query was stopped.", code="interrupted")
        if timed_out:
            return QueryFailed(
                f"The query took longer than {self._timeout:g} s and was stopped.", code="statement-timeout"
            )
        return QueryFailed(f"The database refused the query: {error}", code="sql-error")


class _Statement:
    """A statement that may be interrupted from any thread, before, while and after it runs."""

    def __init__(self) -> None:
        self._change = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self.interrupted = False

    def begin(self, connection: sqlite3.Connection) -> None:
        with self._change:
            if self.interrupted:
                raise sqlite3.OperationalError("interrupted")
            self._connection = connection

    def end(self) -> None:
        with self._change:
            self._connection = None

    def interrupt(self) -> None:
        with self._change:
            if self._connection is not None:
                self._connection.interrupt()
            self.interrupted = True


def _authorize(action: int, *_: str | None) -> int:
    return sqlite3.SQLITE_OK if action in _ALLOWED else sqlite3.SQLITE_DENY


async def _quietly(future: asyncio.Future[Table]) -> None:
    try:
        await asyncio.shield(future)
    except QueryFailed:
        return
