"""The SQLite backend keeps the contracts of the ports, and what only it promises."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from standing_times import StandingTimes

from oneturn import ConfigurationError
from oneturn.backends.sqlite import connect, sqlite_backend
from oneturn.backends.sqlite.database import connect as open_file
from oneturn.backends.sqlite.database import locate, migrations
from oneturn.backends.sqlite.lane import Lane
from oneturn.backends.sqlite.table import SQL
from oneturn.core.errors import BackendUnavailable
from oneturn.core.lease import Grant, Renewal
from oneturn.core.steps import Claimed, Lapsed
from oneturn.core.store import Execute
from oneturn.testing.contracts import (
    LeaseStoreContract,
    RecordStoreContract,
    ReplayCacheContract,
    RetentionContract,
    SignalsContract,
    Subject,
    TransactionalRecordsContract,
    claim_of,
)
from oneturn.testing.contracts.transactional import Transaction


@pytest.fixture
def times() -> StandingTimes:
    return StandingTimes()


@pytest.fixture
async def subject(tmp_path: Path, times: StandingTimes) -> AsyncIterator[Subject]:
    backend = await sqlite_backend(tmp_path / "r.db", times=times)
    yield Subject(backend=backend, elapse=times.elapse)
    await backend.close()


@pytest.fixture
def transaction(tmp_path: Path) -> Transaction:
    @contextmanager
    def begin(commit: bool) -> Iterator[Execute]:
        with closing(sqlite3.connect(tmp_path / "r.db", isolation_level=None)) as connection:
            connection.execute("BEGIN")

            def run(sql: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
                return connection.execute(sql, parameters).fetchall()

            yield run
            connection.execute("COMMIT" if commit else "ROLLBACK")

    return begin


class TestLeases(LeaseStoreContract):
    pass


class TestRecords(RecordStoreContract):
    pass


class TestRetention(RetentionContract):
    pass


class TestSignals(SignalsContract):
    pass


class TestReplays(ReplayCacheContract):
    pass


class TestTransactional(TransactionalRecordsContract):
    pass


@pytest.mark.case("L30")
async def test_a_step_of_the_wall_clock_changes_nothing(subject: Subject, times: StandingTimes) -> None:
    record = await subject.claimed(ttl=60)
    grant = await subject.backend.leases.acquire(["k"], owner="a", ttl=60)
    assert isinstance(grant, Grant)
    for step in (3600, -7200):
        times.step_wall(step)
        assert await subject.backend.leases.renew([grant]) == [Renewal.KEPT]
        found = await subject.backend.records.read(tenant="acme", id=record.id)
        assert found is not None
        assert round(found.remaining) == 60


async def test_what_another_boot_vouched_for_has_lapsed(subject: Subject, times: StandingTimes) -> None:
    await subject.claimed(ttl=60)
    await subject.backend.leases.acquire(["k"], owner="a", ttl=60)
    times.boot_id = "another boot"
    assert await subject.backend.leases.inspect("k") is None
    assert isinstance(await subject.backend.records.claim(claim_of()), Lapsed)


async def test_steps_that_wait_commit_together_and_one_that_fails_fails_alone(tmp_path: Path) -> None:
    """Two hundred steps, far fewer commits; the culprit's neighbours are stored."""
    lane = Lane(lambda: open_file(tmp_path / "x.db", synchronous="FULL"), name="test", writes=True)
    await lane.open()
    await lane.run("create", lambda run: run("CREATE TABLE x (n INTEGER)", ()))

    def insert(number: int) -> Any:
        def step(run: Execute) -> None:
            if number == 77:
                raise ZeroDivisionError
            run("INSERT INTO x VALUES (?)", (number,))

        return step

    first, *rest = [asyncio.wrap_future(lane.submit(insert(number))) for number in range(200) if number != 77]
    assert isinstance(first, asyncio.Future)
    await asyncio.gather(first, *rest)
    assert lane.commits < 50
    outcomes = await asyncio.gather(
        *(asyncio.wrap_future(lane.submit(insert(number))) for number in (76, 77, 78)), return_exceptions=True
    )
    assert [type(outcome) for outcome in outcomes] == [type(None), ZeroDivisionError, type(None)]
    assert await lane.run("count", lambda run: run("SELECT COUNT(*) FROM x", ())) == [(201,)]
    await lane.close()
    with pytest.raises(BackendUnavailable):
        await lane.run("late", lambda run: run("SELECT 1", ()))


async def test_somebodys_long_transaction_does_not_stop_a_renewal(
    subject: Subject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The records are locked by another connection; the leases live in a file of their own."""
    grant = await subject.backend.leases.acquire(["k"], owner="a", ttl=60)
    assert isinstance(grant, Grant)
    with closing(sqlite3.connect(tmp_path / "r.db", isolation_level=None)) as foreign:
        foreign.execute("BEGIN IMMEDIATE")
        claiming = asyncio.ensure_future(subject.backend.records.claim(claim_of()))  # noqa: TID251 - awaited below
        assert await subject.backend.leases.renew([grant]) == [Renewal.KEPT]
        assert not claiming.done()
        foreign.execute("ROLLBACK")
        assert isinstance(await claiming, Claimed)


KILLED = """
import asyncio, os, signal, sys
from oneturn.backends.sqlite import connect
from oneturn.testing.contracts import Subject
from oneturn.testing.contracts.subject import finish_of

async def main():
    subject = Subject(backend=await connect("sqlite:///" + sys.argv[1]), elapse=lambda seconds: None)
    record = await subject.claimed(key="k")
    await subject.backend.records.finish(finish_of(record))
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


@pytest.mark.case("O7")
@pytest.mark.slow
async def test_what_was_answered_is_there_after_kill_9(tmp_path: Path) -> None:
    """The process dies in the very moment after the reply."""
    file = tmp_path / "killed.db"
    died = await asyncio.create_subprocess_exec(sys.executable, "-c", KILLED, str(file))
    assert await died.wait() == -9
    backend = await connect(f"sqlite:///{file}")
    (record,) = await backend.records.turns(tenant="acme", scope="c")
    assert (record.status.value, record.body) == ("succeeded", b'"done"')
    await backend.close()


@pytest.mark.slow
def test_several_processes_may_open_a_fresh_file_at_once(tmp_path: Path) -> None:
    """Each migrates or finds it migrated."""
    command = [sys.executable, "-m", "oneturn.cli", "migrate", "--records", f"sqlite:///{tmp_path / 'new.db'}"]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(4)]
    outcomes = [process.communicate() for process in processes]
    assert [process.returncode for process in processes] == [0] * 4, outcomes
    with closing(sqlite3.connect(tmp_path / "new.db")) as connection:
        assert connection.execute("SELECT version FROM oneturn_version").fetchall() == [(1,)]


def test_the_printed_migrations_make_the_same_schema(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "printed.db")) as connection:
        connection.executescript(migrations())
        printed = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    command = [sys.executable, "-m", "oneturn.cli", "migrate", "--records", f"sqlite:///{tmp_path / 'made.db'}"]
    subprocess.run(command, check=True, capture_output=True)
    with closing(sqlite3.connect(tmp_path / "made.db")) as connection:
        made = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    assert {name: " ".join(sql.split()).replace("IF NOT EXISTS ", "") for name, sql in printed} == {
        name: " ".join(sql.split()).replace("IF NOT EXISTS ", "") for name, sql in made
    }


async def test_what_cannot_be_opened_is_refused_in_words(tmp_path: Path) -> None:
    text = tmp_path / "text.db"
    text.write_text("this is no database, and it is long enough to be read as a header" * 20)
    newer = tmp_path / "newer.db"
    with closing(sqlite3.connect(newer)) as connection, connection:
        connection.execute("CREATE TABLE oneturn_version (version INTEGER NOT NULL)")
        connection.execute("INSERT INTO oneturn_version VALUES (99)")
    for url, words in (
        (f"sqlite:///{text}", "not an SQLite database"),
        (f"sqlite:///{newer}", "schema version 99"),
        (f"sqlite:///{tmp_path}/missing/x.db", "does not exist"),
        ("sqlite://", "names no file"),
        ("sqlite:///:memory:", "names no file"),
    ):
        with pytest.raises(ConfigurationError, match=words):
            await connect(url)


def test_a_database_url_is_taken_as_it_is(tmp_path: Path) -> None:
    for scheme in ("sqlite", "sqlite+aiosqlite", "sqlite+pysqlite"):
        assert locate(f"{scheme}:///{tmp_path}/a%20b.db?cache=shared").records == tmp_path / "a b.db"


@pytest.mark.parametrize(
    "name",
    [
        "find",
        "read",
        "running",
        "queued",
        "history",
        "turns",
        "lapsed",
        "startable",
        "scope_events",
        "newest_answered",
        "ended_before",
    ],
)
async def test_no_statement_reads_a_whole_table(subject: Subject, tmp_path: Path, name: str) -> None:
    """What a million records cost is what a thousand cost."""
    with closing(sqlite3.connect(tmp_path / "r.db")) as connection:
        marks = SQL[name].count("?")
        plan = connection.execute(f"EXPLAIN QUERY PLAN {SQL[name]}", (None,) * marks).fetchall()
    scans = [
        row[3] for row in plan if row[3].startswith("SCAN") and "INDEX" not in row[3] and "json_each" not in row[3]
    ]
    assert scans == []
