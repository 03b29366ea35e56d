"""Where the page's own rows live: one SQLite file beside the records, one short transaction at a time."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Final

NOW: Final = "CAST(strftime('%s', 'now') AS INTEGER)"
"""The database's clock, in SQL: one clock for all processes that share the file."""


class Database:
    """QueryData's own file. Its calls block: routes that use it are plain functions, which FastAPI runs in threads."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def prepare(self) -> None:
        """Create the file and its tables, if they are not there."""
        script = files("querydata").joinpath("schema.sql").read_text(encoding="utf-8")
        with closing(self._connect()) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.executescript(script)

    @contextmanager
    def begin(self) -> Iterator[sqlite3.Connection]:
        """A transaction that writes: committed at the end, rolled back by an exception."""
        with closing(self._connect()) as connection:
            # IMMEDIATE: a check and the write that rests on it are one step, also between processes.
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.rollback()
                raise
            connection.commit()

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """A connection for one look."""
        with closing(self._connect()) as connection:
            yield connection

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, timeout=5, isolation_level=None)
        connection.execute("PRAGMA foreign_keys = ON")
        return connection
