"""The guard: what may run, and what is refused with a reason before anything is executed."""

from __future__ import annotations

import pytest

from querydata.campus import TABLES
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
    "SELECT password FROM student",
    "SELECT s.password FROM student AS s",
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
)


@pytest.mark.row("Q1")
@pytest.mark.parametrize("sql", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_statement_is_refused_with_a_reason(sql: str) -> None:
    answer = guard(sql, tables=TABLES, max_rows=500)
    assert isinstance(answer, Rejected), answer
    assert answer.reason
    assert answer.code


@pytest.mark.parametrize("sql", GOOD)
def test_a_reading_statement_passes_and_is_limited(sql: str) -> None:
    answer = guard(sql, tables=TABLES, max_rows=500)
    assert isinstance(answer, Guarded), answer
    assert " LIMIT " in answer.sql


def test_no_comment_survives() -> None:
    answer = guard("SELECT /* a */ name -- b\nFROM student /*! c */", tables=TABLES, max_rows=5)
    assert answer == Guarded(sql="SELECT name FROM student LIMIT 5")


@pytest.mark.parametrize(("asked", "given"), [(3, 3), (500, 500), (501, 500)])
def test_a_larger_limit_is_clamped(asked: int, given: int) -> None:
    answer = guard(f"SELECT name FROM student LIMIT {asked}", tables=TABLES, max_rows=500)
    assert answer == Guarded(sql=f"SELECT name FROM student LIMIT {given}")
