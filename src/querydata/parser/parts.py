"""The words of a question by the part that they play: grouped by, about, on condition of; or what is unclear about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from querydata.parser.reading import name_of
from querydata.parser.words import Kind, Language, Word


class Unclear(Exception):
    """The question has to be put differently; says so in both languages and names the words."""

    def __init__(self, zh: str, en: str, *words: str) -> None:
        super().__init__(en)
        self.messages: dict[Language, str] = {"zh": zh, "en": en}
        self.words = words


@dataclass(slots=True)
class Parts:
    """The words of a question by the part that they play."""

    words: list[Word]
    groups: list[str] = field(default_factory=list)
    entities: list[tuple[int, str]] = field(default_factory=list)
    """(place, entity) of those that no group word claimed."""
    conditions: list[Word] = field(default_factory=list)
    sorted_by: bool = False
    """Whether the question names what to sort by: "by GPA"."""

    def of(self, kind: Kind) -> list[tuple[int, Word]]:
        """The words of a kind, with their places."""
        return [(place, word) for place, word in enumerate(self.words) if word.kind == kind]

    def meanings(self, kind: Kind) -> set[str]:
        """What the words of a kind mean."""
        return {word.meaning for _, word in self.of(kind)}

    def take(self, entity: str) -> None:
        """The entity has found its part."""
        self.entities = [(place, name) for place, name in self.entities if name != entity]

    def left(self) -> list[str]:
        """The entities that have not."""
        return list(dict.fromkeys(entity for _, entity in self.entities))

    def named(self, entity: str) -> bool:
        """Whether one of that kind is named: several people may have the name."""
        return any(word.kind == "value" and word.meaning == entity for word in self.conditions)

    def filtered(self) -> set[str]:
        """The business terms that restrict the question."""
        return {word.meaning for word in self.conditions if word.kind == "filter"}

    def alternatives(self) -> list[str]:
        """The kinds of which several are named: two departments, two terms."""
        found: dict[str, set[str]] = {}
        for word in self.conditions:
            if word.kind in ("value", "term"):
                found.setdefault("term" if word.kind == "term" else word.meaning, set()).add(word.text)
        return [table for table, texts in found.items() if len(texts) > 1]

    def about_people(self) -> bool:
        """Only people fail, have a gender or belong to a cohort."""
        return any(word.kind in ("filter", "gender") or word.meaning == "cohort" for word in self.conditions)


def parts_of(words: Sequence[Word]) -> Parts:
    """Sort the words; raises `Unclear` for those that nobody knows and for groups that are none."""
    _refuse_unknown(words)
    parts = Parts(_settled(_speaking(words)))
    if not parts.words:
        raise Unclear("请说得具体一些：要查什么？", "Please be more specific: what shall I look up?")
    _refuse_roles(words, parts)
    _refuse_half_said(words, parts)
    _sort(parts)
    _sort_genders(parts)
    _sort_units(parts)
    parts.groups.extend(parts.alternatives())
    return parts


def _speaking(words: Sequence[Word]) -> list[Word]:
    """The words that have a meaning of their own; each remembers whether others stood before it."""
    speaking: list[Word] = []
    apart = False
    for word in words:
        if word.kind in ("stop", "take"):
            apart = True
        else:
            speaking.append(replace(word, apart=apart))
            apart = False
    return speaking


def _refuse_roles(words: Sequence[Word], parts: Parts) -> None:
    """Students do not teach, and teachers take no courses."""
    people = {word.meaning for word in parts.words if word.kind in ("entity", "asks", "value")} & {"student", "teacher"}
    for kind, person in (("teach", "student"), ("take", "teacher")):
        texts = [word.text for word in words if word.kind == kind]
        if texts and people == {person}:
            raise Unclear(
                f"“{texts[0]}”在这里指谁，我不能确定。", f"I am not sure who is meant by {texts[0]!r}.", texts[0]
            )


def _refuse_half_said(words: Sequence[Word], parts: Parts) -> None:
    """What would be answered differently, depending on what was not said."""
    related = {word.kind for word in words} & {"take", "teach"}
    if related and any(word.kind == "entity" and word.meaning == "class" for word in parts.words):
        raise Unclear(
            "“班级”指行政班；要查课程，请说课程。",
            "A class here is a group of students; if you mean courses, please say so.",
        )
    measures = parts.meanings("measure")
    if measures & {"highest_score", "lowest_score"} and parts.of("who"):
        raise Unclear(
            "要查的是分数，还是得到它的学生？得分者目前不能这样问。",
            "Do you ask for the score, or for who has it? I can only tell the score.",
        )
    students = any(word.kind == "entity" and word.meaning == "student" for word in parts.words)
    if measures and "take" in related and students:
        raise Unclear(
            "是指这门课里的成绩，还是这些学生的全部成绩？",
            "Do you mean the grades in this course, or all grades of these students?",
        )


def _refuse_unknown(words: Sequence[Word]) -> None:
    unknown = tuple(word.text for word in words if word.kind == "unknown")
    if unknown:
        raise Unclear(
            f"我不认识：{'、'.join(unknown)}。我只能回答本校院系、专业、班级、学生、教师、课程、学期和成绩方面的问题。",
            f"I do not know: {', '.join(unknown)}. I can answer questions about departments, majors, classes, students, "
            "teachers, courses, terms and grades of this campus.",
            *unknown,
        )


def _settled(words: list[Word]) -> list[Word]:
    """Decide shared names by the words around them, and put "3 or more" in the order of "at least 3"."""
    settled: list[Word] = []
    teaching, apart = any(word.kind == "teach" for word in words), False
    for place, word in enumerate(words):
        near = {other.meaning for other in _next_to(words, place) if other.kind == "entity"}
        if word.kind == "teach":
            apart = True
            continue
        if word.kind == "value":
            settled.append(_reading(word, near=near, teaching=teaching))
        elif word.kind == "suffix" and settled and settled[-1].kind in ("number", "unit"):
            at = len(settled) - (1 if settled[-1].kind == "number" else 2)
            settled.insert(at, replace(word, kind="compare"))
        else:
            settled.append(word)
        settled[-1] = replace(settled[-1], apart=word.apart or apart)
        apart = False
    return settled


def _next_to(words: Sequence[Word], place: int) -> list[Word]:
    """The words directly before and after, with nothing between."""
    before = words[place - 1 : place] if place and not words[place].apart else []
    after = [word for word in words[place + 1 : place + 2] if not word.apart]
    return [*before, *after]


def _reading(word: Word, *, near: set[str], teaching: bool) -> Word:
    readings = [replace(word, others=()), *word.others]
    if {word.meaning, *near} == {"student", "teacher"} and not word.others:
        raise Unclear(
            f"没有叫“{word.text}”的这类人。", f"There is nobody of that kind called {word.text!r}.", word.text
        )
    if len(readings) == 1:
        return readings[0]
    kinds = {reading.meaning for reading in readings}
    fitting = [reading for reading in readings if reading.meaning in near]
    if len(fitting) == 1:
        return fitting[0]
    if kinds == {"student", "teacher"}:
        return next(reading for reading in readings if (reading.meaning == "teacher") == teaching)
    raise Unclear(
        f"“{word.text}”有多种含义，请说明是课程、专业还是别的。",
        f"{word.text!r} may mean several things; please say whether it is a course, a major or something else.",
        word.text,
    )


def _sort(parts: Parts) -> None:  # noqa: C901, PLR0912 - one pass over the words, one case for each kind
    pending: Word | None = None
    last = ""
    for place, word in enumerate(parts.words):
        grouped = pending is not None or last == "and"
        near = _next_to(parts.words, place)
        named = any(other.kind == "value" and other.meaning == word.meaning for other in near)
        match word.kind:
            case "each":
                pending, last = word, ""
                continue
            case "and":
                last = "and" if last == "group" else ""
                continue
            case "measure" | "count" if pending is not None and pending.meaning == "by":
                parts.sorted_by = True
            case "filter" | "gender" | "value" | "term" if word.meaning != "both":
                parts.conditions.append(word)
                if word.kind in ("filter", "gender") and pending is not None:
                    continue  # each failing student, each girl
            case "entity" | "gender" if grouped:
                parts.groups.append("gender" if word.kind == "gender" else word.meaning)
                pending, last = None, "group"
                continue
            case "asks":
                parts.entities.append((place, word.meaning))
            case "entity" if not named:
                parts.entities.append((place, word.meaning))
            case _:
                pass
        if pending is not None and not parts.sorted_by:
            raise Unclear(f"“{word.text}”不能用来分组。", f"I cannot group by {word.text!r}.", word.text)
        pending, last = None, ""
    if pending is not None and parts.of("gender"):
        parts.groups.append("student")
    elif pending is not None:
        raise Unclear("请说明按什么分组。", "Please say by what to group.")


def _sort_genders(parts: Parts) -> None:
    meanings = parts.meanings("gender")
    if "both" in meanings or meanings >= {"男", "女"}:
        parts.groups.append("gender")
        parts.conditions = [word for word in parts.conditions if word.kind != "gender"]


def _sort_units(parts: Parts) -> None:
    units, measures = parts.meanings("unit"), parts.meanings("measure")
    rates = measures & {"fail_rate", "pass_rate"}
    scores = measures & {"average", "highest_score", "lowest_score"}
    grades = any(word.meaning == "grade" for _, word in parts.of("entity"))
    if ("percent" in units and not rates) or ("points" in units and not scores and not grades):
        texts = [word.text for _, word in parts.of("unit")]
        raise Unclear(
            f"请说明“{texts[0]}”指的是哪个指标。", f"Please say which figure {texts[0]!r} belongs to.", *texts
        )
    if rates and any(0 < word.number < 1 for _, word in parts.of("number")):
        raise Unclear("比率以百分比计：请写成例如 20%。", "Rates are percentages: please write 20%, for example.")


def _group_by_alternatives(parts: Parts) -> None:
    """Two departments side by side are compared, each with its own figure; nothing is in both of them."""
    parts.groups.extend(parts.alternatives())


def too_many(entities: Sequence[str], language: Language) -> Unclear:
    """The question is about several kinds of things at once."""
    names = [name_of(entity, language) for entity in entities]
    return Unclear(
        f"请一次只查一种：{'、'.join(names)}？", f"Please ask for one kind of thing at a time: {', '.join(names)}?"
    )
