"""From a question to typed words: the longest known word first, and what nobody knows stays visible."""

from __future__ import annotations

import re
import sqlite3
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Literal, Self

Kind = Literal[
    "entity",
    "asks",
    "measure",
    "count",
    "each",
    "and",
    "who",
    "rank",
    "compare",
    "suffix",
    "unit",
    "gender",
    "filter",
    "term",
    "teach",
    "take",
    "stop",
    "value",
    "number",
    "unknown",
]
Language = Literal["zh", "en"]

_PIECE = re.compile(r"\d+(?:\.\d+)?|[a-z]+\d+|[a-z]+(?:-[a-z]+)*|['’]s\b|[一-鿿]|\S", re.IGNORECASE)
_PUNCTUATION = frozenset("?？。.,，!！;；:：\"“”‘’'()（）「」《》-")
_NUMERALS = {
    "一": 1,
    "两": 2,
    "二": 2,
    "三": 3,
    "四": 4,
    "五": 5,
    "六": 6,
    "七": 7,
    "八": 8,
    "九": 9,
    "十": 10,
    "二十": 20,
}
_NUMBERS = {
    "one": 1,
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "seven": 7,
    "eight": 8,
    "nine": 9,
    "ten": 10,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """One word of a question. `meaning` is the lexicon's name for it; of a value, the table it is found in."""

    kind: Kind
    text: str
    meaning: str = ""
    column: str = ""
    number: float = 0.0
    apart: bool = False
    """Whether words without a meaning of their own stand between it and the one before."""
    others: tuple[Word, ...] = ()
    """What else has this name: a student and a teacher may share theirs."""


@dataclass(frozen=True, slots=True)
class Values:
    """The names that occur in the data, as words."""

    words: Mapping[str, tuple[Word, ...]]
    """Lower-case text → what has that name; several, where a student and a teacher share it."""

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read them from a campus database."""
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        try:
            words: dict[str, tuple[Word, ...]] = {}
            for word in _values(connection):
                for text in _aliases(word):
                    found = words.get(text.lower(), ())
                    if all(word.meaning != other.meaning for other in found):
                        words[text.lower()] = (*found, word)
            return cls(words)
        finally:
            connection.close()


_NAMED = (
    ("student", "name"),
    ("teacher", "name"),
    ("class", "name"),
    ("term", "name"),
    ("course", "name_en"),
    ("course", "name_zh"),
    ("course", "code"),
    ("major", "name_en"),
    ("major", "name_zh"),
    ("department", "name_en"),
    ("department", "name_zh"),
    ("student", "number"),
    ("teacher", "number"),
)


def _values(connection: sqlite3.Connection) -> Iterator[Word]:
    for table, column in _NAMED:
        for (text,) in connection.execute(f"SELECT DISTINCT {column} FROM {table}"):
            yield Word(kind="value", text=text, meaning=table, column=column)
    for (year,) in connection.execute("SELECT DISTINCT enrolled_year FROM student"):
        yield Word(kind="value", text=str(year), meaning="cohort", column="enrolled_year")


def _aliases(word: Word) -> Iterator[str]:
    text = word.text
    if word.meaning == "cohort":
        yield from (f"{text}级", f"{text}年级", f"{text} cohort", f"cohort {text}", f"cohort of {text}")
        return
    yield text
    if word.meaning == "department" and word.column == "name_en":
        full = text.removeprefix("School of ")
        for short in (full, *_content().get("short", {}).get(full.lower(), ())):
            yield from (short, f"department of {short}", f"{short} department", f"school of {short}", f"{short} school")
    if word.meaning == "department" and word.column == "name_zh":
        # 数学学院 → 数学系, but 法学院 → 法学系
        yield (text.removesuffix("学院") if text.endswith("学学院") or len(text) > 3 else text[:-1]) + "系"  # noqa: PLR2004
    if word.meaning == "term":
        season = {"春": "spring", "秋": "autumn"}[text[-1]]
        yield from (f"{season} {text[:-1]}", f"{text[:-1]} {season}", f"{text}季", f"{text}学期", f"{text}季学期")
        yield from (f"{text[:-1]}年{text[-1]}季", f"{text[:-1]}年{text[-1]}季学期")


@cache
def _content() -> dict[str, dict[str, list[str]]]:
    return tomllib.loads(files("querydata.parser").joinpath("lexicon.toml").read_text(encoding="utf8"))


@cache
def lexicon() -> dict[str, Word]:
    """The words of lexicon.toml, by their text."""
    return {
        text: Word(kind=kind, text=text, meaning=meaning)  # type: ignore[arg-type]
        for kind, meanings in _content().items()
        if kind != "short"
        for meaning, texts in meanings.items()
        for text in texts
    }


def language_of(question: str, words: Iterable[Word]) -> Language:
    """The language of the words that are no names: the GPA of somebody may be asked for in English."""
    own = [word.text for word in words if word.kind not in ("value", "unknown", "number")]
    if not any(text[0].isascii() and text[0].isalpha() for text in own):
        own = [question]
    return "zh" if any(re.search(r"[一-鿿]", text) for text in own) else "en"


def words_of(question: str, values: Values) -> list[Word]:
    """The words of a question, in order, without punctuation."""
    pieces = [piece.lower().replace("’", "'") for piece in _PIECE.findall(question)]
    known, found, at = lexicon(), list[Word](), 0
    longest = 1 + max(len(_PIECE.findall(text)) for text in (*known, *values.words))
    while at < len(pieces):
        for size in range(min(longest, len(pieces) - at), 0, -1):
            text = _joined(pieces[at : at + size])
            word = _value(values, text) or known.get(text) or _number(text)
            if word is not None:
                found.append(word)
                at += size
                break
        else:
            if pieces[at] not in _PUNCTUATION:
                found.append(Word(kind="unknown", text=pieces[at]))
            at += 1
    return _merged(found)


def _value(values: Values, text: str) -> Word | None:
    found = values.words.get(text, ())
    return replace(found[0], others=found[1:]) if found else None


def _joined(pieces: Iterable[str]) -> str:
    text = ""
    for piece in pieces:
        space = bool(text) and text[-1].isascii() and piece[0].isascii() and text[-1].isalnum() and piece[0].isalnum()
        text += f" {piece}" if space else piece
    return text


def _number(text: str) -> Word | None:
    if re.fullmatch(r"\d+(\.\d+)?", text):
        return Word(kind="number", text=text, number=float(text))
    value = _NUMERALS.get(text) or _NUMBERS.get(text)
    return None if value is None else Word(kind="number", text=text, number=float(value))


def _merged(words: list[Word]) -> list[Word]:
    """Unknown characters that stand together are one unknown word."""
    merged: list[Word] = []
    for word in words:
        last = merged[-1] if merged else None
        if last is not None and word.kind == last.kind == "unknown" and not word.text.isascii():
            merged[-1] = Word(kind="unknown", text=last.text + word.text)
        else:
            merged.append(word)
    return merged
