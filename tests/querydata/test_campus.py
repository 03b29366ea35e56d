"""The campus: large enough, the same for the same seed, with the people that questions are about."""

from __future__ import annotations

import hashlib
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from querydata.campus import TABLES, build

DEPARTMENTS_OF_ZHANG_WEI = """
SELECT COUNT(DISTINCT major.department_id) FROM student
JOIN class ON class.id = student.class_id JOIN major ON major.id = class.major_id WHERE student.name = '张伟'
"""
STILL_FAILING = """
SELECT COUNT(*) FROM (
    SELECT enrolment.student_id FROM enrolment JOIN offering ON offering.id = enrolment.offering_id
    JOIN grade ON grade.enrolment_id = enrolment.id GROUP BY enrolment.student_id, offering.course_id
    HAVING MAX(grade.score) < 60
)
"""
GRADED_TERMS = """
SELECT DISTINCT offering.term_id FROM grade JOIN enrolment ON enrolment.id = grade.enrolment_id
JOIN offering ON offering.id = enrolment.offering_id WHERE grade.attempt = :attempt ORDER BY 1
"""
"""Resits of the current term are still to come."""
DIGESTS = {
    "student": "c8557f4c4582",
    "teacher": "93e148ccd48f",
    "offering": "4d068088af7a",
    "enrolment": "ad146b345c1c",
    "grade": "6547bb2f392c",
}
"""Of the rows that seed 1 makes."""


def _dump(file: Path) -> list[str]:
    with closing(sqlite3.connect(file)) as connection:
        return list(connection.iterdump())


def test_the_same_seed_makes_the_same_campus_and_another_another(tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        build(tmp_path / name, seed=seed)
    assert _dump(tmp_path / "a") == _dump(tmp_path / "b") != _dump(tmp_path / "c")


@pytest.mark.row("Q1")
def test_it_is_as_large_as_promised(tmp_path: Path) -> None:
    build(tmp_path / "campus.db")
    with closing(sqlite3.connect(tmp_path / "campus.db")) as connection:
        count = {table: connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0] for table in TABLES}
        assert count["student"] >= 2000
        assert count["grade"] >= 40_000
        assert connection.execute("SELECT COUNT(*) FROM grade WHERE attempt = 2").fetchone()[0] > 500
        assert connection.execute(DEPARTMENTS_OF_ZHANG_WEI).fetchone()[0] >= 3
        assert connection.execute("SELECT COUNT(*) FROM term").fetchone()[0] == 8
        assert connection.execute(STILL_FAILING).fetchone()[0] >= 50
        assert connection.execute(GRADED_TERMS, {"attempt": 1}).fetchall() == [(n,) for n in range(1, 9)]
        assert connection.execute(GRADED_TERMS, {"attempt": 2}).fetchall() == [(n,) for n in range(1, 8)]
        assert connection.execute("SELECT COUNT(*) FROM term WHERE is_current").fetchone()[0] == 1
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []


def test_a_failed_build_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "campus.db"
    build(file)
    before = file.read_bytes()
    monkeypatch.setattr(sys.modules["querydata.campus.build"], "STUDENTS", 0)
    with pytest.raises(IndexError):
        build(file)
    assert file.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["campus.db"]


def test_the_allow_list_is_the_schema(tmp_path: Path) -> None:
    build(tmp_path / "campus.db")
    with closing(sqlite3.connect(tmp_path / "campus.db")) as connection:
        for table, columns in TABLES.items():
            assert tuple(row[1] for row in connection.execute(f"PRAGMA table_info({table})")) == columns


def test_attendance_scholarships_and_dormitories_are_plausible(tmp_path: Path) -> None:
    build(tmp_path / "campus.db")
    with closing(sqlite3.connect(tmp_path / "campus.db")) as connection:

        def one(sql: str) -> float:
            (value,) = connection.execute(sql).fetchone()
            assert isinstance(value, int | float)
            return value

        assert one("SELECT COUNT(DISTINCT enrolment_id) FROM attendance") == one("SELECT COUNT(*) FROM enrolment")
        assert 0.8 < one("SELECT AVG(status_en = 'present') FROM attendance") < 0.95
        pairs = connection.execute("SELECT DISTINCT status_zh, status_en FROM attendance ORDER BY 2").fetchall()
        assert pairs == [("缺勤", "absent"), ("迟到", "late"), ("请假", "leave"), ("出勤", "present")]
        assert one("SELECT COUNT(DISTINCT scholarship_id) FROM award") == one("SELECT COUNT(*) FROM scholarship") == 8
        assert (
            one("SELECT COUNT(*) FROM award JOIN student ON student.id = student_id WHERE year <= enrolled_year") == 0
        )
        assert one("SELECT COUNT(*) FROM residence JOIN room ON room.id = room_id WHERE bed > beds") == 0
        strangers = """SELECT COUNT(*) FROM residence JOIN room ON room.id = room_id
            JOIN dormitory ON dormitory.id = dormitory_id JOIN student ON student.id = student_id
            WHERE dormitory.gender <> student.gender"""
        assert one(strangers) == 0
        assert 0.8 < one("SELECT COUNT(*) FROM residence") / one("SELECT COUNT(*) FROM student") < 1


def test_what_goes_on_around_the_courses_takes_no_random_numbers_from_them(tmp_path: Path) -> None:
    """The gold file and many a test know the students, offerings and grades that a seed makes."""
    build(tmp_path / "campus.db")
    with closing(sqlite3.connect(tmp_path / "campus.db")) as connection:
        for table, digest in DIGESTS.items():
            rows = repr(connection.execute(f"SELECT * FROM {table} ORDER BY id").fetchall())
            assert hashlib.sha256(rows.encode()).hexdigest()[:12] == digest, table


def test_every_column_that_refers_to_a_table_can_be_searched_from_both_ends(tmp_path: Path) -> None:
    build(tmp_path / "campus.db")
    with closing(sqlite3.connect(tmp_path / "campus.db")) as connection:
        for table in TABLES:
            indexed = {
                connection.execute(f"PRAGMA index_info({name})").fetchone()[2]
                for _, name, *_ in connection.execute(f"PRAGMA index_list({table})")
            }
            referring = {row[3] for row in connection.execute(f"PRAGMA foreign_key_list({table})")}
            assert referring <= indexed, table
