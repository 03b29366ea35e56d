"""Through the real application: whoever signs in is answered from the rows of their role, and told so."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from querydata.accounts import Account, Accounts
from querydata.app import create_app
from querydata.assembly import campus_source, model_of
from querydata.campus import build
from querydata.settings import Settings
from querydata_app.conftest import Browse, signed_in

OWN_DEPARTMENT = """
SELECT COUNT(*) FROM student JOIN class ON class.id = student.class_id JOIN major ON major.id = class.major_id
WHERE major.department_id = 1
"""


@pytest.fixture(scope="module")
def campus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("campus") / "campus.db"
    build(path)
    return path


@pytest.fixture
def facts(campus: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(campus)) as connection:
        yield connection


@pytest.fixture
async def app(settings: Settings, campus: Path) -> AsyncIterator[FastAPI]:
    """With the demo campus and the embedded model."""
    app = create_app(settings, source=campus_source(settings, campus), model=model_of(settings, campus))
    async with app.router.lifespan_context(app):
        yield app


async def ask(client: httpx.AsyncClient, question: str) -> dict[str, Any]:
    made = (await client.post("/api/conversations")).json()
    path = f"/api/conversations/{made['id']}/turns"
    answer = await client.post(path, json={"text": question}, headers={"Idempotency-Key": "k"})
    assert answer.status_code == 200, answer.text
    assert answer.json()["status"] == "succeeded", answer.text
    return dict(answer.json()["result"])


def count(connection: sqlite3.Connection, sql: str) -> int:
    return int(connection.execute(sql).fetchone()[0])


@pytest.mark.case("D10")
async def test_the_same_question_has_the_answer_of_each_role(browse: Browse, facts: sqlite3.Connection) -> None:
    expected = {
        "admin": count(facts, "SELECT COUNT(*) FROM student"),
        "dean": count(facts, OWN_DEPARTMENT),
        "student": 1,
    }
    assert expected["admin"] > expected["dean"] > 1
    for name, number in expected.items():
        answer = await ask(await signed_in(browse(), name), "How many students are there?")
        assert answer["rows"] == [[number]], name


@pytest.mark.case("D10")
async def test_the_dean_is_told_that_only_the_department_is_counted(dean: httpx.AsyncClient) -> None:
    assert "Only your department's students are counted." in (await ask(dean, "How many students are there?"))["text"]
    assert "只统计了本院系的学生" in (await ask(dean, "一共有多少学生"))["text"]


@pytest.mark.case("D10")
async def test_the_student_finds_himself_only_and_is_told_so(
    student: httpx.AsyncClient, facts: sqlite3.Connection
) -> None:
    answer = await ask(student, "列出所有学生")
    (number,) = facts.execute("SELECT number FROM student WHERE id = 7").fetchone()
    assert [row[0] for row in answer["rows"]] == [number]
    assert "只统计了与你本人有关的数据（" in answer["text"]


async def test_the_administrator_is_told_of_no_restriction(browse: Browse) -> None:
    admin = await signed_in(browse(), "admin")
    answer = await ask(admin, "How many students are there?")
    assert "only" not in answer["text"].lower()
    assert "permitted_" not in answer["sql"]


async def test_an_account_without_a_claim_is_refused_in_words(app: FastAPI, browse: Browse) -> None:
    accounts: Accounts = app.state.accounts
    accounts.put("dean", role="dean", password="dean-demo")
    answer = await ask(await signed_in(browse()), "一共有多少学生")
    assert (answer["refused"], answer["rows"], answer["sql"]) == (True, [], "")
    assert "联系管理员" in answer["text"]


def test_claims_are_those_of_the_account_and_change_with_it(app: FastAPI) -> None:
    accounts: Accounts = app.state.accounts
    accounts.put("li", role="dean", password="p", claims={"department_id": "3"})
    token = accounts.sign_in("li", "p", address="a")
    assert isinstance(token, str)
    assert accounts.signed_in(token) == Account(name="li", role="dean", claims={"department_id": "3"})
    accounts.put("li", role="student", password="p", claims={"student_id": "5"})
    assert accounts.signed_in(token) == Account(name="li", role="student", claims={"student_id": "5"})
