"""How a question was read, told to whoever asked, in their language."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files

from querydata.parser.sql import Query
from querydata.parser.words import Word

_OWNED = {
    "student": ("学生所在的", "the students' "),
    "grade": ("学生所在的", "the students' "),
    "resit": ("学生所在的", "the students' "),
    "course": ("开课的", "the courses' "),
    "teacher": ("教师所在的", "the teachers' "),
}


@cache
def _names() -> dict[str, dict[str, str]]:
    content = files("querydata.parser").joinpath("names.toml").read_text(encoding="utf8")
    return {language: dict(names) for language, names in tomllib.loads(content).items()}


def name_of(meaning: str, language: str) -> str:
    """The word for one of the lexicon's meanings."""
    return _names()[language].get(meaning, meaning)


def heading_of(query: Query) -> str:
    """The heading of the number column."""
    if query.counted:
        noun = name_of(query.counted, query.language)
        return f"{noun}数" if query.language == "zh" else f"number of {noun}"
    return name_of(query.measure, query.language).split("（", maxsplit=1)[0].split(" (", maxsplit=1)[0]


def reading_of(query: Query, conditions: list[Word]) -> str:
    """One sentence: what is shown, of what, by what, in which order."""
    zh = query.language == "zh"
    comma = "、" if zh else ", "
    what = heading_of(query) if query.counted else name_of(query.measure or query.root, query.language)
    if query.groups and not query.measure and not query.counted:
        what = name_of(query.groups[-1], query.language)
    parts = [("查询：" if zh else "Shown: ") + what]
    if conditions:
        of = comma.join(dict.fromkeys(_condition(word, query) for word in conditions))
        parts.append(("范围：" if zh else "only: ") + of)
    if query.groups:
        by = comma.join(_owned(group, query) for group in query.groups)
        parts.append(("按" if zh else "by ") + by)
    parts += _comparison(query)
    if query.descending is not None:
        parts.append(_ranking(query))
    return ("；" if zh else "; ").join(parts) + ("。" if zh else ".")


def _condition(word: Word, query: Query) -> str:
    if word.kind != "value":
        return name_of(word.meaning, query.language)
    zh = query.language == "zh"
    owned = _owned(word.meaning, query)
    return f"{owned}：{word.text}" if zh else f"{_one(owned)} {word.text}"


def _one(noun: str) -> str:
    return noun if noun.endswith("ss") else noun.removesuffix("s")


def _owned(entity: str, query: Query) -> str:
    """Whose department is meant: that of the students, of the course or of the teacher."""
    name = name_of(entity, query.language)
    if entity != "department" or query.root not in _OWNED:
        return name
    return _OWNED[query.root][query.language == "en"] + name


def _comparison(query: Query) -> list[str]:
    zh = query.language == "zh"
    if query.inner is not None:
        inner = query.inner
        measure = heading_of(inner) if inner.counted else name_of(inner.measure, query.language)
        return [f"条件：{measure} {query.condition_read}" if zh else f"whose {measure} is {query.condition_read}"]
    if query.score:
        return [f"条件：成绩 {query.score}" if zh else f"where the score is {query.score}"]
    if query.having:
        return [f"条件：{heading_of(query)} {query.having}" if zh else f"where {heading_of(query)} is {query.having}"]
    return []


def _ranking(query: Query) -> str:
    zh = query.language == "zh"
    if zh:
        order = "从高到低" if query.descending else "从低到高"
        return f"{order}，前 {query.limit}（并列时按编号或名称）" if query.limit else order
    order = "highest first" if query.descending else "lowest first"
    return f"{order}, the first {query.limit} (ties by number or name)" if query.limit else order
