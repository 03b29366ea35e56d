"""What the settings stand for: the campus, behind two walls."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from querydata.assembly import campus_source
from querydata.campus import build
from querydata.chain import Source
from querydata.execute import QueryFailed
from querydata.settings import Settings


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The campus, with a table and a column that nobody declared."""
    file = tmp_path_factory.mktemp("campus") / "campus.db"
    build(file)
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("CREATE TABLE salary (teacher_id INTEGER, amount INTEGER)")
        connection.execute("INSERT INTO salary VALUES (1, 9000)")
        connection.execute("ALTER TABLE student ADD COLUMN passport TEXT")
    return file


@pytest.fixture
def source(file: Path) -> Iterator[Source]:
    one = campus_source(Settings(data_dir=file.parent), file)
    yield one
    one.database.close()


@pytest.mark.parametrize("table", ["student", "teacher", "grade", "department"])
async def test_the_campus_can_be_asked(source: Source, table: str) -> None:
    columns = ", ".join(source.tables[table])
    assert (await source.database.run(f"SELECT {columns} FROM {table}")).rows


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT amount FROM salary",
        "SELECT count(*) FROM salary",
        "SELECT name FROM teacher WHERE id IN (SELECT teacher_id FROM salary)",
        "SELECT passport FROM student",
        "SELECT * FROM student",
        "SELECT name FROM sqlite_master",
        "SELECT count(*) FROM sqlite_master",
        "SELECT count(*) FROM pragma_table_info('student')",
        "WITH x AS (SELECT amount FROM salary GROUP BY amount) SELECT count(*) FROM x",
        "WITH x AS (SELECT count(*) AS n FROM salary) SELECT count(*) FROM x",
    ],
)
async def test_what_is_not_of_the_campus_is_refused_by_the_database_itself(source: Source, sql: str) -> None:
    """The guard is not asked here: what it might overlook ends at this wall."""
    with pytest.raises(QueryFailed, match=r"prohibited|not authorized") as failed:
        await source.database.run(sql)
    assert failed.value.code == "sql-error"


async def test_the_rows_of_a_common_table_can_be_counted(source: Source) -> None:
    sql = "WITH x AS MATERIALIZED (SELECT gender FROM student GROUP BY gender) SELECT count(*) FROM x"
    assert (await source.database.run(sql)).rows == ((2,),)
