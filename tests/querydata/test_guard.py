"""The guard: what may run, and what is refused with a reason before anything is executed."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from querydata.campus import TABLES, build
from querydata.guard import Guarded, Rejected, guard

HOSTILE = (
    "",
    ";",
    "not sql at all",
    "DELETE FROM student",
    "UPDATE student SET name = 'x'",
    "INSERT INTO student VALUES (1)",
    "DROP TABLE student",
    "ALTER TABLE student ADD COLUMN x",
    "CREATE TABLE x (y INTEGER)",
    "CREATE VIEW v AS SELECT * FROM student",
    "ATTACH DATABASE '/tmp/x.db' AS x",
    "DETACH DATABASE main",
    "PRAGMA table_info(student)",
    "PRAGMA writable_schema = 1",
    "VACUUM INTO '/tmp/x.db'",
    "BEGIN",
    "COMMIT",
    "EXPLAIN SELECT 1",
    "SELECT 1; SELECT 2",
    "SELECT name FROM student; DROP TABLE student",
    "SELECT name FROM student; -- DROP",
    "SELECT load_extension('/tmp/x.so')",
    "SELECT readfile('/etc/passwd')",
    "SELECT writefile('/tmp/x', name) FROM student",
    "SELECT pg_read_file('/etc/passwd')",
    "SELECT randomblob(1000000000)",
    "SELECT zeroblob(1000000000)",
    "SELECT sqlite_version()",
    "SELECT edit(name) FROM student",
    "SELECT fts3_tokenizer('x')",
    "SELECT printf('%.*c', 100000000, 'x')",
    "SELECT * FROM sqlite_master",
    "SELECT * FROM sqlite_schema",
    "SELECT * FROM main.student",
    "SELECT * FROM temp.student",
    "SELECT * FROM pragma_table_info('student')",
    "SELECT * FROM json_each('[1]')",
    "SELECT * FROM generate_series(1, 1000000000)",
    "SELECT * FROM oneturn_execution",
    "SELECT * FROM account",
    "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT * FROM t",
    "WITH x AS (DELETE FROM student RETURNING *) SELECT * FROM x",
    "WITH student AS (SELECT 1 AS id) SELECT * FROM student",
    "SELECT * FROM student, course",
    "SELECT * FROM student CROSS JOIN course",
    "SELECT * FROM student JOIN course",
    "SELECT * FROM student JOIN course ON 1 = 1",
    "SELECT * FROM student NATURAL JOIN class",
    "SELECT * FROM (student CROSS JOIN course)",
    "SELECT s.name FROM student s JOIN course c ON s.id = s.id",
    "SELECT s.name FROM student s JOIN course c ON c.id IS NOT NULL",
    "SELECT s.name FROM student s JOIN course c ON c.id = 1",
    "SELECT s.name FROM student s JOIN course c ON c.id = s.id OR 1 = 1",
    "SELECT s.name FROM student s JOIN course c ON c.id <> s.id",
    "SELECT sql FROM sqlite_master WHERE 1 IN (WITH sqlite_master AS (SELECT 1 AS sql) SELECT sql FROM sqlite_master)",
    "WITH a AS (SELECT id FROM account), account AS (SELECT 1 AS id) SELECT id FROM a",
    "SELECT id AS account FROM student WHERE id IN account",
    "SELECT id AS secret FROM student UNION SELECT secret FROM student",
    "SELECT name FROM student UNION SELECT name FROM teacher ORDER BY secret",
    "SELECT id AS secret, (SELECT secret FROM student) FROM student",
    "SELECT S.PASSWORD FROM student s",
    "SELECT s.title_zh FROM student s",
    "SELECT title_zh FROM student",
    "SELECT x.* FROM student s",
    "s.* student UNION SELECT name FROM teacher",
    "SELECT s.* student UNION SELECT name FROM teacher",
    "SELECT student.name FROM student class JOIN class USING (id)",
    "SELECT a FROM student AS s(a, b)",
    "SELECT name FROM student WINDOW w AS (PARTITION BY secret)",
    "SELECT name /*!50000 , number */ FROM student",
    "SELECT name FROM student /*! c */",
    "SELECT name FROM student WHERE name REGEXP 'x'",
    "SELECT password FROM student",
    "SELECT s.password FROM student AS s",
    "SELECT password AS password FROM student",
    "SELECT 1 AS password FROM student WHERE password > 'a'",
    "SELECT x.secret FROM (SELECT s.secret FROM student AS s) AS x",
    "SELECT rowid FROM student",
    "SELECT name FROM student WHERE id = ?",
    "SELECT name FROM student WHERE id = :id",
    "SELECT name FROM student LIMIT (SELECT 1)",
    "SELECT name FROM student LIMIT -1",
    "SELECT name FROM student WHERE id IN (SELECT id FROM sqlite_master)",
    "SELECT name FROM student UNION SELECT sql FROM sqlite_master",
    "SELECT name FROM student WHERE name = 'a\x00b'",
    "VALUES (1)",
    "SELECT " + "(" * 200 + "1" + ")" * 200,
    "SELECT " + " + ".join(["1"] * 3000),
    "SELECT '" + "x" * 30_000 + "'",
)

GOOD = (
    "SELECT name FROM student",
    "SELECT DISTINCT s.name AS n FROM student AS s ORDER BY n LIMIT 5",
    "SELECT d.name_en, COUNT(*) FROM teacher t JOIN department d ON d.id = t.department_id GROUP BY d.id HAVING COUNT(*) > 3",
    "SELECT name FROM student WHERE id IN (SELECT student_id FROM enrolment)",
    "WITH best AS (SELECT enrolment_id, MAX(score) AS top FROM grade GROUP BY enrolment_id) SELECT AVG(top) FROM best",
    "SELECT name FROM student UNION SELECT name FROM teacher",
    "SELECT CASE WHEN score >= 60 THEN 'pass' ELSE 'fail' END AS r, COUNT(*) FROM grade GROUP BY r",
    "SELECT ROUND(100.0 * SUM(g.score < 60) / COUNT(*), 1) FROM grade AS g",
    "SELECT name, RANK() OVER (ORDER BY number) FROM student",
    "SELECT s.name FROM student AS s LEFT JOIN class AS c ON c.id = s.class_id WHERE c.id IS NULL",
    "SELECT COALESCE(MAX(score), 0) FROM grade",
    "SELECT s.name FROM student s WHERE EXISTS (SELECT 1 FROM enrolment e WHERE e.student_id = S.id AND offering_id > 3)",
    "SELECT NAME FROM STUDENT AS S WHERE s.Gender = '男'",
    "WITH t(a, b) AS (SELECT id, name FROM student) SELECT a, b FROM t ORDER BY t.b",
    "SELECT x.n FROM (SELECT * FROM (SELECT name AS n, COUNT(*) FROM student GROUP BY name)) AS x",
    "SELECT name FROM (SELECT * FROM student UNION SELECT * FROM student)",
    "SELECT g.score FROM grade g JOIN (SELECT AVG(score) AS a FROM grade) AS x ON g.score > x.a",
    "SELECT a.name FROM student a JOIN student b ON a.name = b.name AND a.id < b.id",
    "SELECT name, '/*! text, not a comment */' FROM student",
    "SELECT student.name FROM student JOIN class USING (id)",
    "SELECT name FROM student WHERE id NOT IN (1, 2) AND name LIKE '张%' LIMIT 5 OFFSET 5",
)


@pytest.mark.row("Q1")
@pytest.mark.case("D5")
@pytest.mark.parametrize("sql", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_statement_is_refused_with_a_reason(sql: str) -> None:
    answer = guard(sql, tables=TABLES, max_rows=500)
    assert isinstance(answer, Rejected), answer
    assert answer.reason
    assert answer.code


@pytest.fixture(scope="module")
def campus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    file = tmp_path_factory.mktemp("campus") / "campus.db"
    build(file)
    with closing(sqlite3.connect(file)) as connection:
        yield connection


@pytest.mark.parametrize("sql", GOOD)
def test_what_passes_means_the_same_to_sqlite(sql: str, campus: sqlite3.Connection) -> None:
    answer = guard(sql, tables=TABLES, max_rows=20)
    assert isinstance(answer, Guarded), answer
    ours, theirs = campus.execute(answer.sql), campus.execute(sql)
    assert [column[0] for column in ours.description] == [column[0] for column in theirs.description]
    assert ours.fetchall() == theirs.fetchmany(20)


def test_a_star_stands_for_what_may_be_asked_only() -> None:
    """A column that is not listed stays hidden, however a statement reaches for it."""
    listed = {"student": ("id", "name")}
    assert guard("SELECT * FROM student", tables=listed, max_rows=5) == Guarded(
        sql="SELECT student.id, student.name FROM student LIMIT 5"
    )
    for sql in ("SELECT number FROM student", "SELECT x.number FROM (SELECT * FROM student) AS x"):
        assert isinstance(guard(sql, tables=listed, max_rows=5), Rejected)


@pytest.mark.parametrize("sql", GOOD)
def test_a_reading_statement_passes_and_is_limited(sql: str) -> None:
    answer = guard(sql, tables=TABLES, max_rows=500)
    assert isinstance(answer, Guarded), answer
    assert " LIMIT " in answer.sql


def test_no_comment_survives() -> None:
    answer = guard("SELECT /* a */ name -- b\nFROM student /* c */", tables=TABLES, max_rows=5)
    assert answer == Guarded(sql="SELECT name FROM student LIMIT 5")


@pytest.mark.parametrize(("asked", "given"), [(3, 3), (500, 500), (501, 500)])
def test_a_larger_limit_is_clamped(asked: int, given: int) -> None:
    answer = guard(f"SELECT name FROM student LIMIT {asked}", tables=TABLES, max_rows=500)
    assert answer == Guarded(sql=f"SELECT name FROM student LIMIT {given}")
