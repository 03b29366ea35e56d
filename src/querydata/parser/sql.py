"""From what was understood to SQL: tables are joined along declared edges, counted at their own grain."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from querydata.parser.words import Language

EDGES: tuple[tuple[str, str, str], ...] = (
    ("student", "class", "student.class_id = class.id"),
    ("class", "major", "class.major_id = major.id"),
    ("major", "department", "major.department_id = department.id"),
    ("teacher", "department", "teacher.department_id = department.id"),
    ("course", "department", "course.department_id = department.id"),
    ("student", "enrolment", "enrolment.student_id = student.id"),
    ("enrolment", "offering", "enrolment.offering_id = offering.id"),
    ("offering", "course", "offering.course_id = course.id"),
    ("offering", "term", "offering.term_id = term.id"),
    ("offering", "teacher", "offering.teacher_id = teacher.id"),
    ("enrolment", "grade", "grade.enrolment_id = enrolment.id"),
    ("enrolment", "best", "best.enrolment_id = enrolment.id"),
)

SOURCES = {
    # GPA looks at the best of an exam and its resit.
    "best": "(SELECT enrolment_id, MAX(score) AS score FROM grade GROUP BY enrolment_id)",
}

POINTS = (
    "CASE WHEN best.score >= 90 THEN 4.0 WHEN best.score >= 80 THEN 3.0 WHEN best.score >= 70 THEN 2.0 "
    "WHEN best.score >= 60 THEN 1.0 ELSE 0.0 END"
)

MEASURES: dict[str, tuple[str, tuple[str, ...], str]] = {
    # name → expression, the tables that it needs, the rows that it looks at
    "average": ("ROUND(AVG(grade.score), 2)", ("grade",), "grade.attempt = 1"),
    "gpa": (f"ROUND(SUM({POINTS} * course.credits) / SUM(course.credits), 2)", ("best", "course"), ""),
    "fail_rate": ("ROUND(100.0 * SUM(grade.score < 60) / COUNT(*), 2)", ("grade",), "grade.attempt = 1"),
    "pass_rate": ("ROUND(100.0 * SUM(grade.score >= 60) / COUNT(*), 2)", ("grade",), "grade.attempt = 1"),
    "highest_score": ("MAX(grade.score)", ("grade",), ""),
    "lowest_score": ("MIN(grade.score)", ("grade",), ""),
}

FAILING = (
    "SELECT enrolment.student_id FROM enrolment JOIN offering ON enrolment.offering_id = offering.id "
    "JOIN grade ON grade.enrolment_id = enrolment.id GROUP BY enrolment.student_id, offering.course_id "
    "HAVING MAX(grade.score) < 60"
)

SHOWN: dict[str, dict[str, tuple[tuple[str, str], ...]]] = {
    # entity → language → (expression, heading)
    "student": {
        "zh": (
            ("student.number", "学号"),
            ("student.name", "姓名"),
            ("department.name_zh", "学院"),
            ("class.name", "班级"),
        ),
        "en": (
            ("student.number", "number"),
            ("student.name", "name"),
            ("department.name_en", "department"),
            ("class.name", "class"),
        ),
    },
    "teacher": {
        "zh": (("teacher.number", "工号"), ("teacher.name", "教师"), ("department.name_zh", "学院")),
        "en": (("teacher.number", "number"), ("teacher.name", "teacher"), ("department.name_en", "department")),
    },
    "course": {"zh": (("course.name_zh", "课程"),), "en": (("course.name_en", "course"),)},
    "department": {"zh": (("department.name_zh", "学院"),), "en": (("department.name_en", "department"),)},
    "major": {"zh": (("major.name_zh", "专业"),), "en": (("major.name_en", "major"),)},
    "class": {"zh": (("class.name", "班级"),), "en": (("class.name", "class"),)},
    "term": {"zh": (("term.name", "学期"),), "en": (("term.name", "term"),)},
    "gender": {"zh": (("student.gender", "性别"),), "en": (("student.gender", "gender"),)},
}


@dataclass(slots=True, kw_only=True)
class Query:
    """What was understood of a question."""

    language: Language
    root: str
    """The entity that the question is about: joins start here."""
    measure: str = ""
    counted: str = ""
    groups: list[str] = field(default_factory=list)
    where: list[tuple[str, str]] = field(default_factory=list)
    """(the table that it needs, a condition)."""
    having: str = ""
    descending: bool | None = None
    limit: int | None = None
    heading: str = ""


class NoPath(Exception):
    """The tables cannot be joined in a way that makes sense."""


def to_sql(query: Query) -> str:
    """The statement of a query."""
    value, needs, rows = _value(query)
    shown = [column for group in query.groups for column in SHOWN[group][query.language]]
    if not query.groups and not value:
        shown = list(SHOWN[query.root][query.language])
    tables = [expression.split(".")[0] for expression, _ in shown]
    tables += [*needs, *(table for table, _ in query.where)]
    select = [f'{expression} AS "{heading}"' for expression, heading in shown]
    if value:
        select.append(f'{value} AS "{query.heading}"')
    conditions = [condition for _, condition in query.where] + ([rows] if rows else [])
    lines = [
        f"SELECT {'' if value else 'DISTINCT '}{', '.join(select)}",
        _from(query.root, tables),
    ]
    if conditions:
        lines.append("WHERE " + " AND ".join(conditions))
    if query.groups and value:
        keys = [
            f"{'student' if group == 'gender' else group}.{'gender' if group == 'gender' else 'id'}"
            for group in query.groups
        ]
        lines.append("GROUP BY " + ", ".join([*keys, *(expression for expression, _ in shown)]))
    if query.having:
        lines.append(f"HAVING {value} {query.having}")
    lines.append(_order(query, value, shown))
    if query.limit is not None:
        lines.append(f"LIMIT {query.limit}")
    return "\n".join(line for line in lines if line)


def _value(query: Query) -> tuple[str, tuple[str, ...], str]:
    if query.counted:
        return f"COUNT(DISTINCT {query.counted}.id)", (query.counted,), ""
    return MEASURES[query.measure] if query.measure else ("", (), "")


def _order(query: Query, value: str, shown: list[tuple[str, str]]) -> str:
    if query.descending is not None and value:
        first = f"{value} {'DESC' if query.descending else 'ASC'}"
        return "ORDER BY " + ", ".join([first, *(expression for expression, _ in shown)])
    return "ORDER BY " + ", ".join(expression for expression, _ in shown) if shown else ""


def _from(root: str, tables: list[str]) -> str:
    joined, lines = {root}, [f"FROM {root}"]
    for table in tables:
        for left, right, condition in _path(root, table):
            new = right if left in joined else left
            if new not in joined:
                joined.add(new)
                source = f"{SOURCES[new]} AS {new}" if new in SOURCES else new
                lines.append(f"JOIN {source} ON {condition}")
    return "\n".join(lines)


def _path(root: str, target: str) -> list[tuple[str, str, str]]:
    """The shortest way from the root to a table; edges are tried in their declared order."""
    ways: dict[str, list[tuple[str, str, str]]] = {root: []}
    queue = deque([root])
    while queue:
        here = queue.popleft()
        if here == target:
            return ways[here]
        for edge in EDGES:
            if here in edge[:2]:
                there = edge[1] if edge[0] == here else edge[0]
                # A department says where somebody belongs; it is no bridge between people.
                if there not in ways and (here != "department" or here == root):
                    ways[there] = [*ways[here], edge]
                    queue.append(there)
    raise NoPath(f"{root} and {target} have nothing to do with each other")
