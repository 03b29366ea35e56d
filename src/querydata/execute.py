"""Runs guarded SQL on the campus database: read-only, bounded in time and rows, and really stopped when told to stop."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

QueryCode = Literal["sql-error", "statement-timeout", "interrupted"]
OnStop = Callable[[Callable[[], object]], None]

_STEPS = 2_000
"""Virtual-machine steps between two looks at the time: some 50 microseconds."""
_VALUE_BYTES = 1_000_000
"""The most that one value may have: no step of the virtual machine can grow without bound between two looks."""

_ALLOWED = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE})
_DENIED_FUNCTIONS = frozenset(
    {"load_extension", "readfile", "writefile", "edit", "fts3_tokenizer", "randomblob", "zeroblob", "printf", "format"}
)
_STOPPED = "The query was stopped."


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
    """One SQLite file to be asked. A connection lives for one statement and in one thread.

    With `tables` (table → columns), SQLite itself refuses to read any other column, however it is named in the statement.
    """

    def __init__(
        self,
        path: Path,
        *,
        statement_timeout: float,
        max_rows: int,
        threads: int = 8,
        tables: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self._path = path
        self._timeout = statement_timeout
        self._max_rows = max_rows
        self._tables = tables
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="querydata-sql")
        self._change = threading.Lock()
        self._running: set[_Statement] = set()
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
        job = self._pool.submit(self._run, sql, statement)
        statement.waits_as(job)
        ended = asyncio.wrap_future(job)
        try:
            await asyncio.wait([ended])
        except asyncio.CancelledError:
            statement.interrupt()
            await _end_of(ended)
            raise
        if ended.cancelled():  # stopped, or the database was closed, before a thread was free
            raise QueryFailed(_STOPPED, code="interrupted")
        return ended.result()

    def close(self) -> None:
        """Take no more statements, and interrupt those that run."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        with self._change:
            running = tuple(self._running)
        for statement in running:
            statement.interrupt()

    # -- in the thread ------------------------------------------------------------------------------------------------

    def _run(self, sql: str, statement: _Statement) -> Table:
        end = time.monotonic() + self._timeout
        try:
            with self._connection(statement) as connection:
                connection.execute("PRAGMA query_only = ON")
                connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _VALUE_BYTES)
                connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
                connection.set_authorizer(_authorizer(self._tables, there=_named(connection)))
                # SQLite forgets an interrupt that arrives before the statement's first step: look at the flag as well.
                connection.set_progress_handler(lambda: statement.interrupted or time.monotonic() >= end, _STEPS)
                statement.begin(connection)
                return self._fetch(connection, sql)
        except (sqlite3.Error, sqlite3.Warning, UnicodeError) as error:
            raise self._failed(error, statement) from error

    @contextmanager
    def _connection(self, statement: _Statement) -> Iterator[sqlite3.Connection]:
        connection = sqlite3.connect(
            f"{self._path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None, check_same_thread=False
        )
        with self._change:
            self._running.add(statement)
            self.checked_out += 1
        try:
            yield connection
        finally:
            statement.end()
            connection.close()
            with self._change:
                self._running.discard(statement)
                self.checked_out -= 1

    def _fetch(self, connection: sqlite3.Connection, sql: str) -> Table:
        cursor = connection.execute(sql)
        columns = tuple(column[0] for column in cursor.description or ())
        rows = cursor.fetchmany(self._max_rows + 1)
        return Table(columns=columns, rows=tuple(rows[: self._max_rows]), truncated=len(rows) > self._max_rows)

    def _failed(self, error: Exception, statement: _Statement) -> QueryFailed:
        if statement.interrupted:
            return QueryFailed(_STOPPED, code="interrupted")
        # Nobody told it to stop: only the time limit interrupts, and an error of the SQL that came late stays one.
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_INTERRUPT:
            return QueryFailed(
                f"The query took longer than {self._timeout:g} s and was stopped.", code="statement-timeout"
            )
        return QueryFailed(f"The database refused the query: {error}", code="sql-error")


class _Statement:
    """A statement that may be interrupted from any thread, before, while and after it runs."""

    def __init__(self) -> None:
        self._change = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._job: Future[Table] | None = None
        self.interrupted = False

    def waits_as(self, job: Future[Table]) -> None:
        """Name the job, so that an interrupted statement need not wait for a thread."""
        self._job = job

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
            # The flag first: the thread that sees the interrupt asks it why.
            self.interrupted = True
            if self._connection is not None:
                self._connection.interrupt()
        if self._job is not None:
            self._job.cancel()


def _named(connection: sqlite3.Connection) -> frozenset[str]:
    """What a name in FROM can mean without a WITH: tables, views, and modules that are tables by themselves."""
    found = connection.execute("SELECT name FROM sqlite_master UNION SELECT name FROM pragma_module_list")
    return frozenset(name.lower() for (name,) in found)


def _authorizer(tables: Mapping[str, Sequence[str]] | None, *, there: frozenset[str]) -> Callable[..., int]:
    """What SQLite asks about each action while it compiles a statement."""
    allowed = None if tables is None else {table.lower(): frozenset(columns) for table, columns in tables.items()}

    def may(action: int, first: str | None, second: str | None, *_: str | None) -> bool:
        if action == sqlite3.SQLITE_READ:
            table = (first or "").lower()
            if allowed is None:
                return not table.startswith("sqlite_")
            if not second and table not in there and not table.startswith(("sqlite_", "pragma_")):
                return True  # the rows of a WITH are only counted: what it reads itself is asked as well
            # No column: the table's rows are only counted.
            return table in allowed and (not second or second.lower() in allowed[table])
        if action == sqlite3.SQLITE_FUNCTION:
            return (second or "").lower() not in _DENIED_FUNCTIONS
        return action in _ALLOWED

    return lambda *asked: sqlite3.SQLITE_OK if may(*asked) else sqlite3.SQLITE_DENY


async def _end_of(future: asyncio.Future[Table]) -> None:
    # Told a second time, it still waits: the thread ends within _STEPS, and nobody else would own it.
    while not future.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait([future])
    if not future.cancelled():
        future.exception()
