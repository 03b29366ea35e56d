"""Understands a question: what it is about, what is measured, by what, under which conditions; or says what it does not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from querydata.parser.reading import heading_of, name_of, reading_of
from querydata.parser.sql import FAILING, NoPath, Query, to_sql
from querydata.parser.words import Language, Values, Word, language_of, words_of

MOST = 200
"""The largest ranking that is taken for one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """A question that was understood: its SQL, and how it was read in the asker's language."""

    sql: str
    reading: str
    language: Language
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NotUnderstood:
    """A question that is refused or asked back, in words; `words` are those that stood in the way."""

    language: Language
    message: str
    words: tuple[str, ...] = ()


class _Unclear(Exception):
    def __init__(self, zh: str, en: str, *words: str) -> None:
        super().__init__(en)
        self.messages: dict[Language, str] = {"zh": zh, "en": en}
        self.words = words


@dataclass(slots=True)
class _Parts:
    """The words of a question by the part that they play."""

    words: list[Word]
    groups: list[str] = field(default_factory=list)
    entities: list[tuple[int, str]] = field(default_factory=list)
    """(place, entity) of those that no group word claimed."""
    conditions: list[Word] = field(default_factory=list)

    def of(self, kind: str) -> list[tuple[int, Word]]:
        return [(place, word) for place, word in enumerate(self.words) if word.kind == kind]

    def take(self, entity: str) -> None:
        self.entities = [(place, name) for place, name in self.entities if name != entity]


def parse(question: str, *, values: Values) -> Parsed | NotUnderstood:
    """Understand `question`, or say in its language what stands in the way. Nothing is guessed."""
    language = language_of(question)
    try:
        words = [word for word in words_of(question, values) if word.kind != "stop"]
        _refuse_unknown(words)
        parts = _sorted(words)
        query = _query(parts, language)
        query.heading = heading_of(query) if query.measure or query.counted else ""
        sql = to_sql(query)
    except _Unclear as unclear:
        return NotUnderstood(language=language, message=unclear.messages[language], words=unclear.words)
    except NoPath:
        return NotUnderstood(
            language=language,
            message="这几样东西之间没有可查询的关系。"
            if language == "zh"
            else "I see no way in which these are related.",
        )
    title = query.heading or name_of(query.root, language)
    return Parsed(sql=sql, reading=reading_of(query, parts.conditions), language=language, title=title)


def _refuse_unknown(words: Sequence[Word]) -> None:
    unknown = tuple(word.text for word in words if word.kind == "unknown")
    if unknown:
        raise _Unclear(
            f"我不认识：{'、'.join(unknown)}。我只能回答本校院系、专业、班级、学生、教师、课程、学期和成绩方面的问题。",
            f"I do not know: {', '.join(unknown)}. I can answer questions about departments, majors, classes, students, "
            "teachers, courses, terms and grades of this campus.",
            *unknown,
        )
    if not words:
        raise _Unclear("请说得具体一些：要查什么？", "Please be more specific: what shall I look up?")


def _sorted(words: list[Word]) -> _Parts:
    parts = _Parts(words)
    each = False
    for place, word in enumerate(words):
        named_by_value = any(
            near.kind == "value" and near.meaning == word.meaning for near in words[max(place - 1, 0) : place + 2]
        )
        if word.kind == "each":
            each = True
            continue
        if word.kind == "entity" and each:
            parts.groups.append(word.meaning)
        elif word.kind == "entity" and not named_by_value:
            parts.entities.append((place, word.meaning))
        elif word.kind in ("value", "filter", "term"):
            parts.conditions.append(word)
        if each and word.kind not in ("entity", "gender"):
            raise _Unclear(f"“{word.text}”不能用来分组。", f"I cannot group by {word.text!r}.", word.text)
        each = False
    if each:
        raise _Unclear("请说明按什么分组。", "Please say by what to group.")
    _sort_gender(parts)
    return parts


def _sort_gender(parts: _Parts) -> None:
    meanings = {word.meaning for _, word in parts.of("gender")}
    if "both" in meanings or meanings >= {"男", "女"}:
        parts.groups.append("gender")
    elif meanings:
        parts.conditions.extend(word for _, word in parts.of("gender")[:1])


def _query(parts: _Parts, language: Language) -> Query:
    query = Query(language=language, root="")
    _measure(parts, query)
    _count(parts, query)
    _rank(parts, query)
    _compare(parts, query)
    _subject(parts, query)
    query.where = [_condition(word) for word in parts.conditions]
    query.groups = list(dict.fromkeys(query.groups))
    return query


def _measure(parts: _Parts, query: Query) -> None:
    measures = {word.meaning for _, word in parts.of("measure")}
    if len(measures) > 1:
        raise _Unclear("请一次只问一个指标。", "Please ask for one figure at a time.")
    query.measure = next(iter(measures), "")
    query.groups.extend(parts.groups)


def _count(parts: _Parts, query: Query) -> None:
    counts = parts.of("count")
    if not counts or query.measure:
        if any(word.meaning != "any" for _, word in counts):
            raise _Unclear("请一次只问一个指标。", "Please ask for one figure at a time.")
        return
    place, word = counts[0]
    if word.meaning != "any":
        query.counted = word.meaning
    elif parts.entities:
        after = [entity for at, entity in parts.entities if at > place]
        query.counted = after[0] if after else parts.entities[-1][1]
    elif parts.conditions and _implied(parts):
        query.counted = "student"
    else:
        raise _Unclear(
            "请说明要数什么：学生、教师还是课程？", "Please say what to count: students, teachers or courses?"
        )
    parts.take(query.counted)


def _rank(parts: _Parts, query: Query) -> None:
    ranks = parts.of("rank")
    if not ranks:
        return
    numbers = [word.number for place, word in parts.of("number") if not _compared(parts, place)]
    meanings = {word.meaning for _, word in ranks}
    if meanings & {"most", "fewest"} and not query.measure and not query.counted:
        query.counted = _ranked_entity(parts, ranks[0][0], query.language)
        parts.take(query.counted)
    if not query.measure and not query.counted:
        raise _Unclear(
            "请说明按什么排名，例如平均分、绩点或人数。",
            "Please say what to rank by, such as average grade, GPA or number of students.",
        )
    query.descending = not meanings & {"lowest", "fewest"}
    query.limit = int(numbers[0]) if numbers else 1
    if len(numbers) > 1 or not 1 <= query.limit <= MOST:
        raise _Unclear(f"名次须在 1 到 {MOST} 之间。", f"A ranking has between 1 and {MOST} places.")
    if not parts.entities and not query.groups:
        raise _Unclear(
            "请说明给谁排名：学生、课程还是学院？", "Please say what to rank: students, courses or departments?"
        )
    query.groups.extend(entity for _, entity in parts.entities)
    parts.entities = []


def _ranked_entity(parts: _Parts, place: int, language: Language) -> str:
    """What there are most of: in English it stands after the word, in Chinese before it."""
    if len(parts.entities) + len(parts.groups) < 2:  # noqa: PLR2004 - one is counted, the other ranked
        raise _Unclear("请说明什么最多。", "Please say most of what.")
    after = [entity for at, entity in parts.entities if at > place]
    before = [entity for at, entity in parts.entities if at < place]
    chosen = (before[-1:] or after[:1]) if language == "zh" else (after[:1] or before[-1:])
    return chosen[0]


def _compared(parts: _Parts, place: int) -> bool:
    return place > 0 and parts.words[place - 1].kind == "compare"


def _compare(parts: _Parts, query: Query) -> None:
    compares = parts.of("compare")
    numbers = [(place, word) for place, word in parts.of("number") if _compared(parts, place)]
    loose = [word.text for place, word in parts.of("number") if not _compared(parts, place) and query.limit is None]
    if loose:
        raise _Unclear(
            f"我不明白数字 {loose[0]} 指什么。", f"I do not see what the number {loose[0]} is for.", loose[0]
        )
    if not compares:
        return
    if len(compares) != 1 or len(numbers) != 1:
        raise _Unclear("请给出一个比较的数值。", "Please give one number to compare with.")
    place, number = numbers[0]
    if not query.measure and not query.counted:
        after = [entity for at, entity in parts.entities if at > place]
        if not after:
            raise _Unclear("请说明比较的是什么。", "Please say what to compare.")
        query.counted = after[0]
        parts.take(query.counted)
    query.having = f"{compares[0][1].meaning} {number.number:g}"
    if not parts.entities and not query.groups:
        raise _Unclear("请说明要查谁：学生、课程还是学院？", "Please say of what: students, courses or departments?")
    query.groups.extend(entity for _, entity in parts.entities)
    parts.entities = []


def _subject(parts: _Parts, query: Query) -> None:
    left = list(dict.fromkeys(entity for _, entity in parts.entities))
    if query.measure:
        people = any(word.kind == "value" and word.meaning == "student" for word in parts.conditions)
        each_student = query.measure == "gpa" and left == ["student"]
        if (people or each_student) and not query.groups:
            query.groups.append("student")
        if len(left) > 1:
            raise _too_many(left, query.language)
        subjects = [*query.groups, *left]
        query.root = next((entity for entity in ("student", "course", "teacher") if entity in subjects), "student")
        return
    if query.counted:
        if left:
            raise _too_many([query.counted, *left], query.language)
        query.root = query.counted
        return
    if not left and _implied(parts):
        left = ["student"]
    if not left:
        raise _Unclear("请说明要查什么：学生、课程、成绩……", "Please say what to look up: students, courses, grades …")
    if len(left) > 1 or query.groups:
        raise _too_many([*left, *query.groups], query.language)
    query.root = left[0]
    if query.root != "student" and any(word.kind == "value" and word.meaning == "student" for word in parts.conditions):
        # Several people may have the name: each of them is told apart.
        query.groups, query.root = ["student", query.root], "student"


def _too_many(entities: Sequence[str], language: Language) -> _Unclear:
    names = [name_of(entity, language) for entity in entities]
    return _Unclear(
        f"请一次只查一种：{'、'.join(names)}？", f"Please ask for one kind of thing at a time: {', '.join(names)}?"
    )


def _implied(parts: _Parts) -> bool:
    """Only people fail, and only people have a gender."""
    return any(word.kind in ("filter", "gender") for word in parts.conditions)


def _condition(word: Word) -> tuple[str, str]:
    match word.kind:
        case "filter":
            return "student", f"student.id IN ({FAILING})"
        case "gender":
            return "student", f"student.gender = '{word.meaning}'"
        case "term" if word.meaning == "current":
            return "term", "term.is_current = 1"
        case "term":
            return "term", "term.id = (SELECT MAX(t.id) FROM term AS t WHERE t.is_current = 0)"
        case _:
            text = word.text.replace("'", "''")
            return word.meaning, f"{word.meaning}.{word.column} = '{text}'"
