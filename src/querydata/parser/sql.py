"""From what was understood to SQL: tables are joined along declared edges, counted at their own grain."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from querydata.parser.conditions import ATTRIBUTES, FAILED, Condition, table_of
from querydata.parser.words import Language

EDGES: tuple[tuple[str, str, str], ...] = (
    ("student", "class", "student.class_id = class.id"),
    ("class", "major", "class.major_id = major.id"),
    ("major", "department", "major.department_id = department.id"),
    ("major", "home", "major.department_id = home.id"),
    ("teacher", "department", "teacher.department_id = department.id"),
    ("teacher", "employer", "teacher.department_id = employer.id"),
    ("course", "department", "course.department_id = department.id"),
    ("student", "enrolment", "enrolment.student_id = student.id"),
    ("enrolment", "offering", "enrolment.offering_id = offering.id"),
    ("offering", "course", "offering.course_id = course.id"),
    ("offering", "term", "offering.term_id = term.id"),
    ("offering", "teacher", "offering.teacher_id = teacher.id"),
    ("enrolment", "grade", "grade.enrolment_id = enrolment.id"),
    ("enrolment", "best", "best.enrolment_id = enrolment.id"),
    ("enrolment", "failing", "failing.enrolment_id = enrolment.id"),
    ("enrolment", "resit", "resit.enrolment_id = enrolment.id"),
)

SOURCES = {
    # The department that tells people apart is their own, whatever else the question restricts or groups.
    "home": "department",
    "employer": "department",
    # GPA looks at the best of an exam and its resit.
    "best": "(SELECT enrolment_id, MAX(score) AS score FROM grade GROUP BY enrolment_id)",
    # The enrolments in a course that is still open: whoever passed it later, in whatever way, is not failing it.
    "failing": (
        "(SELECT taken.id AS enrolment_id FROM enrolment AS taken JOIN offering AS held ON taken.offering_id = held.id "
        f"JOIN ({FAILED}) AS failed ON failed.student_id = taken.student_id AND failed.course_id = held.course_id)"
    ),
    "resit": "(SELECT id, enrolment_id FROM grade WHERE attempt = 2)",
}

POINTS = (
    "CASE WHEN best.score >= 90 THEN 4.0 WHEN best.score >= 80 THEN 3.0 WHEN best.score >= 70 THEN 2.0 "
    "WHEN best.score >= 60 THEN 1.0 ELSE 0.0 END"
)

MEASURES: dict[str, tuple[str, tuple[str, ...], str]] = {
    # name → expression, the tables that it needs, the rows that it looks at
    "average": ("ROUND(AVG(grade.score), 2)", ("grade",), "grade.attempt = 1"),
    "gpa": (f"ROUND(SUM({POINTS} * course.credits) / SUM(course.credits), 2)", ("best", "course"), ""),
    "fail_rate": (
        "ROUND(100.0 * SUM(CASE WHEN grade.score < 60 THEN 1 ELSE 0 END) / COUNT(*), 2)",
        ("grade",),
        "grade.attempt = 1",
    ),
    "pass_rate": (
        "ROUND(100.0 * SUM(CASE WHEN grade.score >= 60 THEN 1 ELSE 0 END) / COUNT(*), 2)",
        ("grade",),
        "grade.attempt = 1",
    ),
    "highest_score": ("MAX(grade.score)", ("grade",), ""),
    "lowest_score": ("MIN(grade.score)", ("grade",), ""),
}

SHOWN: dict[str, dict[str, tuple[tuple[str, str], ...]]] = {
    # entity → language → (expression, heading)
    "student": {
        "zh": (
            ("student.number", "学号"),
            ("student.name", "姓名"),
            ("home.name_zh", "学院"),
            ("class.name", "班级"),
        ),
        "en": (
            ("student.number", "number"),
            ("student.name", "name"),
            ("home.name_en", "department"),
            ("class.name", "class"),
        ),
    },
    "teacher": {
        "zh": (("teacher.number", "工号"), ("teacher.name", "教师"), ("employer.name_zh", "学院")),
        "en": (("teacher.number", "number"), ("teacher.name", "teacher"), ("employer.name_en", "department")),
    },
    "course": {"zh": (("course.name_zh", "课程"),), "en": (("course.name_en", "course"),)},
    "department": {"zh": (("department.name_zh", "学院"),), "en": (("department.name_en", "department"),)},
    "major": {"zh": (("major.name_zh", "专业"),), "en": (("major.name_en", "major"),)},
    "class": {"zh": (("class.name", "班级"),), "en": (("class.name", "class"),)},
    "term": {"zh": (("term.name", "学期"),), "en": (("term.name", "term"),)},
    "gender": {"zh": (("student.gender", "性别"),), "en": (("student.gender", "gender"),)},
    "cohort": {"zh": (("student.enrolled_year", "年级"),), "en": (("student.enrolled_year", "cohort"),)},
    "grade": {
        "zh": (
            ("student.number", "学号"),
            ("student.name", "姓名"),
            ("course.name_zh", "课程"),
            ("term.name", "学期"),
            ("grade.attempt", "考试次数"),
            ("grade.score", "成绩"),
        ),
        "en": (
            ("student.number", "number"),
            ("student.name", "name"),
            ("course.name_en", "course"),
            ("term.name", "term"),
            ("grade.attempt", "attempt"),
            ("grade.score", "score"),
        ),
    },
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
    where: list[Condition] = field(default_factory=list)
    having: str = ""
    """A comparison with the figure."""
    score: str = ""
    """A comparison with single grades."""
    compared: str = ""
    """What a bare number counts, where another thing is counted itself."""
    inner: Query | None = None
    """Those that are counted: whose figure compares as asked."""
    condition_read: str = ""
    descending: bool | None = None
    limit: int | None = None
    heading: str = ""


_DEPARTMENTS = ("department", "home", "employer")


class NoPath(Exception):
    """The tables cannot be joined in a way that makes sense."""


def to_sql(query: Query) -> str:
    """The statement of a query."""
    value, needs, rows = _value(query)
    shown = _shown(query, value)
    if query.counted and _wants_zeros(query):
        return _with_zeros(query, shown)
    lines = [
        f"SELECT {'' if value or query.root == 'grade' else 'DISTINCT '}{_columns(shown, value, query.heading)}",
        *_body(query, [expression.split(".")[0] for expression, _ in shown], needs, rows),
    ]
    if query.groups and value:
        keys = [_key(group) for group in query.groups]
        lines.append("GROUP BY " + ", ".join(dict.fromkeys([*keys, *(expression for expression, _ in shown)])))
    if query.having:
        lines.append(f"HAVING {value} {query.having}")
    return "\n".join([*lines, *_order(query, value, shown)])


def _shown(query: Query, value: str) -> list[tuple[str, str]]:
    entities = query.groups or ([] if value else [query.root])
    columns: dict[str, str] = {}
    for expression, heading in (column for entity in entities for column in SHOWN[entity][query.language]):
        # A heading is used once: a department that is grouped by is also part of whoever belongs to it.
        if expression not in columns:
            columns[expression] = heading if heading not in columns.values() else f"{heading} 2"
    return list(columns.items())


def _columns(shown: list[tuple[str, str]], value: str, heading: str) -> str:
    columns = [f'{expression} AS "{name}"' for expression, name in shown]
    return ", ".join([*columns, f'{value} AS "{heading}"'] if value else columns)


def _key(group: str) -> str:
    return ATTRIBUTES.get(group, f"{group}.id")


def _body(query: Query, shown: list[str], needs: tuple[str, ...], rows: str) -> list[str]:
    """FROM and WHERE."""
    tables = [*shown, *(table_of(group) for group in query.groups), *needs, *(each.table for each in query.where)]
    conditions = [each.sql for each in query.where if each.sql] + ([rows] if rows else [])
    if query.score:
        conditions.append(f"grade.score {query.score}")
    if query.inner is not None:
        conditions.append(f"{query.counted}.id IN ({_ids(query.inner)})")
    return [_from(_start(query.root), tables), *(["WHERE " + " AND ".join(conditions)] if conditions else [])]


def _start(root: str) -> str:
    """Single grades and resits are those of students: their department is meant, not that of the course."""
    return "student" if root in ("grade", "resit") else root


def _ids(query: Query) -> str:
    """Those whose figure compares as asked."""
    value, needs, rows = _value(query)
    body = " ".join(_body(query, [], needs, rows))
    key = _key(query.groups[0])
    return f"SELECT {key} {body} GROUP BY {key} HAVING {value} {query.having}".replace("\n", " ")


def _wants_zeros(query: Query) -> bool:
    """Whether those that have none belong to the answer: "each" means each, and the fewest may be none."""
    grouped = len(query.groups) == 1 and query.groups[0] not in ATTRIBUTES
    return grouped and query.descending is not True and not query.having.startswith((">", "= "))


def _with_zeros(query: Query, shown: list[tuple[str, str]]) -> str:
    (group,) = query.groups
    value, needs, rows = _value(query)
    inside = " ".join(_body(query, [], needs, rows)).replace("\n", " ")
    # What restricts the groups themselves holds outside, too; what restricts the counted only inside.
    outside = [
        each
        for each in query.where
        if each.sql
        and group in {end for edge in _path(_start(query.root), each.table) for end in edge[:2]}
        and each.table in _above(group)
    ]
    number = "COALESCE(counted.number, 0)"
    conditions = [each.sql for each in outside] + ([f"{number} {query.having}"] if query.having else [])
    tables = [*(expression.split(".")[0] for expression, _ in shown), *(each.table for each in outside)]
    counted = f"(SELECT {group}.id AS id, {value} AS number {inside} GROUP BY {group}.id)"
    lines = [
        f"SELECT {_columns(shown, number, query.heading)}",
        _from(group, tables),
        f"LEFT JOIN {counted} AS counted ON counted.id = {group}.id",
    ]
    if conditions:
        lines.append("WHERE " + " AND ".join(conditions))
    return "\n".join([*lines, *_order(query, number, shown)])


def _above(entity: str) -> set[str]:
    """The entity and what it belongs to."""
    chain = ("student", "class", "major", "department")
    if entity in chain:
        return set(chain[chain.index(entity) :])
    return {entity, "department"} if entity in ("course", "teacher") else {entity}


def _value(query: Query) -> tuple[str, tuple[str, ...], str]:
    if query.counted:
        return f"COUNT(DISTINCT {query.counted}.id)", (query.counted,), ""
    return MEASURES[query.measure] if query.measure else ("", (), "")


def _order(query: Query, value: str, shown: list[tuple[str, str]]) -> list[str]:
    keys = [expression for expression, _ in shown]
    if query.descending is not None and value:
        keys.insert(0, f"{value} {'DESC' if query.descending else 'ASC'}")
    lines = ["ORDER BY " + ", ".join(keys)] if shown else []
    return lines if query.limit is None else [*lines, f"LIMIT {query.limit}"]


def _from(root: str, tables: list[str]) -> str:
    joined, lines = {root}, [f"FROM {_source(root)}"]
    for table in tables:
        for left, right, condition in _path(root, table):
            new = right if left in joined else left
            if new not in joined:
                joined.add(new)
                lines.append(f"JOIN {_source(new)} ON {condition}")
    return "\n".join(lines)


def _source(table: str) -> str:
    return f"{SOURCES[table]} AS {table}" if table in SOURCES else table


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
                if there not in ways and (here not in _DEPARTMENTS or here == root):
                    ways[there] = [*ways[here], edge]
                    queue.append(there)
    raise NoPath(f"{root} and {target} have nothing to do with each other")
