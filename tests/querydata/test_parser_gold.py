"""The first cut of the gold file: results, not texts, are compared; what is unsuitable is refused."""

from __future__ import annotations

import itertools
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from querydata.campus import TABLES, build
from querydata.guard import Guarded, guard
from querydata.parser import NotUnderstood, Parsed, Values, parse

GOLD = Path(__file__).parent / "gold"
Rows = Sequence[tuple[object, ...]]


@dataclass(frozen=True)
class Case:
    language: str
    ranked: bool
    question: str
    sql: str


CASES = [
    Case(language, order == "ranked", question, sql)
    for language, order, question, sql in (
        line.split("\t") for line in (GOLD / "first_cut.tsv").read_text(encoding="utf8").splitlines()
    )
]
UNSUITABLE = (GOLD / "refused.txt").read_text(encoding="utf8").splitlines()


@pytest.fixture(scope="module", params=[1, 2])
def campus(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    file: Path = tmp_path_factory.mktemp("campus") / "campus.db"
    build(file, seed=request.param)
    connection = sqlite3.connect(file)
    connection.executescript((GOLD / "views.sql").read_text(encoding="utf8"))
    yield connection
    connection.close()


@pytest.fixture(scope="module")
def values(campus: sqlite3.Connection) -> Values:
    (_, _, file), *_ = campus.execute("PRAGMA database_list").fetchall()
    return Values.load(Path(file))


def _cell(value: object) -> object:
    return round(value, 2) if isinstance(value, float) else value


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


@pytest.mark.row("Q1")
@pytest.mark.parametrize("case", CASES, ids=[case.question for case in CASES])
def test_the_answer_has_the_rows_of_the_gold_sql(campus: sqlite3.Connection, values: Values, case: Case) -> None:
    parsed = parse(case.question, values=values)
    assert isinstance(parsed, Parsed), parsed
    assert parsed.language == case.language
    guarded = guard(parsed.sql, tables=TABLES, max_rows=100_000)
    assert isinstance(guarded, Guarded), guarded
    ours, gold = campus.execute(guarded.sql).fetchall(), campus.execute(case.sql).fetchall()
    assert same_answer(ours, gold, ranked=case.ranked), (parsed, len(ours), len(gold), ours[:3], gold[:3])


@pytest.mark.row("Q1")
@pytest.mark.parametrize("question", UNSUITABLE)
def test_what_has_no_one_reading_is_refused_in_words(values: Values, question: str) -> None:
    answer = parse(question, values=values)
    assert isinstance(answer, NotUnderstood), answer
    assert answer.message
    assert all(word in answer.message for word in answer.words)


def test_the_comparison_notices_a_wrong_pairing_and_a_wrong_order() -> None:
    """The judge must be able to say no."""
    gold = [("a", 1), ("b", 2)]
    assert same_answer([(2, "x", "b"), (1, "y", "a")], gold, ranked=False)
    assert not same_answer([(2, "x", "b"), (1, "y", "a")], gold, ranked=True)
    assert not same_answer([("a", 2), ("b", 1)], gold, ranked=False)
    assert not same_answer([("a", 1)], gold, ranked=False)
    assert not same_answer([], [], ranked=False)


def test_the_file_is_large_enough_and_its_text_is_not_in_the_source() -> None:
    assert sum(case.language == "zh" for case in CASES) >= 40
    assert sum(case.language == "en" for case in CASES) >= 40
    assert len(UNSUITABLE) >= 25
    import querydata.parser

    folder = Path(querydata.parser.__file__).parent
    source = "".join(file.read_text(encoding="utf8").lower() for file in folder.glob("*.*") if file.is_file())
    asked = [*(case.question for case in CASES), *(text for text in UNSUITABLE if len(text) > 4)]
    assert [question for question in asked if question.lower() in source] == []
