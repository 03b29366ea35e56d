"""The executor: read-only, bounded, really stopped, and nothing is left checked out."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from querydata.campus import build
from querydata.execute import Database, QueryFailed, _Statement

SLOW = "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT COUNT(*) FROM t"
"""Runs until it is stopped. The guard would refuse it; the executor must hold without the guard."""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("campus") / "campus.db"
    build(file)
    return file


@pytest.fixture
def database(file: Path) -> Iterator[Database]:
    one = Database(file, statement_timeout=60, max_rows=10)
    yield one
    assert one.checked_out == 0
    one.close()


async def test_rows_come_with_their_columns_and_say_whether_there_were_more(database: Database) -> None:
    table = await database.run("SELECT id, name FROM student ORDER BY id")
    assert table.columns == ("id", "name")
    assert (len(table.rows), table.truncated) == (10, True)
    assert not (await database.run("SELECT 1 AS one")).truncated


@pytest.mark.case("D1")
async def test_twenty_at_once_leave_nothing_checked_out(database: Database) -> None:
    """One connection a statement, in one thread; also for those that are cancelled or fail."""
    slow = [asyncio.ensure_future(database.run(SLOW)) for _ in range(6)]  # noqa: TID251 - cancelled and awaited below
    quick = [asyncio.ensure_future(database.run("SELECT COUNT(*) FROM grade")) for _ in range(14)]  # noqa: TID251
    while database.checked_out < 6:  # noqa: ASYNC110 - threads begin by themselves
        await asyncio.sleep(0)
    for task in slow:
        task.cancel()
    outcomes = await asyncio.gather(*slow, *quick, return_exceptions=True)
    assert all(isinstance(outcome, asyncio.CancelledError) for outcome in outcomes[:6])
    assert len({str(outcome) for outcome in outcomes[6:]}) == 1
    assert database.checked_out == 0


@pytest.mark.case("D3")
async def test_a_stop_interrupts_the_statement(database: Database) -> None:
    """The database itself stops working on it: the thread has given its connection back."""
    hooks: list[Callable[[], object]] = []
    running = asyncio.ensure_future(database.run(SLOW, on_stop=hooks.append))  # noqa: TID251 - awaited below
    while database.checked_out == 0:  # noqa: ASYNC110
        await asyncio.sleep(0)
    hooks[0]()
    with pytest.raises(QueryFailed) as failed:
        await running
    assert failed.value.code == "interrupted"
    assert database.checked_out == 0


async def test_a_stop_before_the_statement_began_prevents_it(database: Database) -> None:
    def at_once(hook: Callable[[], object]) -> None:
        hook()

    with pytest.raises(QueryFailed) as failed:
        await database.run("SELECT 1", on_stop=at_once)
    assert failed.value.code == "interrupted"


@pytest.mark.case("D3")
async def test_a_stop_between_the_connection_and_the_first_step_is_not_lost(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite forgets an interrupt that finds nothing running; the statement must not run to its time limit for it."""
    begin = _Statement.begin

    def begin_and_stop(self: _Statement, connection: sqlite3.Connection) -> None:
        begin(self, connection)
        self.interrupt()

    monkeypatch.setattr(_Statement, "begin", begin_and_stop)
    async with asyncio.timeout(20):  # far below the fixture's statement timeout
        with pytest.raises(QueryFailed) as failed:
            await database.run(SLOW)
    assert failed.value.code == "interrupted"


@pytest.mark.case("D3")
async def test_a_statement_that_waits_for_a_thread_is_stopped_at_once(file: Path) -> None:
    """Stop, cancel and close: none of them waits for the statement in front."""
    database = Database(file, statement_timeout=60, max_rows=10, threads=1)
    hooks: list[Callable[[], object]] = []
    first = asyncio.ensure_future(database.run(SLOW))  # noqa: TID251 - ended by close below
    while database.checked_out == 0:  # noqa: ASYNC110
        await asyncio.sleep(0)
    stopped, cancelled, closed = (
        asyncio.ensure_future(database.run("SELECT 1", on_stop=hooks.append))  # noqa: TID251 - each ended below
        for _ in range(3)
    )
    while len(hooks) < 3:  # noqa: ASYNC110
        await asyncio.sleep(0)
    hooks[0]()
    with pytest.raises(QueryFailed, match="stopped"):
        await stopped
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    assert (database.checked_out, first.done()) == (1, False)
    database.close()
    for each in (closed, first):
        with pytest.raises(QueryFailed) as failed:
            await each
        assert failed.value.code == "interrupted"
    assert database.checked_out == 0


async def test_a_cancel_that_comes_twice_still_waits_for_the_thread(database: Database) -> None:
    running = asyncio.ensure_future(database.run(SLOW))  # noqa: TID251 - cancelled and awaited below
    while database.checked_out == 0:  # noqa: ASYNC110
        await asyncio.sleep(0)
    running.cancel()
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert database.checked_out == 0


@pytest.mark.case("D4")
async def test_the_time_limit_is_named(file: Path) -> None:
    database = Database(file, statement_timeout=0.05, max_rows=10)
    with pytest.raises(QueryFailed) as failed:
        await database.run(SLOW)
    assert failed.value.code == "statement-timeout"
    assert "0.05 s" in failed.value.message
    database.close()


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM student",
        "PRAGMA query_only = OFF",
        "ATTACH DATABASE ':memory:' AS x",
        "CREATE TEMP TABLE x (y)",
        "SELECT load_extension('x')",
        "SELECT nothing FROM nowhere",
        "SELECT sql FROM sqlite_master",
        "SELECT randomblob(1000000000)",
        "SELECT replace(replace(hex(zeroblob(9999)), '0', '0000000000'), '0', hex(name || name)) FROM student",
        "SELECT 1; SELECT 2",
        "SELECT 1 \x00",
        "SELECT '\ud800'",
    ],
)
async def test_the_second_wall_holds_without_the_guard(database: Database, file: Path, sql: str) -> None:
    with pytest.raises(QueryFailed) as failed:
        await database.run(sql)
    assert failed.value.code == "sql-error"
    connection = sqlite3.connect(file)
    assert connection.execute("SELECT COUNT(*) FROM student").fetchone()[0] >= 2000
    connection.close()


async def test_a_file_that_is_not_there_is_a_failed_query(tmp_path: Path) -> None:
    database = Database(tmp_path / "none.db", statement_timeout=1, max_rows=1)
    with pytest.raises(QueryFailed) as failed:
        await database.run("SELECT 1")
    assert (failed.value.code, database.checked_out) == ("sql-error", 0)
    assert not (tmp_path / "none.db").exists()
    database.close()


async def test_with_tables_sqlite_itself_reads_nothing_else(file: Path) -> None:
    """Subqueries, counts and common names included: SQLite says what is read, not the text of the statement."""
    database = Database(file, statement_timeout=60, max_rows=10, tables={"student": ("id", "name")})
    for sql in (
        "SELECT name FROM student",
        "SELECT COUNT(*) FROM student",
        "WITH x AS (SELECT id FROM student) SELECT COUNT(*), MAX(id) FROM x",
    ):
        await database.run(sql)
    for sql in (
        "SELECT number FROM student",
        "SELECT * FROM student",
        "SELECT COUNT(*) FROM teacher",
        "SELECT id AS number FROM student WHERE number > '2'",
        "SELECT id FROM student WHERE id IN teacher",
    ):
        with pytest.raises(QueryFailed) as failed:
            await database.run(sql)
        assert failed.value.code == "sql-error"
    database.close()
