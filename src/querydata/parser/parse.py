"""Understands a question: what it is about, what is measured, by what, under which conditions; or says what it does not."""

from __future__ import annotations

from dataclasses import dataclass

from querydata.parser.intent import query_of
from querydata.parser.parts import Unclear, parts_of
from querydata.parser.reading import heading_of, name_of, reading_of
from querydata.parser.sql import NoPath, to_sql
from querydata.parser.words import Language, Values, language_of, words_of


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


def parse(question: str, *, values: Values) -> Parsed | NotUnderstood:
    """Understand `question`, or say in its language what stands in the way. Nothing is guessed."""
    words = words_of(question, values)
    language = language_of(question, words)
    try:
        parts = parts_of(words)
        query = query_of(parts, language)
        query.heading = heading_of(query) if query.measure or query.counted else ""
        sql = to_sql(query)
    except Unclear as unclear:
        return NotUnderstood(language=language, message=unclear.messages[language], words=unclear.words)
    except NoPath:
        message = {"zh": "这几样东西之间没有可查询的关系。", "en": "I see no way in which these are related."}
        return NotUnderstood(language=language, message=message[language])
    title = query.heading or name_of([query.root, *query.groups][-1], language)
    return Parsed(sql=sql, reading=reading_of(query, parts.conditions), language=language, title=title)
