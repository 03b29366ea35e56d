"""Makes what goes on around the courses: who came to class, who was awarded what, who lives where."""

from __future__ import annotations

import random
import sqlite3
from collections import defaultdict
from collections.abc import Iterator

from querydata.campus import names

SESSIONS = 4
"""Class meetings of a course in a term at which the roll is called."""
SESSIONS_SO_FAR = 2
"""The same in the current term."""
AWARD_YEARS = (2024, 2025, 2026)
SHARES = (0.01, 0.03, 0.05, 0.08, 0.12)
"""What share of the ranked students of a major each of the first kinds goes to, from the best downwards, more or less."""
FLOORS = 6
ROOMS_A_FLOOR = 20

_STUDENTS = "SELECT id, gender, class_id FROM student ORDER BY id"
_ENROLMENTS = """
SELECT enrolment.id, enrolment.student_id, term.is_current FROM enrolment
JOIN offering ON offering.id = enrolment.offering_id JOIN term ON term.id = offering.term_id ORDER BY enrolment.id
"""
_AVERAGES = """
SELECT student.id, class.major_id, term.year, AVG(grade.score) FROM student
JOIN class ON class.id = student.class_id JOIN enrolment ON enrolment.student_id = student.id
JOIN offering ON offering.id = enrolment.offering_id JOIN term ON term.id = offering.term_id
JOIN grade ON grade.enrolment_id = enrolment.id AND grade.attempt = 1
GROUP BY student.id, class.major_id, term.year ORDER BY student.id, term.year
"""


def live(connection: sqlite3.Connection, rng: random.Random) -> None:
    """Fill the tables of attendance, scholarships and dormitories for the students who are there."""
    averages = list(connection.execute(_AVERAGES))
    connection.executemany("INSERT INTO attendance VALUES (?, ?, ?, ?, ?)", _attendance(connection, rng, averages))
    kinds = ((n, *kind) for n, kind in enumerate(names.SCHOLARSHIPS, 1))
    connection.executemany("INSERT INTO scholarship VALUES (?, ?, ?, ?)", kinds)
    awards = ((n, *award) for n, award in enumerate(_awards(rng, averages), 1))
    connection.executemany("INSERT INTO award VALUES (?, ?, ?, ?)", awards)
    _house(connection, rng)


def _attendance(
    connection: sqlite3.Connection, rng: random.Random, averages: list[tuple[int, int, int, float]]
) -> Iterator[tuple[int, int, int, str, str]]:
    scores: dict[int, list[float]] = defaultdict(list)
    for student, _, _, score in averages:
        scores[student].append(score)
    weights = {}
    for (student,) in connection.execute("SELECT id FROM student ORDER BY id"):
        # Whoever comes has better grades, more or less.
        level = sum(scores[student]) / len(scores[student]) if scores[student] else 78.0
        absent = min(max(rng.gauss(0.05 + (80 - level) / 250, 0.02), 0.0), 0.5)
        weights[student] = (1 - absent - 0.07, absent, 0.04, 0.03)
    n = 0
    for enrolment, student, current in connection.execute(_ENROLMENTS).fetchall():
        sessions = SESSIONS_SO_FAR if current else SESSIONS
        for session, status in enumerate(rng.choices(names.ATTENDANCE, weights[student], k=sessions), 1):
            n += 1
            yield n, enrolment, session, *status


def _awards(rng: random.Random, averages: list[tuple[int, int, int, float]]) -> Iterator[tuple[int, int, int]]:
    """(student, kind, year): the first kinds by the grades of the year before, the others to anybody."""
    ranked: dict[tuple[int, int], list[tuple[float, int]]] = defaultdict(list)
    for student, major, year, score in averages:
        ranked[year + 1, major].append((score, student))
    for (year, _), people in sorted(ranked.items()):
        if year not in AWARD_YEARS:
            continue
        order = [student for _, student in sorted(people, reverse=True)]
        at = 0
        for kind, share in enumerate(SHARES, 1):
            places = max(1, round(share * len(order) * rng.uniform(0.6, 1.4)))
            for student in order[at : at + places]:
                yield student, kind, year
            at += places
        for kind in range(len(SHARES) + 1, len(names.SCHOLARSHIPS) + 1):
            for student in sorted(rng.sample(order, k=rng.randint(0, max(1, len(order) // 25)))):
                yield student, kind, year


def _house(connection: sqlite3.Connection, rng: random.Random) -> None:
    connection.executemany(
        "INSERT INTO dormitory VALUES (?, ?, ?, ?)", ((n, *hall) for n, hall in enumerate(names.DORMITORIES, 1))
    )
    rooms = [
        (dormitory, f"{floor}{number:02}", floor, rng.choice((4, 4, 4, 6)))
        for dormitory in range(1, len(names.DORMITORIES) + 1)
        for floor in range(1, FLOORS + 1)
        for number in range(1, ROOMS_A_FLOOR + 1)
    ]
    connection.executemany("INSERT INTO room VALUES (?, ?, ?, ?, ?)", ((n, *room) for n, room in enumerate(rooms, 1)))
    students = connection.execute(_STUDENTS).fetchall()
    lodged: list[tuple[int, int, int]] = []
    for gender in ("男", "女"):
        # Classmates live near each other; some students live in town.
        people = sorted((group, student) for student, of, group in students if of == gender and rng.random() < 0.92)  # noqa: PLR2004
        beds = [
            (room, bed)
            for room, (dormitory, _, _, size) in enumerate(rooms, 1)
            if names.DORMITORIES[dormitory - 1][2] == gender
            for bed in range(1, size + 1)
        ]
        chosen = sorted(rng.sample(beds, k=len(people)))
        lodged += [(student, room, bed) for (_, student), (room, bed) in zip(people, chosen, strict=True)]
    connection.executemany(
        "INSERT INTO residence VALUES (?, ?, ?, ?)", ((n, *row) for n, row in enumerate(sorted(lodged), 1))
    )
