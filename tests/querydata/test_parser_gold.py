"""The first cut of the gold file: results, not texts, are compared; what is unsuitable is refused."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from querydata.campus import TABLES
from querydata.guard import Guarded, guard
from querydata.parser import NotUnderstood, Parsed, Values, parse

from . import gold_file
from .gold_file import FOLDER, Case, same_answer

# Where several tie for the highest, the parser names one of them and says so; the gold file asks for all.
CASES = [*gold_file.answered("first_cut"), *gold_file.cases_of(FOLDER / "one_of_equals.tsv")]
UNSUITABLE = (FOLDER / "refused.txt").read_text(encoding="utf8").splitlines()


@pytest.fixture(scope="module", params=[1, 2])
def campus(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    with gold_file.campus(tmp_path_factory.mktemp("campus"), seed=request.param) as (_, connection):
        yield connection


@pytest.fixture(scope="module")
def values(campus: sqlite3.Connection) -> Values:
    file = next(file for _, name, file in campus.execute("PRAGMA database_list") if name == "main")
    return Values.load(Path(file))


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
