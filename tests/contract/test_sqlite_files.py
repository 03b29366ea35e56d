"""The SQLite files: what survives a kill, how they are migrated, and what is refused in words."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from oneturn import ConfigurationError
from oneturn.backends.sqlite import connect
from oneturn.backends.sqlite.database import SCHEMAS, locate, migrate, migrations
from oneturn.backends.sqlite.database import connect as open_file
from oneturn.core.steps import Existing
from oneturn.testing.contracts import claim_of

KILLED = """
import asyncio, os, signal, sys
from oneturn.backends.sqlite import connect
from oneturn.testing.contracts import Subject

async def main():
    subject = Subject(backend=await connect("sqlite:///" + sys.argv[1]), elapse=lambda seconds: None)
    record = await subject.claimed(key="k")
    if sys.argv[2] == "finish":
        await subject.finished(record)
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


async def _die(file: Path, *, after: str) -> None:
    died = await asyncio.create_subprocess_exec(sys.executable, "-c", KILLED, str(file), after)
    assert await died.wait() == -signal.SIGKILL


@pytest.mark.case("O7")
@pytest.mark.slow
async def test_a_result_that_was_answered_is_there_after_kill_9(tmp_path: Path) -> None:
    """The process dies in the very moment after the reply."""
    file = tmp_path / "killed.db"
    await _die(file, after="finish")
    backend = await connect(f"sqlite:///{file}")
    (record,) = await backend.records.turns(tenant="acme", scope="c")
    assert (record.status.value, record.body) == ("succeeded", b'"done"')
    events = await backend.records.events(tenant="acme", id=record.id, after=0)
    assert [event.kind for event in events] == ["started", "succeeded"]
    await backend.close()
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


@pytest.mark.case("O6")
@pytest.mark.slow
async def test_a_claim_that_was_answered_is_not_claimed_again_after_kill_9(tmp_path: Path) -> None:
    """The same boot: the dead process's record is alive until its time has passed."""
    file = tmp_path / "killed.db"
    await _die(file, after="claim")
    backend = await connect(f"sqlite:///{file}")
    answer = await backend.records.claim(claim_of(key="k", owner="somebody else"))
    assert isinstance(answer, Existing)
    assert (answer.record.status.value, answer.record.remaining > 0) == ("running", True)
    await backend.close()


def _schema(file: Path) -> set[tuple[str, str]]:
    with closing(sqlite3.connect(file)) as connection:
        rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    return {(name, " ".join(sql.split()).replace("IF NOT EXISTS ", "")) for name, sql in rows}


def _version(file: Path) -> list[tuple[int]]:
    with closing(sqlite3.connect(file)) as connection:
        return connection.execute("SELECT version FROM oneturn_version").fetchall()


@pytest.mark.slow
def test_several_processes_may_migrate_a_fresh_file_at_once(tmp_path: Path) -> None:
    """Each migrates or finds it migrated."""
    file = tmp_path / "new.db"
    command = [sys.executable, "-m", "oneturn.cli", "migrate", "--records", f"sqlite:///{file}"]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(3)]
    outcomes = [process.communicate() for process in processes]
    assert [process.returncode for process in processes] == [0] * 3, outcomes
    assert max(_version(file)) == (len(SCHEMAS["records"]),)


def test_whoever_opens_a_fresh_file_at_the_same_moment_gets_it(tmp_path: Path) -> None:
    """SQLite does not wait by itself when two want to switch a file to WAL: it refuses one of them at once."""
    together = threading.Barrier(3)

    def opening(file: Path) -> None:
        together.wait()
        with closing(open_file(file, synchronous="NORMAL")) as connection:
            migrate(connection, schema="leases")

    with ThreadPoolExecutor(3) as threads:
        for number in range(60):
            file = tmp_path / f"{number}.db"
            for opened in [threads.submit(opening, file) for _ in range(3)]:
                opened.result()
            assert max(_version(file)) == (len(SCHEMAS["leases"]),)


async def test_opening_a_file_again_and_at_once_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "r.db"
    first = await asyncio.gather(*(connect(f"sqlite:///{file}") for _ in range(4)))
    schema, version = _schema(file), _version(file)
    for backend in first:
        await backend.close()
    await (await connect(f"sqlite:///{file}")).close()
    assert _schema(file) == schema
    assert _version(file) == version
    assert max(version) == (len(SCHEMAS["records"]),)
    assert max(_version(file.with_name("r.db-leases"))) == (len(SCHEMAS["leases"]),)


async def test_the_printed_migrations_make_the_same_schema(tmp_path: Path) -> None:
    printed, made = tmp_path / "printed.db", tmp_path / "made.db"
    with closing(sqlite3.connect(printed)) as connection:
        connection.executescript(migrations())
    await (await connect(f"sqlite:///{made}")).close()
    assert _schema(printed) == _schema(made)
    assert max(_version(printed)) == max(_version(made))


@pytest.fixture
def _everybody_may_read() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def _modes(folder: Path) -> dict[str, int]:
    return {file.name: stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()}


@pytest.mark.usefixtures("_everybody_may_read")
async def test_new_files_are_their_owners_alone(tmp_path: Path) -> None:
    """Whatever the process's umask: prompts and answers are in them."""
    backend = await connect(f"sqlite:///{tmp_path}/r.db")
    await backend.records.claim(claim_of())
    names = [f"r.db{beside}{end}" for beside in ("", "-leases") for end in ("", "-wal", "-shm")]
    assert _modes(tmp_path) == dict.fromkeys(names, 0o600)
    await backend.close()


@pytest.mark.usefixtures("_everybody_may_read")
async def test_a_file_that_is_there_keeps_its_mode(tmp_path: Path) -> None:
    """Its owner has decided: a group may share it."""
    for name in ("r.db", "r.db-leases"):
        (tmp_path / name).touch(mode=0o660)
    backend = await connect(f"sqlite:///{tmp_path}/r.db")
    await backend.records.claim(claim_of())
    assert set(_modes(tmp_path).values()) == {0o660}
    await backend.close()


async def test_an_applications_own_tables_in_the_file_are_left_alone(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "app.db")) as connection, connection:
        connection.execute("CREATE TABLE orders (n INTEGER)")
        connection.execute("INSERT INTO orders VALUES (1)")
    await (await connect(f"sqlite:///{tmp_path}/app.db")).close()
    with closing(sqlite3.connect(tmp_path / "app.db")) as connection:
        assert connection.execute("SELECT n FROM orders").fetchall() == [(1,)]
        names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert all(name.startswith("oneturn_") for name in names - {"orders"})


def _no_database(folder: Path) -> str:
    (folder / "text.db").write_text("this is no database, and it is long enough to be read as a header" * 20)
    return f"sqlite:///{folder}/text.db"


def _newer(folder: Path, name: str) -> str:
    with closing(sqlite3.connect(folder / name)) as connection, connection:
        connection.execute("CREATE TABLE oneturn_version (version INTEGER NOT NULL)")
        connection.execute("INSERT INTO oneturn_version VALUES (99)")
    return f"sqlite:///{folder}/{name.removesuffix('-leases')}"


async def test_a_file_that_is_no_database_is_refused_in_words_and_left_as_it_is(tmp_path: Path) -> None:
    url = _no_database(tmp_path)
    before = (tmp_path / "text.db").read_bytes()
    with pytest.raises(ConfigurationError, match="not an SQLite database"):
        await connect(url)
    assert (tmp_path / "text.db").read_bytes() == before


@pytest.mark.parametrize("name", ["newer.db", "newer.db-leases"])
async def test_a_newer_schema_is_refused_in_words_and_left_as_it_is(tmp_path: Path, name: str) -> None:
    url = _newer(tmp_path, name)
    with pytest.raises(ConfigurationError, match=r"schema version 99.*install"):
        await connect(url)
    assert _version(tmp_path / name) == [(99,)]


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("sqlite:///{folder}/missing/x.db", "folder .*missing does not exist"),
        ("sqlite://", "names no file"),
        ("sqlite:///", "names no file"),
        ("sqlite:///:memory:", "names no file.*memory://"),
        ("sqlite://relative.db", "names no file"),
    ],
)
async def test_a_url_that_names_no_possible_file_is_refused_in_words(tmp_path: Path, url: str, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        await connect(url.format(folder=tmp_path))


async def test_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "folder.db").mkdir()
    with pytest.raises(ConfigurationError, match=r"folder\.db"):
        await connect(f"sqlite:///{tmp_path}/folder.db")


def test_a_database_url_is_taken_as_it_is(tmp_path: Path) -> None:
    for scheme in ("sqlite", "sqlite+aiosqlite", "sqlite+pysqlite"):
        assert locate(f"{scheme}:///{tmp_path}/a%20b.db?cache=shared").records == tmp_path / "a b.db"
