"""The executor: read-only, bounded, really stopped, and nothing is left checked out."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from querydata.campus import build
from querydata.execute import Database, QueryFailed

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
    ],
)
async def test_the_second_wall_holds_without_the_guard(database: Database, file: Path, sql: str) -> None:
    with pytest.raises(QueryFailed) as failed:
        await database.run(sql)
    assert failed.value.code == "sql-error"
    connection = sqlite3.connect(file)
    assert connection.execute("SELECT COUNT(*) FROM student").fetchone()[0] >= 2000
    connection.close()
