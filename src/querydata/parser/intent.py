"""Decides what is asked: a list, a count, a figure, a ranking, or those whose figure is above a number."""

from __future__ import annotations

from querydata.parser.conditions import OF_STUDENTS, REACH, conditions_of, failing_students
from querydata.parser.parts import Parts, Unclear, too_many
from querydata.parser.sql import SHOWN, Query
from querydata.parser.words import Language

MOST = 200
"""The largest ranking that is taken for one."""

_PERSONS = ("student", "teacher")
_OWNERS = ("student", "course", "teacher")
_LOW_IS_GOOD = frozenset({"fail_rate"})
_ONE_FIGURE = ("请一次只问一个指标。", "Please ask for one figure at a time.")
_WHOLE_GPA = (
    "绩点是对一个学生的全部课程而言的；问某门课或某位教师，请用平均分或及格率。",
    "A GPA is over all courses of a student; for one course or teacher, please ask for the average grade or the pass rate.",
)
_RELATION = (
    "这几样东西之间的关系我不能确定，请换一种问法。",
    "I am not sure how these are related; please ask differently.",
)


def query_of(parts: Parts, language: Language) -> Query:
    """What is asked. Raises `Unclear` where there are several ways to read it."""
    _refuse_relatives(parts)
    query = Query(language=language, root="", groups=list(parts.groups), where=conditions_of(parts.conditions))
    _measure(parts, query)
    _count(parts, query)
    _compare_grades(parts, query)
    _rank(parts, query)
    _compare(parts, query)
    if query.compared or (query.measure and query.counted):
        _count_those(parts, query)
    elif query.measure:
        _figure(parts, query)
    elif query.counted:
        _number(parts, query)
    else:
        _list(parts, query)
    query.groups = list(dict.fromkeys(query.groups))
    return query


def _refuse_relatives(parts: Parts) -> None:
    """Whoever is related to a named person is not that person: is it a teacher, or are classmates meant?"""
    for person in _PERSONS:
        names = [word.text for word in parts.conditions if word.meaning == person and word.column == "name"]
        if names and person in parts.left():
            raise Unclear(
                f"“{names[0]}”和所问的人是什么关系，我不能确定。",
                f"I am not sure how the people you ask for are related to {names[0]!r}.",
                names[0],
            )


def _measure(parts: Parts, query: Query) -> None:
    measures = {meaning.removeprefix("average_") for meaning in parts.meanings("measure")}
    if len(measures) > 1:
        raise Unclear(*_ONE_FIGURE)
    query.measure = next(iter(measures), "")
    if len(parts.filtered()) > 1:
        raise Unclear("请分开问挂科和补考。", "Please ask about failing and about resits separately.")


def _count(parts: Parts, query: Query) -> None:
    counts = [
        (place, word)
        for place, word in parts.of("count")
        # "The GPA is how much" asks for the figure that stands before it.
        if word.meaning != "any" or place == 0 or parts.words[place - 1].kind != "measure"
    ]
    if not counts:
        return
    if len({word.meaning for _, word in counts} - {"any"}) > 1 or (query.measure and not parts.of("compare")):
        raise Unclear(*_ONE_FIGURE)
    place, word = next(((at, word) for at, word in counts if word.meaning != "any"), counts[0])
    if word.meaning != "any":
        query.counted = word.meaning
    elif parts.entities:
        after = [entity for at, entity in parts.entities if at > place]
        query.counted = after[0] if after else parts.entities[-1][1]
    elif parts.about_people():
        query.counted = "student"
    else:
        raise Unclear(
            "请说明要数什么：学生、教师还是课程？", "Please say what to count: students, teachers or courses?"
        )
    parts.take(query.counted)


def _compare_grades(parts: Parts, query: Query) -> None:
    """Single grades are compared before anything is summed up."""
    if "grade" not in parts.left():
        return
    if query.measure or query.counted or parts.of("rank") or set(parts.left()) - {"grade", "student"}:
        raise Unclear(
            "请说明是每条成绩，还是平均分、最高分等指标。",
            "Please say whether you mean single grades or a figure such as the average grade.",
        )
    parts.entities = [(place, entity) for place, entity in parts.entities if entity == "grade"]


def _rank(parts: Parts, query: Query) -> None:
    meanings = _ends(parts.meanings("rank"), query)
    if not meanings:
        if parts.sorted_by:
            raise Unclear("请说明要排名还是分组。", "Please say whether to rank or to group.")
        return
    numbers = [word.number for place, word in parts.of("number") if not _compared(parts, place)]
    if meanings & {"highest", "most", "descending"} and meanings & {"lowest", "fewest", "ascending"}:
        raise Unclear("请分开问最高和最低。", "Please ask for the highest and the lowest separately.")
    if meanings & {"most", "fewest"} and not query.measure and not query.counted:
        query.counted = _most_of(parts, query.language)
        parts.take(query.counted)
    if not query.measure and not query.counted:
        raise Unclear(
            "请说明按什么排名，例如平均分、绩点或人数。",
            "Please say what to rank by, such as average grade, GPA or number of students.",
        )
    query.descending = not meanings & {"lowest", "fewest", "ascending"}
    if meanings == {"first"} and "term" in (*parts.left(), *query.groups):
        raise Unclear(
            "“前几个学期”是按时间还是按数值？请说最高的几个。",
            "Do you mean the first terms in time, or the highest? Please say the highest.",
        )
    _limit(meanings, numbers, query)
    if not parts.left() and not query.groups and _means_students(parts, query):
        parts.entities.append((0, "student"))
    _rank_whom(parts, query)


def _ends(meanings: set[str], query: Query) -> set[str]:
    """The worst fail rate is the highest, the worst pass rate the lowest."""
    good, bad = ("lowest", "highest") if query.measure in _LOW_IS_GOOD else ("highest", "lowest")
    ends = {"best": good, "worst": bad}
    return {ends.get(meaning, meaning) for meaning in meanings}


def _limit(meanings: set[str], numbers: list[float], query: Query) -> None:
    if not numbers and "first" in meanings:
        raise Unclear("请说明前几名。", "Please say how many, such as the top ten.")
    if numbers or not meanings & {"descending", "ascending"}:
        query.limit = int(numbers[0]) if numbers else 1
        if len(numbers) > 1 or numbers[:1] not in ([], [query.limit]) or not 1 <= query.limit <= MOST:
            raise Unclear(f"名次须在 1 到 {MOST} 之间。", f"A ranking has between 1 and {MOST} places.")


def _rank_whom(parts: Parts, query: Query) -> None:
    left = parts.left()
    if left and query.groups and query.limit is not None:
        raise Unclear(
            "我不能在每一组内部分别排名，请指定其中一组来问。",
            "I cannot rank within each group; please ask for one of the groups.",
        )
    if len(left) > 1:
        raise too_many(left, query.language)
    if not left and not query.groups:
        raise Unclear(
            "请说明给谁排名：学生、课程还是学院？", "Please say what to rank: students, courses or departments?"
        )
    query.groups.extend(left)
    parts.entities = []


def _most_of(parts: Parts, language: Language) -> str:
    """What there are most of: in English it stands after the word, in Chinese before it."""
    place = next(at for at, word in parts.of("rank") if word.meaning in ("most", "fewest"))
    if parts.of("who") and parts.left() == ["resit"]:
        parts.entities.append((0, "student"))
        return "resit"
    if parts.filtered() and len(parts.left()) <= 1:
        ranked = parts.left() or (["student"] if parts.of("who") else [])
        if ranked in (["student"], ["course"]):
            parts.entities = parts.entities or [(0, "student")]
            return "course" if ranked == ["student"] else "student"
    if (
        any(word.kind == "gender" for word in parts.conditions)
        and len(parts.left()) == 1
        and parts.left() != ["student"]
    ):
        return "student"
    if len(parts.left()) + len(parts.groups) < 2:  # noqa: PLR2004 - one is counted, the other ranked
        raise Unclear("请说明什么最多。", "Please say most of what.")
    after = [entity for at, entity in parts.entities if at > place]
    before = [entity for at, entity in parts.entities if at < place]
    chosen = (before[-1:] or after[:1]) if language == "zh" else (after[:1] or before[-1:])
    if not chosen:
        raise Unclear("请说明什么最多。", "Please say most of what.")
    return chosen[0]


def _means_students(parts: Parts, query: Query) -> bool:
    """Whether nobody but students can be meant, though the word does not occur."""
    who = bool(parts.of("who")) and (query.measure == "gpa" or bool(parts.filtered()))
    return who or any(word.kind == "gender" or word.meaning == "cohort" for word in parts.conditions)


def _compared(parts: Parts, place: int) -> bool:
    return place > 0 and parts.words[place - 1].kind == "compare"


def _compare(parts: Parts, query: Query) -> None:
    place = _comparison(parts, query)
    if place is None or (query.counted and query.measure):
        return
    if not query.measure:
        compared = _compared_entity(parts, place, query.language)
        if query.counted and compared not in ("", query.counted):
            query.compared = compared
            parts.take(compared)
            return
        query.counted = query.counted or compared
        parts.take(query.counted)
    if not query.measure and not query.counted:
        raise Unclear("请说明比较的是什么。", "Please say what to compare.")
    if not parts.left() and not query.groups and _means_students(parts, query):
        parts.entities.append((0, "student"))
    left = parts.left()
    if (not left and not query.groups) or len(left) > 1:
        raise Unclear("请说明要查谁：学生、课程还是学院？", "Please say of what: students, courses or departments?")
    query.groups.extend(left)
    parts.entities = []


def _comparison(parts: Parts, query: Query) -> int | None:
    """Where the number stands that a figure is compared with; single grades are compared here."""
    compares = parts.of("compare")
    numbers = [(place, word) for place, word in parts.of("number") if _compared(parts, place)]
    loose = [word.text for place, word in parts.of("number") if not _compared(parts, place) and query.limit is None]
    if loose:
        raise Unclear(f"我不明白数字 {loose[0]} 指什么。", f"I do not see what the number {loose[0]} is for.", loose[0])
    if not compares:
        return None
    if len(compares) != 1 or len(numbers) != 1:
        raise Unclear("请给出一个比较的数值。", "Please give one number to compare with.")
    place, number = numbers[0]
    comparison = f"{compares[0][1].meaning} {number.number:g}"
    if parts.left() == ["grade"]:
        query.score = comparison
        return None
    query.having = comparison
    return place


def _compared_entity(parts: Parts, place: int, language: Language) -> str:
    """What a bare number counts: what follows it; in Chinese also what stands right before the comparison."""
    adjoining = not parts.words[place - 1].apart
    before = [entity for at, entity in parts.entities if at == place - 2 and adjoining]
    after = [entity for at, entity in parts.entities if at in (place + 1, place + 2)]
    if parts.filtered() and not before and (not after or language == "zh") and parts.left() == ["student"]:
        return "course"
    chosen = after[:1] if language == "en" else before or after[:1]
    return chosen[0] if chosen else ""


def _figure(parts: Parts, query: Query) -> None:
    """A figure: over everything, or for each of something."""
    left = parts.left()
    for person in _PERSONS:
        if parts.named(person):
            query.groups.append(person)
    each_student = query.measure == "gpa" and "average_gpa" not in parts.meanings("measure")
    if each_student and left == ["student"] and not query.groups:
        query.groups.append("student")
    plain = query.measure in ("average", "gpa", "fail_rate", "pass_rate")
    if len(left) > 1 or (query.groups and left and left[0] not in _OWNERS):
        raise too_many([*query.groups, *left], query.language)
    if left and not query.groups and (left != ["student"] or not plain):
        raise Unclear(
            "请说明是每一个分别计算，还是合在一起。",
            "Please say whether you mean each of them or all of them together.",
        )
    query.root = next((entity for entity in _OWNERS if entity in (*query.groups, *left)), "student")
    if parts.meanings("gender") and "teacher" in (*query.groups, *left) and "student" not in left:
        raise Unclear(*_RELATION)
    about = {condition.about for condition in query.where} | set(query.groups)
    if query.measure == "gpa" and about & {"course", "teacher"}:
        raise Unclear(*_WHOLE_GPA)
    if parts.filtered():
        if parts.filtered() != {"failing"} or query.measure != "gpa" or not about <= OF_STUDENTS | {"failing"}:
            raise Unclear(
                "请说明是这些学生的全部成绩，还是只看挂科或补考的成绩。",
                "Please say whether you mean all grades of these students, or only the failed ones or the resits.",
            )
        query.where = failing_students(query.where)


def _count_those(parts: Parts, query: Query) -> None:
    """How many have a figure above a number: the figure decides inside, the count stands outside."""
    if query.descending is not None or parts.left() or not query.having:
        raise Unclear(*_ONE_FIGURE)
    if query.compared:
        _count_those_with_many(query)
        return
    if query.counted not in _OWNERS:
        raise Unclear(*_RELATION)
    outside = OF_STUDENTS if query.counted == "student" else {query.counted, "department"}
    if not set(query.groups) <= outside or (parts.filtered() and query.measure != "gpa"):
        raise Unclear(*_RELATION)
    if parts.filtered() - {"failing"} or (query.counted != "student" and parts.about_people()):
        raise Unclear(*_RELATION)
    if query.measure == "gpa" and {condition.about for condition in query.where} & {"course", "teacher"}:
        raise Unclear(*_WHOLE_GPA)
    query.inner = Query(
        language=query.language,
        root=query.counted,
        measure=query.measure,
        groups=[query.counted],
        where=failing_students(query.where),
        having=query.having,
    )
    query.where = [condition for condition in query.where if condition.about in outside]
    query.root, query.condition_read, query.measure, query.having = query.counted, query.having, "", ""


def _count_those_with_many(query: Query) -> None:
    """How many have more than so many of something."""
    if query.groups:
        raise Unclear(*_RELATION)
    query.inner = Query(
        language=query.language,
        root=query.compared,
        counted=query.compared,
        groups=[query.counted],
        where=query.where,
        having=query.having,
    )
    _refuse_strange(query.inner)
    query.root, query.where = query.counted, []
    query.condition_read, query.having = query.having, ""


def _number(parts: Parts, query: Query) -> None:
    """A count of one kind of thing, at its own grain."""
    if parts.left():
        raise too_many([query.counted, *parts.left()], query.language)
    query.root = query.counted
    for person in _PERSONS:
        if parts.named(person) and person != query.counted:
            query.groups.append(person)
    alternatives = {"course", "teacher", "student"} & set(parts.alternatives())
    if alternatives:
        raise Unclear(
            "请说明是同时满足，还是分别统计。", "Please say whether you mean both at once, or each on its own."
        )
    _refuse_strange(query)


def _list(parts: Parts, query: Query) -> None:
    left = parts.left()
    if not left and parts.about_people():
        left = ["student"]
    if not left:
        raise Unclear("请说明要查什么：学生、课程、成绩……", "Please say what to look up: students, courses, grades …")
    alternatives = parts.alternatives()
    if set(alternatives) & {"course", "teacher", "term"} or (set(alternatives) and left[0] != "student"):
        raise Unclear(
            "请说明是同时满足，还是分别列出。", "Please say whether you mean both at once, or each on its own."
        )
    query.groups = [group for group in query.groups if group not in alternatives]
    if len(left) > 1 or query.groups:
        raise too_many([*left, *query.groups], query.language)
    query.root = left[0]
    if query.root not in SHOWN:
        raise Unclear("请说明要数还是要列出什么。", "Please say what to list or to count.")
    _refuse_strange(query)
    for person in _PERSONS:
        # Several people may have the name: each of them is told apart.
        if query.root not in (person, "grade") and parts.named(person):
            query.groups, query.root = [person, query.root], person
            return


def _refuse_strange(query: Query) -> None:
    about = {condition.about for condition in query.where} | set(query.groups)
    if not about <= REACH.get(query.root, frozenset()):
        raise Unclear(*_RELATION)
