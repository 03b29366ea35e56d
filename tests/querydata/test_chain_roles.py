"""The chain for askers who may not see everything: whose rows are counted, and what is said about it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pytest

from oneturn import Message
from querydata.access import Access
from querydata.campus import TABLES
from querydata.chain import Source
from querydata.handler import Ask

from .scripted_openai import said
from .test_chain import COUNT, Recorder, ask, campus_of_six
from .test_model import scripted


@pytest.fixture
def source(tmp_path: Path) -> Iterator[Source]:
    with campus_of_six(tmp_path / "campus.db") as source:
        yield source


@pytest.mark.case("D10")
@pytest.mark.parametrize(
    ("question", "note"),
    [
        ("How many students?", "Only your department's students are counted."),
        ("有多少学生", "只统计了本院系的学生。"),
    ],
)
async def test_an_asker_is_answered_from_the_rows_of_the_role_and_told_so(
    source: Source, question: str, note: str
) -> None:
    for department, students in (("1", 6), ("2", 0)):
        trace = Recorder()
        async with scripted(said(COUNT)) as (_, model):
            claims = {"role": "dean", "department_id": department}
            given = await ask(question, source=source, model=model, trace=trace, claims=claims)
        assert given.rows == [[students]]
        assert given.text == trace.said
        assert given.text.endswith(note)
        assert (given.asked, given.sql != given.asked) == (f"{COUNT.replace('count', 'COUNT')} LIMIT 101", True)


@pytest.mark.case("D8", "D10")
async def test_a_follow_up_shows_the_model_what_it_wrote_and_not_the_filter(source: Source) -> None:
    claims = {"role": "dean", "department_id": "1"}
    async with scripted(said(COUNT), said(COUNT)) as (endpoint, model):
        given = await ask("students", source=source, model=model, claims=claims)
        before = Message(turn="t", payload=Ask(text="students"), answer=given.model_dump_json().encode())
        await ask("and now?", source=source, model=model, claims=claims, history=[before])
    shown = json.dumps(endpoint.requests[1]["messages"])
    assert "COUNT(*) AS students FROM student" in shown
    assert "permitted_" not in shown


@pytest.mark.parametrize(
    ("claims", "question", "text"),
    [
        ({}, "students", "It is not registered what your account may ask about"),
        ({"role": "dean"}, "学生", "你的账号没有登记可以查询的范围"),
        ({"role": "rector", "department_id": "1"}, "学生", "你的账号没有登记可以查询的范围"),
    ],
)
async def test_without_a_role_and_its_claim_neither_model_nor_data_is_asked(
    source: Source, claims: dict[str, str], question: str, text: str
) -> None:
    trace = Recorder()
    async with scripted() as (endpoint, model):
        given = await ask(question, source=source, model=model, trace=trace, claims=claims)
    assert given.refused
    assert given.text.startswith(text)
    assert (endpoint.requests, trace.events, trace.said) == ([], [], given.text)


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("What are the names?", "Your account may not ask about this: name."),
        ("姓名是什么", "你的账号无权查询这项内容：name。"),
    ],
)
async def test_what_the_role_may_not_see_is_neither_shown_to_the_model_nor_answered(
    source: Source, question: str, text: str
) -> None:
    declaration = files("querydata").joinpath("access.toml").read_text(encoding="utf8")
    declaration += '\n[table.student.reserved]\nname = ["admin"]\n'
    access = Access.parse(declaration, schema=TABLES, roles=["admin", "dean", "student"])
    trace = Recorder()
    async with scripted(said("SELECT s.name AS id FROM student AS s")) as (endpoint, model):
        claims = {"role": "dean", "department_id": "1"}
        given = await ask(question, source=replace(source, access=access), model=model, trace=trace, claims=claims)
    assert (given.refused, given.text, given.rows, given.sql) == (True, text, [], "")
    assert len(endpoint.requests) == 1
    assert "student(id, number, gender" in endpoint.requests[0]["messages"][0]["content"]
    assert trace.steps()[-1] == ("guard", "failed", 1)
    assert trace.failed()[0]["reason"] == "This account may not ask 'name'."
