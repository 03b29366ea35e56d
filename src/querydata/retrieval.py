"""Retrieval: which tables and business terms bear on a question, by the words they share in both languages."""

from __future__ import annotations

import re
import tomllib
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import combinations

from pydantic import BaseModel, ConfigDict

_LATIN = re.compile(r"[a-z][a-z' -]*\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrieved:
    """What a model is given to answer one question with."""

    tables: tuple[str, ...]
    """The tables, with those that connect them."""
    terms: tuple[str, ...]
    """The names of the business terms, as people know them."""
    knowledge: tuple[str, ...]
    """The business terms with their meanings."""
    schema: str
    """The tables as text: what each is about, its columns and its joins."""


class _Described(BaseModel):
    model_config = ConfigDict(extra="forbid")

    words: tuple[str, ...]


class _Table(_Described):
    about: str


class _Term(_Described):
    name: str
    means: str
    tables: tuple[str, ...]


class _Knowledge(BaseModel):
    model_config = ConfigDict(extra="forbid")

    table: dict[str, _Table]
    term: dict[str, _Term]


_KNOWN = _Knowledge.model_validate(
    tomllib.loads(files("querydata").joinpath("retrieval.toml").read_text(encoding="utf8"))
)


def retrieve(question: str, *, tables: Mapping[str, Sequence[str]], earlier: Iterable[str] = ()) -> Retrieved:
    """Pick from `tables` (name → columns) what bears on `question`, which may continue the `earlier` ones.

    Where no word is known, all tables are given: leaving out what is needed costs more than a longer prompt.
    """
    text = " ".join([question, *earlier]).lower()
    terms = [term for term in _KNOWN.term.values() if _bears(term.words, text)]
    named = {name for name in tables if name in _KNOWN.table and _bears(_KNOWN.table[name].words, text)}
    named |= {name for term in terms for name in term.tables if name in tables}
    joins = _joins(tables)
    picked = _connected(named, joins) if named else set(tables)
    ordered = tuple(name for name in tables if name in picked)
    return Retrieved(
        tables=ordered,
        terms=tuple(term.name for term in terms),
        knowledge=tuple(f"{term.name}: {term.means}" for term in terms),
        schema="\n".join(_described(name, tables[name], joins=joins, among=picked) for name in ordered),
    )


def _bears(words: Iterable[str], text: str) -> bool:
    return any(_occurs(word, text) for word in words)


def _occurs(word: str, text: str) -> bool:
    if not _LATIN.match(word):
        return word in text
    return re.search(rf"(?<![a-z]){re.escape(word)}(?:s|es)?(?![a-z])", text) is not None


def _joins(tables: Mapping[str, Sequence[str]]) -> dict[tuple[str, str], str]:
    """(table, table it refers to) → the column that refers: `class_id` refers to `class.id`."""
    return {
        (name, column.removesuffix("_id")): column
        for name, columns in tables.items()
        for column in columns
        if column.endswith("_id") and column.removesuffix("_id") in tables
    }


def _connected(named: set[str], joins: Mapping[tuple[str, str], str]) -> set[str]:
    """`named`, and the tables on the shortest ways between them."""
    picked = set(named)
    for start, goal in combinations(sorted(named), 2):
        picked.update(_way(start, goal, joins))
    return picked


def _way(start: str, goal: str, joins: Mapping[tuple[str, str], str]) -> tuple[str, ...]:
    ways: deque[tuple[str, ...]] = deque([(start,)])
    seen = {start}
    while ways:
        way = ways.popleft()
        if way[-1] == goal:
            return way
        for pair in joins:
            if way[-1] in pair:
                after = pair[0] if pair[1] == way[-1] else pair[1]
                if after not in seen:
                    seen.add(after)
                    ways.append((*way, after))
    return ()


def _described(name: str, columns: Sequence[str], *, joins: Mapping[tuple[str, str], str], among: set[str]) -> str:
    about = _KNOWN.table[name].about if name in _KNOWN.table else ""
    lines = [f"{name}({', '.join(columns)})" + (f" -- {about}" if about else "")]
    lines += [
        f"  {name}.{column} = {target}.id"
        for (source, target), column in joins.items()
        if source == name and target in among
    ]
    return "\n".join(lines)
