"""The embedded parser: right on its stated class of questions, honest on everything else."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from querydata.campus import TABLES, build
from querydata.guard import Guarded, guard
from querydata.parser import NotUnderstood, Parsed, Values, parse

from .gold import ANSWERED, REFUSED

Campus = tuple[sqlite3.Connection, Values]


@pytest.fixture(scope="module", params=[1, 2])
def campus(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Campus]:
    file: Path = tmp_path_factory.mktemp("campus") / "campus.db"
    build(file, seed=request.param)
    connection = sqlite3.connect(file)
    yield connection, Values.load(file)
    connection.close()


def _cells(rows: list[tuple[object, ...]]) -> set[frozenset[object]]:
    return {frozenset(row) for row in rows}


@pytest.mark.row("Q1")
@pytest.mark.parametrize(("question", "gold"), ANSWERED, ids=[question for question, _ in ANSWERED])
def test_the_answer_is_that_of_the_gold_sql(campus: Campus, question: str, gold: str) -> None:
    """Every gold row is among ours, cell by cell, and we have no row more; columns that identify may be added."""
    connection, values = campus
    parsed = parse(question, values=values)
    assert isinstance(parsed, Parsed), parsed
    guarded = guard(parsed.sql, tables=TABLES, max_rows=10_000)
    assert isinstance(guarded, Guarded), guarded
    ours = connection.execute(guarded.sql).fetchall()
    wanted = connection.execute(gold).fetchall()
    assert len(ours) == len(wanted)
    assert len(wanted) > 0
    ours_cells = _cells(ours)
    for row in _cells(wanted):
        assert any(row <= cells for cells in ours_cells), (row, ours[:3])


@pytest.mark.row("Q1")
@pytest.mark.parametrize("question", REFUSED)
def test_what_is_not_covered_is_refused_in_the_askers_language(campus: Campus, question: str) -> None:
    _, values = campus
    answer = parse(question, values=values)
    assert isinstance(answer, NotUnderstood), answer
    chinese = any("一" <= character <= "鿿" for character in question)
    assert (answer.language == "zh") == chinese
    assert answer.message
    for word in answer.words:
        assert word in answer.message


def test_the_class_is_large_enough_in_both_languages() -> None:
    chinese = [question for question, _ in ANSWERED if any("一" <= character <= "鿿" for character in question)]
    assert len(chinese) >= 20
    assert len(ANSWERED) - len(chinese) >= 20


def test_no_question_of_the_gold_file_occurs_in_the_source() -> None:
    import querydata.parser

    folder = Path(querydata.parser.__file__).parent
    source = "".join(file.read_text(encoding="utf8") for file in folder.iterdir() if file.suffix in (".py", ".toml"))
    assert [question for question, _ in ANSWERED if question.lower() in source.lower()] == []


def test_the_reading_is_in_the_askers_language(campus: Campus) -> None:
    _, values = campus
    zh, en = parse("各学院有多少名教师", values=values), parse("teachers per department count", values=values)
    assert isinstance(zh, Parsed)
    assert isinstance(en, Parsed)
    assert "学院" in zh.reading
    assert "department" in en.reading


def test_values_are_bound_as_text_and_never_as_sql(campus: Campus) -> None:
    """A name with a quote in the data stays a name."""
    _, values = campus
    word = next(iter(values.words["计算机学院"]))
    import dataclasses

    evil = dataclasses.replace(word, text="x' OR '1'='1")
    parsed = parse("计算机学院有多少学生", values=Values({"计算机学院": (evil,)}))
    assert isinstance(parsed, Parsed)
    assert "'x'' OR ''1''=''1'" in parsed.sql
