"""The files: where they are, how they are opened, and which schema they have."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import unquote

from oneturn.backends.sqlite.statements import script
from oneturn.core.errors import ConfigurationError

PATIENCE = 5.0
"""Seconds that a statement waits for another process's transaction before its outcome is called unknown."""

SCHEMAS: dict[str, tuple[str, ...]] = {"records": ("records_0001",), "leases": ("leases_0001",)}
"""Per file, its migrations in order; the version of a file is how many of them it has."""

Synchronous = Literal["FULL", "NORMAL"]


@dataclass(frozen=True, slots=True)
class Location:
    """Where a URL points."""

    records: Path

    @property
    def leases(self) -> Path:
        """The file beside it that holds leases and signals."""
        return self.records.with_name(f"{self.records.name}-leases")


def locate(url: str) -> Location:
    """`sqlite:///relative.db` or `sqlite:////absolute.db`, with or without a `+driver` and a query."""
    _, _, rest = url.partition("://")
    path = unquote(rest.split("?", maxsplit=1)[0])
    if not path.startswith("/") or path in ("/", "/:memory:"):
        raise ConfigurationError(
            f"{url!r} names no file: write sqlite:///folder/file.db (relative) or sqlite:////folder/file.db (absolute); "
            "for a store that ends with the process, memory://"
        )
    records = Path(path[1:]).absolute()
    if not records.parent.is_dir():
        raise ConfigurationError(f"{url!r}: the folder {records.parent} does not exist: create it first")
    return Location(records)


def connect(path: Path, *, synchronous: Synchronous) -> sqlite3.Connection:
    """A connection in autocommit mode, whose commits are as durable as `synchronous` says; verified."""
    connection = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
    try:
        mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
        connection.execute(f"PRAGMA synchronous = {synchronous}")
        level = connection.execute("PRAGMA synchronous").fetchone()[0]
    except sqlite3.DatabaseError as error:
        connection.close()
        if "not a database" in str(error):
            raise ConfigurationError(f"{path} is not an SQLite database: name another file") from error
        raise
    if mode != "wal" or level != {"FULL": 2, "NORMAL": 1}[synchronous]:
        connection.close()
        raise ConfigurationError(
            f"{path}: SQLite does not offer WAL with synchronous={synchronous} there (it says {mode}, {level}): is it on a "
            "network file system? Use a local disk"
        )
    return connection


def migrate(connection: sqlite3.Connection, *, schema: str) -> None:
    """Bring a file to this version's schema, in one transaction; safe when several processes do so at once."""
    names = SCHEMAS[schema]
    connection.execute("BEGIN IMMEDIATE")
    try:
        _migrate(connection, schema, names)
        connection.execute("COMMIT")
    except BaseException:
        connection.rollback()
        raise


def _migrate(connection: sqlite3.Connection, schema: str, names: tuple[str, ...]) -> None:
    connection.execute("CREATE TABLE IF NOT EXISTS oneturn_version (version INTEGER NOT NULL)")
    version = connection.execute("SELECT max(version) FROM oneturn_version").fetchone()[0] or 0
    if version > len(names):
        raise ConfigurationError(
            f"the {schema} have schema version {version}, this release of oneturn knows {len(names)}: install the release "
            "that wrote them, or a later one"
        )
    for name in names[version:]:
        for statement in script(name):
            connection.execute(statement)
    if version < len(names):
        connection.execute("INSERT INTO oneturn_version (version) VALUES (?)", (len(names),))


def migrations() -> str:
    """The statements that `migrate` would run on an empty records file."""
    statements = [
        "CREATE TABLE oneturn_version (version INTEGER NOT NULL)",
        *(statement for name in SCHEMAS["records"] for statement in script(name)),
        f"INSERT INTO oneturn_version (version) VALUES ({len(SCHEMAS['records'])})",
    ]
    return "".join(f"{statement};\n\n" for statement in statements)
