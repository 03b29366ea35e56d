"""A conversation belongs to who made it; to everybody else it does not exist."""

from __future__ import annotations

from typing import Any

import httpx
import pytest


async def made(client: httpx.AsyncClient, **wanted: str) -> str:
    answer = await client.post("/api/conversations", json=wanted)
    assert answer.status_code == 201
    return str(answer.json()["id"])


async def test_a_conversation_is_made_with_or_without_a_body(dean: httpx.AsyncClient) -> None:
    assert (await dean.post("/api/conversations")).status_code == 201
    answer = await dean.post("/api/conversations", json={"title": " 挂科 \n 学生 "})
    assert answer.json()["title"] == "挂科 学生"
    assert answer.headers["location"] == f"/api/conversations/{answer.json()['id']}"


async def test_making_it_again_after_a_lost_reply_makes_no_second_one(dean: httpx.AsyncClient) -> None:
    await made(dean, id="page-made-1", title="first")
    again = await dean.post("/api/conversations", json={"id": "page-made-1", "title": "second"})
    assert (again.status_code, again.json()["title"]) == (200, "first")
    assert len((await dean.get("/api/conversations")).json()["conversations"]) == 1


async def test_the_list_is_ones_own_newest_first(dean: httpx.AsyncClient, student: httpx.AsyncClient) -> None:
    old, new = await made(dean), await made(dean)
    await made(student)
    listed = (await dean.get("/api/conversations")).json()["conversations"]
    assert [each["id"] for each in listed] == [new, old]


@pytest.mark.parametrize("wanted", ["short", "with space!", "a" * 65, "../../etc/x"])
async def test_an_odd_id_is_refused(dean: httpx.AsyncClient, wanted: str) -> None:
    assert (await dean.post("/api/conversations", json={"id": wanted})).status_code == 422


@pytest.mark.case("T28")
async def test_somebody_elses_conversation_is_answered_as_one_that_does_not_exist(
    dean: httpx.AsyncClient, student: httpx.AsyncClient
) -> None:
    theirs = await made(dean, id="conversation-of-the-dean")
    calls: list[tuple[str, str, dict[str, Any]]] = [
        ("POST", "turns", {"json": {"text": "x"}, "headers": {"Idempotency-Key": "k"}}),
        ("GET", "turns", {}),
        ("GET", "events", {}),
        ("GET", "turns/t", {}),
        ("GET", "turns/t/events", {}),
        ("POST", "turns/t/cancel", {}),
    ]
    for method, path, more in calls:
        foreign = await student.request(method, f"/api/conversations/{theirs}/{path}", **more)
        absent = await student.request(method, f"/api/conversations/no-such-one/{path}", **more)
        assert foreign.status_code == absent.status_code == 404, path
        assert foreign.content == absent.content
        assert foreign.headers["content-type"] == "application/problem+json"
    taken = await student.post("/api/conversations", json={"id": theirs})
    assert taken.status_code == 404
    assert (await dean.get(f"/api/conversations/{theirs}/turns")).json() == {"turns": []}
