"""From the words that restrict a question to conditions on tables, and which of them make sense for what is asked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from querydata.parser.words import Word

FAILED = (
    "SELECT enrolment.student_id, offering.course_id FROM enrolment "
    "JOIN offering ON enrolment.offering_id = offering.id JOIN grade ON grade.enrolment_id = enrolment.id "
    "GROUP BY enrolment.student_id, offering.course_id HAVING MAX(grade.score) < 60"
)
"""Student and course, where the best score so far is no pass."""

ATTRIBUTES = {"gender": "student.gender", "cohort": "student.enrolled_year"}
"""What a student has and no table of its own holds."""

OF_STUDENTS = frozenset({"student", "class", "major", "department", "gender", "cohort"})
"""What a student has exactly one of."""

_EVERYTHING = OF_STUDENTS | {"course", "teacher", "term", "grade", "failing", "resit"}

REACH: dict[str, frozenset[str]] = {
    # What may restrict or group a list or a count of these; other joins exist, but nobody would mean them.
    "student": _EVERYTHING,
    "grade": _EVERYTHING - {"failing", "resit"},
    "resit": _EVERYTHING - {"failing", "resit"},
    "course": frozenset({"course", "department", "teacher", "term", "student", "failing", "resit"}),
    "teacher": frozenset({"teacher", "department", "course", "term", "student"}),
    "department": frozenset({"department", "course", "teacher", "student", "major", "class"}),
    "major": frozenset({"major", "department", "student", "class"}),
    "class": frozenset({"class", "major", "department", "student"}),
    "term": frozenset({"term", "course", "teacher", "student"}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One restriction: what it is about, the table it needs, its SQL."""

    about: str
    table: str
    sql: str


def table_of(name: str) -> str:
    """The table that holds an entity or an attribute."""
    return "student" if name in ATTRIBUTES else name


def conditions_of(words: Sequence[Word]) -> list[Condition]:
    """The conditions of these words; several names of one kind are alternatives."""
    found: dict[str, list[str]] = {}
    for word in words:
        about, sql = _condition(word)
        if sql not in found.setdefault(about, []):
            found[about].append(sql)
    return [
        Condition(about=about, table=table_of(about), sql=sqls[0] if len(sqls) == 1 else f"({' OR '.join(sqls)})")
        for about, sqls in found.items()
    ]


def failing_students(conditions: Iterable[Condition]) -> list[Condition]:
    """The same conditions, where to be failing is a property of the person and not of one enrolment."""
    sql = f"student.id IN (SELECT failed.student_id FROM ({FAILED}) AS failed)"
    return [
        Condition(about="failing", table="student", sql=sql) if condition.about == "failing" else condition
        for condition in conditions
    ]


def _condition(word: Word) -> tuple[str, str]:
    match word.kind:
        case "filter":
            return word.meaning, ""
        case "gender":
            return "gender", f"student.gender = '{word.meaning}'"
        case "term" if word.meaning == "current":
            return "term", "term.is_current = 1"
        case "term":
            return "term", "term.id = (SELECT MAX(earlier.id) FROM term AS earlier WHERE earlier.is_current = 0)"
        case _ if word.meaning == "cohort":
            return "cohort", f"student.enrolled_year = {int(word.text)}"
        case _:
            text = word.text.replace("'", "''")
            return word.meaning, f"{word.meaning}.{word.column} = '{text}'"
