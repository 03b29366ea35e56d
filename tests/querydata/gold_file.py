"""The gold file: questions with the SQL that answers them, and questions that nobody may answer.

`gold/answered/*.tsv` has one question a line: language, order, question, SQL; the file's name is the class. The order is
`ranked` where the rows' order is part of the answer, else `set`. A follow-up stands behind its first question: `first ⇒ then`.
The SQL is written on the tables of `gold/facts.sql`. Conventions, where a question leaves a choice:

- Rates and shares are percentages with two places. A term is the one that `retrieval.toml` explains.
- "Each" means each: a group with none counts 0. An average or a rate has no row where there is nothing to look at.
- The highest and the lowest are all that tie for it; the first ten are ten, ties by number or name.
- A name that several people share gives one row, or one set of rows, for each of them.

`gold/unsuitable.tsv`: language, kind, question; it must be refused or asked back.
"""

from __future__ import annotations

import itertools
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from querydata.campus import build

FOLDER = Path(__file__).parent / "gold"
SEEDS = (1, 2, 3)
Rows = Sequence[tuple[object, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A question with its gold SQL; `earlier` is the question that it follows up, if any."""

    language: str
    ranked: bool
    kind: str
    earlier: str
    question: str
    sql: str

    @property
    def text(self) -> str:
        """The question as it stands in the file."""
        return f"{self.earlier} ⇒ {self.question}" if self.earlier else self.question


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsuitable:
    """A question that must be refused or asked back."""

    language: str
    kind: str
    question: str


def answered(kind: str = "*") -> list[Case]:
    """The cases of a class, or of all."""
    files = sorted((FOLDER / "answered").glob(f"{kind}.tsv"))
    return [case for file in files for case in cases_of(file)]


def cases_of(file: Path) -> list[Case]:
    """The cases of one file."""
    return [_case(file.stem, *line.split("\t")) for line in file.read_text(encoding="utf8").splitlines()]


def _case(kind: str, language: str, order: str, text: str, sql: str) -> Case:
    if order not in ("set", "ranked"):
        raise ValueError(order)
    earlier, _, question = text.rpartition(" ⇒ ")
    return Case(language=language, ranked=order == "ranked", kind=kind, earlier=earlier, question=question, sql=sql)


def unsuitable() -> list[Unsuitable]:
    """What must be refused or asked back."""
    lines = (FOLDER / "unsuitable.tsv").read_text(encoding="utf8").splitlines()
    return [
        Unsuitable(language=language, kind=kind, question=question)
        for language, kind, question in (line.split("\t") for line in lines)
    ]


@contextmanager
def campus(folder: Path, *, seed: int) -> Iterator[tuple[Path, sqlite3.Connection]]:
    """A campus database in `folder`, and a connection to it that sees the facts that the gold SQL is written on."""
    file = folder / f"campus-{seed}.db"
    build(file, seed=seed)
    connection = sqlite3.connect(file)
    try:
        connection.executescript((FOLDER / "facts.sql").read_text(encoding="utf8"))
        yield file, connection
    finally:
        connection.close()


def same_answer(ours: Rows, gold: Rows, *, ranked: bool) -> bool:
    """Whether some of our columns, in some order, are exactly the gold rows; further columns may identify a row."""
    if len(ours) != len(gold) or not gold:
        return False
    mine = [[_cell(row[at]) for row in ours] for at in range(len(ours[0]))]
    wanted = [[_cell(row[at]) for row in gold] for at in range(len(gold[0]))]
    fitting = [[at for at, column in enumerate(mine) if Counter(column) == Counter(other)] for other in wanted]
    target = list(zip(*wanted, strict=True))
    for choice in itertools.product(*fitting):
        if len(set(choice)) == len(choice):
            rows = list(zip(*(mine[at] for at in choice), strict=True))
            if rows == target if ranked else Counter(rows) == Counter(target):
                return True
    return False


def _cell(value: object) -> object:
    return round(value, 2) if isinstance(value, float) else value
