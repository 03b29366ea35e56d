"""A SQLite backend under test: opened as often as a test wants, over one pair of files, on time that stands still."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any

from standing_times import StandingTimes

from oneturn.backends.sqlite import sqlite_backend
from oneturn.core.backend import Backend
from oneturn.core.store import Execute
from oneturn.testing.contracts import Subject
from oneturn.testing.contracts.transactional import Transaction


@asynccontextmanager
async def opened(file: Path, times: StandingTimes) -> AsyncIterator[Subject]:
    """All that was opened is closed, whatever the test did."""
    backends = [await sqlite_backend(file, times=times)]

    async def other() -> Backend:
        backends.append(await sqlite_backend(file, times=times))
        return backends[-1]

    async def reopen() -> Backend:
        await backends[0].close()
        return await other()

    yield Subject(backend=backends[0], elapse=times.elapse, other=other, reopen=reopen)
    for backend in backends:
        await backend.close()


def transactions(file: Path) -> Transaction:
    """A raw connection of an application's own."""

    @contextmanager
    def begin(commit: bool) -> Iterator[Execute]:
        with closing(sqlite3.connect(file, isolation_level=None)) as connection:
            connection.execute("BEGIN")

            def run(sql: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
                return connection.execute(sql, parameters).fetchall()

            yield run
            connection.execute("COMMIT" if commit else "ROLLBACK")

    return begin
