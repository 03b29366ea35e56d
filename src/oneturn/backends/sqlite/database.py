"""The files: where they are, how they are opened, and which schema they have."""

from __future__ import annotations

import os
import sqlite3
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import unquote

from oneturn.backends.sqlite import patience
from oneturn.backends.sqlite.statements import script
from oneturn.core.errors import BackendUnavailable, ConfigurationError

OLDEST = (3, 35)
"""The first SQLite that has RETURNING."""

SCHEMAS: dict[str, tuple[str, ...]] = {"records": ("records_0001",), "leases": ("leases_0001",)}
"""Per file, its migrations in order; the version of a file is how many of them it has."""

Synchronous = Literal["FULL", "NORMAL"]

_CREATING = threading.Lock()

_LEVELS = {"NORMAL": 1, "FULL": 2}


@dataclass(frozen=True, slots=True)
class Location:
    """Where a URL points."""

    records: Path


def locate(url: str) -> Location:
    """`sqlite:///relative.db` or `sqlite:////absolute.db`, with or without a `+driver` and a query."""
    _, _, rest = url.partition("://")
    path = unquote(rest.split("?", maxsplit=1)[0])
    if not path.startswith("/") or path in ("/", "/:memory:") or path.startswith("/file:"):
        raise ConfigurationError(
            f"{url!r} names no file: write sqlite:///folder/file.db (relative) or sqlite:////folder/file.db (absolute); "
            "for a store that ends with the process, memory://"
        )
    records = Path(path[1:]).absolute()
    if not records.parent.is_dir():
        raise ConfigurationError(f"{url!r}: the folder {records.parent} does not exist: create it first")
    return Location(records)


def connect(path: Path, *, synchronous: Synchronous) -> sqlite3.Connection:
    """A connection in autocommit mode, whose commits are as durable as `synchronous` says; verified.

    A file that is not there is made, for its owner alone (mode 0600).
    """
    if sqlite3.sqlite_version_info < OLDEST:
        raise ConfigurationError(
            f"this Python's SQLite is {sqlite3.sqlite_version}; oneturn needs {OLDEST[0]}.{OLDEST[1]} or later: "
            "install a newer Python or a newer libsqlite3"
        )
    _create(path)
    connection: sqlite3.Connection | None = None
    try:
        connection = sqlite3.connect(path, timeout=patience.PATIENCE, isolation_level=None, check_same_thread=False)
        mode, level = _configure(connection, synchronous)
    except sqlite3.Error as error:
        if connection is not None:
            connection.close()
        raise _refusal(path, error) from error
    if mode != "wal" or level != _LEVELS[synchronous]:
        connection.close()
        raise ConfigurationError(
            f"{path}: SQLite does not offer WAL with synchronous={synchronous} there (it says {mode}, {level}): is it on a "
            "network file system? Use a local disk"
        )
    return connection


def _create(path: Path) -> None:
    # SQLite would go by the umask; -wal and -shm get the mode of their file. What cannot be made here, SQLite says in its words.
    # One at a time: whoever closes a file takes all locks of this process off it, those of a connection just opened, too.
    with _CREATING, suppress(OSError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def _configure(connection: sqlite3.Connection, synchronous: Synchronous) -> tuple[str, int]:
    # Two that switch a fresh file at once stand in each other's way: SQLite refuses one of them without any patience.
    mode = patience.patiently(lambda: _switched_to_wal(connection), pause=0.002)
    connection.execute(f"PRAGMA synchronous = {synchronous}")
    if synchronous == "FULL":
        # macOS: fsync alone leaves the data in the drive's cache. Elsewhere it means nothing.
        connection.execute("PRAGMA fullfsync = 1")
    return mode, connection.execute("PRAGMA synchronous").fetchone()[0]


def _switched_to_wal(connection: sqlite3.Connection) -> str:
    # Asked first: a file that is in WAL already need not be locked to find out.
    mode = str(connection.execute("PRAGMA journal_mode").fetchone()[0])
    return mode if mode == "wal" else str(connection.execute("PRAGMA journal_mode = WAL").fetchone()[0])


def _refusal(path: Path, error: sqlite3.Error) -> ConfigurationError | BackendUnavailable:
    name = getattr(error, "sqlite_errorname", "")
    if name == "SQLITE_NOTADB":
        return ConfigurationError(f"{path} is not an SQLite database: name another file")
    if name.startswith(("SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_PERM")):
        return ConfigurationError(
            f"{path} cannot be opened for writing ({error}): it must be a file, and this user must be allowed to write it "
            "and to make files beside it"
        )
    return BackendUnavailable(f"{path}: SQLite: {error}")


def migrate(connection: sqlite3.Connection, *, schema: str) -> None:
    """Bring a file to this version's schema, in one transaction; safe when several processes do so at once."""
    path = Path(connection.execute("PRAGMA database_list").fetchone()[2])
    names = SCHEMAS[schema]
    try:
        # Looked at without the write lock first: somebody's long transaction need not delay a start.
        if _version(connection, schema, names) == len(names):
            return
        connection.execute("BEGIN IMMEDIATE")
        try:
            _migrate(connection, schema, names)
            connection.execute("COMMIT")
        except BaseException:
            connection.rollback()
            raise
    except sqlite3.Error as error:
        raise _refusal(path, error) from error


def _version(connection: sqlite3.Connection, schema: str, names: tuple[str, ...]) -> int:
    known = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'oneturn_version'"
    if not connection.execute(known).fetchone():
        return 0
    version = int(connection.execute("SELECT coalesce(max(version), 0) FROM oneturn_version").fetchone()[0])
    if version > len(names):
        raise ConfigurationError(
            f"the {schema} have schema version {version}, this release of oneturn knows {len(names)}: install the release "
            "that wrote them, or a later one"
        )
    return version


def _migrate(connection: sqlite3.Connection, schema: str, names: tuple[str, ...]) -> None:
    version = _version(connection, schema, names)
    if version == len(names):
        return  # another process was first
    connection.execute("CREATE TABLE IF NOT EXISTS oneturn_version (version INTEGER NOT NULL)")
    for name in names[version:]:
        for statement in script(name):
            connection.execute(statement)
    connection.execute("INSERT INTO oneturn_version (version) VALUES (?)", (len(names),))


def migrations() -> str:
    """The statements that `migrate` would run on an empty records file."""
    statements = [
        "CREATE TABLE oneturn_version (version INTEGER NOT NULL)",
        *(statement for name in SCHEMAS["records"] for statement in script(name)),
        f"INSERT INTO oneturn_version (version) VALUES ({len(SCHEMAS['records'])})",
    ]
    return "".join(f"{statement};\n\n" for statement in statements)
