"""Makes the campus database: the same bytes of content for the same seed, or no file at all."""

from __future__ import annotations

import os
import random
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator
from importlib.resources import files
from pathlib import Path

from querydata.campus import names
from querydata.campus.life import live

STUDENTS = 2400
CLASSES_PER_MAJOR_AND_YEAR = 2
YEARS = (2023, 2024, 2025, 2026)
TERMS = tuple((year, season) for year in (2023, 2024, 2025, 2026) for season in ("春", "秋"))
"""2023春 … 2026秋; the last is the current one."""
COURSES_A_TERM = 5
PASS = 60.0
COMMON = ("张伟", "王芳", "李娜")
"""Names that several people have, as on any campus."""


def build(path: Path, *, seed: int = 1) -> None:
    """Write the database to `path`, replacing what is there, in one step: a reader never sees half of it."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".new")
    os.close(handle)
    try:
        connection = sqlite3.connect(name)
        try:
            with connection:
                connection.executescript(files("querydata.campus").joinpath("schema.sql").read_text(encoding="utf8"))
                _fill(connection, random.Random(seed))
                # A stream of its own: what was there before stays as it was, seed by seed.
                live(connection, random.Random(f"{seed} life"))
        finally:
            connection.close()
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _fill(connection: sqlite3.Connection, rng: random.Random) -> None:
    _insert(connection, "department", ((n, *pair) for n, pair in enumerate(names.DEPARTMENTS, 1)))
    majors = [(department, *pair) for department, pairs in enumerate(names.MAJORS, 1) for pair in pairs]
    _insert(connection, "major", ((n, *major) for n, major in enumerate(majors, 1)))
    courses = [(department, *pair) for department, pairs in enumerate(names.COURSES, 1) for pair in pairs]
    _insert(
        connection,
        "course",
        (
            (n, f"C{department}{n:03}", zh, en, rng.choice((1.5, 2.0, 3.0, 4.0)), department)
            for n, (department, zh, en) in enumerate(courses, 1)
        ),
    )
    _insert(
        connection,
        "term",
        (
            (n, f"{year}{season}", year, season, "spring" if season == "春" else "autumn", int(n == len(TERMS)))
            for n, (year, season) in enumerate(TERMS, 1)
        ),
    )
    _insert(
        connection,
        "teacher",
        ((n, f"T{n:04}", _name(rng)[0], *rng.choice(names.TITLES), (n - 1) % 8 + 1) for n in range(1, 121)),
    )
    classes = [
        (major, f"{zh}{year}-{number}", year)
        for major, (_, zh, _) in enumerate(majors, 1)
        for year in YEARS
        for number in range(1, CLASSES_PER_MAJOR_AND_YEAR + 1)
    ]
    _insert(connection, "class", ((n, *row) for n, row in enumerate(classes, 1)))
    students = list(_students(rng, classes))
    _insert(connection, "student", (row[:6] for row in students))
    _study(connection, rng, students, majors, courses)


def _students(
    rng: random.Random, classes: list[tuple[int, str, int]]
) -> Iterator[tuple[int, str, str, str, int, int, int]]:
    """(id, number, name, gender, class, year, major)."""
    for n in range(1, STUDENTS + 1):
        class_id = (n - 1) % len(classes) + 1
        major, _, year = classes[class_id - 1]
        name, gender = _name(rng)
        if n % 150 == 7:  # noqa: PLR2004 - sixteen people share three names
            name, gender = rng.choice(list(zip(COMMON, ("男", "女", "女"), strict=True)))
        yield n, f"{year}{n:05}", name, gender, class_id, year, major


def _name(rng: random.Random) -> tuple[str, str]:
    gender = rng.choice(("男", "女"))
    given = names.GIVEN_MALE if gender == "男" else names.GIVEN_FEMALE
    return rng.choice(names.FAMILY) + rng.choice(given), gender


def _study(
    connection: sqlite3.Connection,
    rng: random.Random,
    students: list[tuple[int, str, str, str, int, int, int]],
    majors: list[tuple[int, str, str]],
    courses: list[tuple[int, str, str]],
) -> None:
    offerings: dict[tuple[int, int], int] = {}
    rows: list[tuple[int, int, int, int]] = []
    for term in range(1, len(TERMS) + 1):
        for course, (department, _, _) in enumerate(courses, 1):
            offerings[course, term] = len(rows) + 1
            rows.append((len(rows) + 1, course, term, department + 8 * rng.randrange(15)))
    _insert(connection, "offering", rows)
    hardness = {course: rng.gauss(0, 5) for course in range(1, len(courses) + 1)}
    enrolments: list[tuple[int, int, int]] = []
    grades: list[tuple[int, int, int, float, int]] = []
    for student, _, _, _, _, year, major in students:
        ability = rng.gauss(80, 7)
        own = [n for n, (department, _, _) in enumerate(courses, 1) if department == majors[major - 1][0]]
        others = [n for n in range(1, len(courses) + 1) if n not in own]
        plan = rng.sample(own, k=len(own)) + rng.sample(others, k=len(others))
        for term, (term_year, season) in enumerate(TERMS, 1):
            # Intakes begin in autumn, but the first one in spring: there is no term without grades.
            if term_year < year or (term_year == year > YEARS[0] and season == "春"):
                continue
            for course in (plan.pop(0) for _ in range(COURSES_A_TERM)):
                enrolments.append((len(enrolments) + 1, student, offerings[course, term]))
                if term < len(TERMS) or rng.random() < 0.4:  # noqa: PLR2004 - the current term is being graded
                    level = ability - hardness[course]
                    _grade(grades, rng, len(enrolments), level, resit=term < len(TERMS))
    _insert(connection, "enrolment", enrolments)
    _insert(connection, "grade", grades)


def _grade(
    grades: list[tuple[int, int, int, float, int]], rng: random.Random, enrolment: int, level: float, *, resit: bool
) -> None:
    score = _clamp(rng.gauss(level, 7))
    grades.append((len(grades) + 1, enrolment, 1, score, int(score >= PASS)))
    # Resits are in the term after: there are none yet for the current one.
    if resit and score < PASS and rng.random() < 0.8:  # noqa: PLR2004 - most who fail sit the exam again
        again = _clamp(rng.gauss(max(level, 62), 8))
        grades.append((len(grades) + 1, enrolment, 2, again, int(again >= PASS)))


def _clamp(score: float) -> float:
    return round(min(max(score, 0.0), 100.0), 1)


def _insert(connection: sqlite3.Connection, table: str, values: Iterable[tuple[object, ...]]) -> None:
    rows = list(values)
    marks = ", ".join("?" for _ in rows[0])
    connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)
