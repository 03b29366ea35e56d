"""The row filter: each role is answered as by a database in which the rows of others do not exist."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from querydata.access import Access, Permit
from querydata.assembly import access_of
from querydata.campus import TABLES, build
from querydata.guard import Guarded, Rejected, guard
from querydata.settings import Settings

from .row_queries import ESCAPES, QUERIES

CLAIMS: Mapping[str, Mapping[str, str]] = {
    "admin": {"role": "admin"},
    "dean": {"role": "dean", "department_id": "2"},
    "student": {"role": "student", "student_id": "7"},
}

OF_STUDENTS = {
    "dean": "class_id IN (SELECT c.id FROM class c JOIN major m ON m.id = c.major_id WHERE m.department_id = 2)",
    "student": "id = 7",
}
"""Which students stay; the rest follows from them, by other SQL than the filter's."""

KEPT = {
    "grade": "enrolment_id IN (SELECT id FROM enrolment)",
    "enrolment": "student_id IN (SELECT id FROM student)",
}

OTHERS = {
    "dean": {
        "teacher": "department_id = 2",
        "class": "EXISTS (SELECT 1 FROM major m WHERE m.id = class.major_id AND m.department_id = 2)",
    },
    "student": {
        "teacher": "EXISTS (SELECT 1 FROM offering o JOIN enrolment e ON e.offering_id = o.id WHERE o.teacher_id = teacher.id)",
        "class": "EXISTS (SELECT 1 FROM student s WHERE s.class_id = class.id)",
    },
}

HIDDEN_NUMBER = "SELECT number FROM student WHERE class_id = 1 ORDER BY id LIMIT 1"
"""Of a student of department 1, and not number 7."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reduced:
    """A role, and the campus with its rows only."""

    permit: Permit
    whole: sqlite3.Connection
    theirs: sqlite3.Connection


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("campus") / "campus.db"
    build(file)
    return file


@pytest.fixture(scope="module", params=list(CLAIMS))
def reduced(request: pytest.FixtureRequest, file: Path) -> Iterator[Reduced]:
    role = request.param
    other = file.with_name(f"{role}.db")
    shutil.copy(file, other)
    with closing(sqlite3.connect(file)) as whole, closing(sqlite3.connect(other)) as theirs:
        if role in OF_STUDENTS:
            for table, kept in (
                {"student": OF_STUDENTS[role], "enrolment": KEPT["enrolment"], "grade": KEPT["grade"]}
            ).items():
                theirs.execute(f"DELETE FROM {table} WHERE NOT ({kept})")
            for table, kept in OTHERS[role].items():
                theirs.execute(f"DELETE FROM {table} WHERE NOT ({kept})")
            theirs.commit()
        yield Reduced(permit=permit_of(role), whole=whole, theirs=theirs)


def permit_of(role: str) -> Permit:
    permit = access_of(Settings()).permit(CLAIMS[role])
    assert permit is not None
    return permit


def answered(connection: sqlite3.Connection, sql: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    cursor = connection.execute(sql)
    return [column[0].lower() for column in cursor.description], sorted(cursor.fetchall(), key=repr)


def passed(sql: str, permit: Permit | None) -> Guarded:
    verdict = guard(sql, tables=TABLES, max_rows=1_000_000, permit=permit)
    assert isinstance(verdict, Guarded), verdict
    return verdict


@pytest.mark.case("D10")
@pytest.mark.parametrize("sql", QUERIES)
def test_the_answer_is_that_of_a_database_with_the_permitted_rows_only(sql: str, reduced: Reduced) -> None:
    assert answered(reduced.whole, passed(sql, reduced.permit).sql) == answered(reduced.theirs, sql)


@pytest.mark.parametrize("role", ["dean", "student"])
def test_the_filter_changes_most_of_these_answers(role: str, file: Path) -> None:
    """So the comparison above is one: a filter that did nothing would fail it."""
    permit = permit_of(role)
    with closing(sqlite3.connect(file)) as whole:
        changed = [sql for sql in QUERIES if answered(whole, passed(sql, permit).sql) != answered(whole, sql)]
    assert len(changed) >= 0.8 * len(QUERIES)


def test_the_administrator_is_asked_nothing_more(file: Path) -> None:
    for sql in QUERIES:
        assert passed(sql, permit_of("admin")) == passed(sql, None)


@pytest.mark.case("D5", "D10")
@pytest.mark.parametrize("role", CLAIMS)
@pytest.mark.parametrize("sql", ESCAPES)
def test_what_tries_to_get_around_the_filter_is_refused(sql: str, role: str) -> None:
    verdict = guard(sql, tables=TABLES, max_rows=500, permit=permit_of(role))
    assert isinstance(verdict, Rejected), verdict
    assert verdict.reason


@pytest.mark.case("D10")
def test_an_error_in_a_condition_tells_nothing_of_the_rows_of_others(file: Path) -> None:
    """A condition that fails on one row would say that the row is there: it is never tried on it."""
    least = "-9223372036854775807 - 1"
    with closing(sqlite3.connect(file)) as whole:
        (hidden,) = whole.execute(HIDDEN_NUMBER).fetchone()
        probe = f"CASE WHEN s.number = '{hidden}' THEN {least} ELSE 1 END"
        probes = (
            f"SELECT COUNT(*) FROM student AS s WHERE ABS({probe}) > 0",
            f"SELECT COUNT(*) FROM student s JOIN class c ON c.id = s.class_id AND ABS({probe}) > 0",
            f"SELECT c.id FROM class c LEFT JOIN student s ON s.class_id = c.id AND ABS({probe}) > 0",
            f"SELECT COUNT(*) FROM (SELECT ABS({probe}) AS p FROM student s) AS x WHERE x.p > 0",
            f"SELECT d.id FROM department d WHERE EXISTS (SELECT 1 FROM student s WHERE ABS({probe}) > d.id)",
        )
        for sql in probes:
            with pytest.raises(sqlite3.OperationalError, match="overflow"):
                whole.execute(passed(sql, None).sql).fetchall()
            for role in ("dean", "student"):
                whole.execute(passed(sql, permit_of(role)).sql).fetchall()


def test_a_value_of_a_claim_is_a_value_and_never_sql(file: Path) -> None:
    permit = access_of(Settings()).permit({"role": "student", "student_id": "7' OR '1' = '1"})
    with closing(sqlite3.connect(file)) as whole:
        assert answered(whole, passed("SELECT id FROM student", permit).sql) == (["id"], [])


def test_what_is_restricted_is_told(file: Path) -> None:
    sql = "SELECT s.name FROM grade g JOIN enrolment e ON e.id = g.enrolment_id JOIN student s ON s.id = e.student_id"
    permit = permit_of("dean")
    verdict = passed(sql, permit)
    assert set(verdict.restricted) == {"grade", "enrolment", "student"}
    assert verdict.asked == passed(sql, None).sql
    assert permit.note(verdict.restricted, "en") == "Only your department's students, enrolments, grades are counted."
    assert permit.note(verdict.restricted, "zh") == "只统计了本院系的学生、选课记录、成绩。"
    public = passed("SELECT name_en FROM course", permit)
    assert (public.restricted, permit.note(public.restricted, "en")) == ((), "")


# -- a university with columns of its own, and a view ------------------------------------------------------------------

SCHEMA = {
    "school": ("code", "name"),
    "person": ("no", "name", "school_code", "phone"),
    "salary": ("person_no", "amount"),
    "reachable": ("name", "phone", "school_code"),
    "unlisted": ("name", "phone"),
}

OWN = """
[role.admin]
everything = true
[role.dean]
claim = "school"
note = { zh = "只有本院的{things}。", en = "Only the {things} of your school." }
[role.student]
claim = "no"
note = { zh = "只有你的{things}。", en = "Only your {things}." }
[table.school]
public = true
[table.person]
name = { zh = "人员", en = "people" }
rows.dean = ["school_code"]
rows.student = ["no"]
reserved.phone = ["admin"]
[table.reachable]
name = { zh = "通讯录", en = "contacts" }
rows.dean = ["school_code = school.code", "code"]
reserved.phone = ["admin", "dean"]
"""


@pytest.fixture
def own() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(
            """
            CREATE TABLE school (code TEXT, name TEXT);
            INSERT INTO school VALUES ('M', 'Maths'), ('P', 'Physics');
            CREATE TABLE person (no INTEGER, name TEXT, school_code TEXT, phone TEXT);
            INSERT INTO person VALUES (1, 'a', 'M', '111'), (2, 'b', 'M', '222'), (3, 'c', 'P', '333');
            CREATE TABLE salary (person_no INTEGER, amount INTEGER);
            CREATE VIEW reachable AS SELECT name, phone, school_code FROM person WHERE phone IS NOT NULL;
            CREATE VIEW unlisted AS SELECT name, phone FROM person;
            """
        )
        yield connection


def own_permit(**claims: str) -> Permit:
    permit = Access.parse(OWN, schema=SCHEMA, roles=["admin", "dean", "student"]).permit(claims)
    assert permit is not None
    return permit


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT phone FROM person",
        "SELECT p.phone AS name FROM person AS p",
        'SELECT "phone" FROM person',
        'SELECT "PHONE" FROM person',
        "SELECT name FROM person WHERE phone = '111'",
        "SELECT name FROM person ORDER BY phone",
        "SELECT COUNT(phone) FROM person",
        "SELECT x.phone FROM (SELECT * FROM person) AS x",
        "WITH x AS (SELECT * FROM person) SELECT phone FROM x",
        "WITH x(a, b, c, d) AS (SELECT no, name, school_code, phone FROM person) SELECT d FROM x",
        "SELECT name FROM school UNION SELECT phone FROM person",
        "SELECT (SELECT phone FROM person LIMIT 1) FROM school",
        "SELECT name FROM school AS s WHERE EXISTS (SELECT 1 FROM person p WHERE p.school_code = s.code AND p.phone > '1')",
        "SELECT a.name FROM person a JOIN person b USING (phone)",
        "SELECT a.name FROM person a JOIN person b USING (no, PHONE)",
        "SELECT a.name FROM (person a JOIN person b USING (phone))",
        "SELECT 1 FROM school WHERE EXISTS (SELECT 1 FROM person a JOIN person b USING (phone))",
        "SELECT RANK() OVER (ORDER BY phone) FROM person",
    ],
)
@pytest.mark.parametrize("claims", [{"role": "dean", "school": "M"}, {"role": "student", "no": "1"}])
def test_a_reserved_column_is_refused_however_it_is_reached(sql: str, claims: dict[str, str]) -> None:
    verdict = guard(sql, tables=SCHEMA, max_rows=9, permit=own_permit(**claims))
    assert isinstance(verdict, Rejected), verdict
    assert isinstance(guard(sql, tables=SCHEMA, max_rows=9, permit=own_permit(role="admin")), Guarded)


def test_a_reserved_column_is_named_in_the_refusal() -> None:
    verdict = guard("SELECT phone FROM person", tables=SCHEMA, max_rows=9, permit=own_permit(role="dean", school="M"))
    assert isinstance(verdict, Rejected)
    assert (verdict.code, verdict.name) == ("not-permitted", "phone")


def test_a_star_leaves_a_reserved_column_out(own: sqlite3.Connection) -> None:
    sql = "SELECT * FROM person"
    permits = (own_permit(role="dean", school="M"), own_permit(role="student", no="3"), own_permit(role="admin"))
    verdicts = [guard(sql, tables=SCHEMA, max_rows=9, permit=permit) for permit in permits]
    rows = [own.execute(each.sql).fetchall() for each in verdicts if isinstance(each, Guarded)]
    assert rows[:2] == [[(1, "a", "M"), (2, "b", "M")], [(3, "c", "P")]]
    assert rows[2][0] == (1, "a", "M", "111")


def test_a_view_is_a_table_with_rows_of_its_own(own: sqlite3.Connection) -> None:
    verdict = guard("SELECT * FROM reachable", tables=SCHEMA, max_rows=9, permit=own_permit(role="dean", school="P"))
    assert isinstance(verdict, Guarded)
    assert own.execute(verdict.sql).fetchall() == [("c", "333", "P")]


@pytest.mark.parametrize("table", ["unlisted", "salary"])
def test_a_table_that_is_not_declared_is_refused_to_all_but_those_who_see_everything(table: str) -> None:
    sql = f"SELECT * FROM {table}"
    verdict = guard(sql, tables=SCHEMA, max_rows=9, permit=own_permit(role="dean", school="P"))
    assert isinstance(verdict, Rejected)
    assert (verdict.code, verdict.name) == ("not-permitted", table)
    assert isinstance(guard(sql, tables=SCHEMA, max_rows=9, permit=own_permit(role="admin")), Guarded)


def test_a_withheld_tables_name_cannot_be_taken_by_a_subquery() -> None:
    sql = "WITH reachable AS (SELECT name FROM school) SELECT name FROM reachable"
    verdict = guard(sql, tables=SCHEMA, max_rows=9, permit=own_permit(role="student", no="1"))
    assert isinstance(verdict, Rejected)
    assert verdict.code == "shadowed"
