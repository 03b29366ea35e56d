"""Records on a real SQLite file, one step at a time, so that an application's own rows can share their database."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from oneturn.backends.sqlite.database import connect, migrate
from oneturn.backends.sqlite.records import SqliteRecords, SqliteTransactional
from oneturn.core.errors import BackendUnavailable
from oneturn.core.failpoint import failpoint
from oneturn.core.store import Execute
from oneturn.testing.simulation.loop import LoopClock

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from oneturn.backends.sqlite.lane import Lane

T = TypeVar("T")


class DatabaseClock(LoopClock):
    """The clock of the machine that the file is on."""

    def boot(self) -> str:
        """It never starts again."""
        return "simulated"


class Database:
    """A file in a temporary folder, the records' steps on it, and the same file for the application's sessions."""

    def __init__(self, clock: DatabaseClock) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="oneturn-simulated-")
        self.path = Path(self._folder.name) / "app.db"
        self._connections = [self._connect(), self._connect()]
        migrate(self._connections[0], schema="records")
        writer, reader = (cast("Lane", _Lane(connection)) for connection in self._connections)
        self.records = SqliteRecords(writer, reader, clock)
        self.transactional = SqliteTransactional(clock)
        self._engine: Engine | None = None

    def _connect(self) -> sqlite3.Connection:
        connection = connect(self.path, synchronous="FULL")
        # Nothing here survives the run, and nobody may wait for a lock in real time.
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA busy_timeout = 0")
        return connection

    def engine(self) -> Engine:
        """For the application's own sessions."""
        if self._engine is None:
            from sqlalchemy import create_engine, text  # noqa: PLC0415 - an extra, needed by this world alone
            from sqlalchemy.pool import NullPool  # noqa: PLC0415 - as above

            self._engine = create_engine("sqlite://", creator=self._app_connection, poolclass=NullPool)
            with self._engine.begin() as connection:
                connection.execute(
                    text("CREATE TABLE note (tenant TEXT, scope TEXT, turn TEXT, epoch INTEGER, finishes INTEGER)")
                )
        return self._engine

    def _app_connection(self) -> sqlite3.Connection:
        connection = self._connect()
        connection.isolation_level = "DEFERRED"  # as SQLAlchemy has it
        return connection

    def close(self) -> None:
        """Forget it all."""
        if self._engine is not None:
            self._engine.dispose()
        for connection in self._connections:
            connection.close()
        self._folder.cleanup()


class _Lane:
    """Stands where the lane's thread would: each step is a transaction of its own, taken at once."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    async def run(self, name: str, step: Callable[[Execute], T], *, first: bool = False) -> T:  # noqa: ARG002 - nothing waits
        await failpoint(f"{name}.before")
        answer = self._take(step)
        await failpoint(f"{name}.after")
        return answer

    def _take(self, step: Callable[[Execute], T]) -> T:
        def run(sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
            return self._connection.execute(sql, parameters).fetchall()

        try:
            run("BEGIN IMMEDIATE")
            answer = step(run)
            run("COMMIT")
        except sqlite3.OperationalError as error:
            self._connection.rollback()
            raise BackendUnavailable(f"SQLite: {error}") from error
        except BaseException:
            self._connection.rollback()
            raise
        return answer
