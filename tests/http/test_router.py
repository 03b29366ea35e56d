"""The router in an application: its life, its own endpoints, a second process."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any

import httpx
import pytest
from fastapi import APIRouter, Depends, FastAPI, Header, Request, Response
from pydantic import BaseModel

import oneturn.http
from oneturn import Gate, OneturnError, Principal, Settings, Turn
from oneturn.http import problem_response, respond, turn_router

if TYPE_CHECKING:
    from http.conftest import Open, Service


class Hello(BaseModel):
    text: str


async def ann() -> Principal:
    return Principal(tenant="t", subject="ann")


async def hello(turn: Turn[Hello]) -> str:
    return f"re: {turn.payload.text}"


def hello_gate(url: str) -> Gate:
    gate = Gate(Settings(records=url, grace=0, hard_deadline=5))
    gate.turn("hello")(hello)
    return gate


async def test_the_gate_opens_after_the_applications_pools_and_closes_before_them(url: str) -> None:
    gate, order = hello_gate(url), []

    @asynccontextmanager
    async def pools(app: FastAPI) -> AsyncIterator[None]:
        order.append(f"pools open, gate {gate.running}")
        yield
        order.append(f"pools close, gate {gate.running}")

    app = FastAPI(lifespan=pools)
    api = APIRouter(prefix="/api")
    api.include_router(turn_router(gate, hello, principal=ann), prefix="/v1")
    app.include_router(api)
    assert not gate.running
    async with app.router.lifespan_context(app), client_of(app) as client:
        assert gate.running
        answer = await client.post(
            "/api/v1/conversations/c/turns", json={"text": "hi"}, headers={"Idempotency-Key": "k"}
        )
        assert answer.json()["result"] == "re: hi"
    assert order == ["pools open, gate False", "pools close, gate False"]


async def test_an_application_may_open_the_gate_itself(url: str) -> None:
    gate = hello_gate(url)

    @asynccontextmanager
    async def own(app: FastAPI) -> AsyncIterator[None]:
        async with gate:
            yield
            assert gate.running

    app = FastAPI(lifespan=own)
    app.include_router(turn_router(gate, hello, principal=ann), prefix="/a")
    app.include_router(turn_router(gate, hello, principal=ann), prefix="/b")
    async with app.router.lifespan_context(app), client_of(app) as client:
        for prefix in ("/a", "/b"):
            assert (await client.get(f"{prefix}/health/ready")).status_code == 200
    assert not gate.running


async def test_a_gate_that_was_never_opened_says_how_to_open_it(url: str) -> None:
    app = FastAPI()
    app.include_router(turn_router(hello_gate(url), hello, principal=ann))
    async with client_of(app) as client:
        assert (await client.get("/health/ready")).status_code == 503
        with pytest.raises(OneturnError, match="turn_router"):
            await client.post("/conversations/c/turns", json={"text": "hi"}, headers={"Idempotency-Key": "k"})


@pytest.mark.case("T29")
async def test_an_own_endpoint_answers_like_the_router(url: str) -> None:
    gate, app = hello_gate(url), FastAPI()
    app.include_router(turn_router(gate, hello, principal=ann), prefix="/api")
    app.add_exception_handler(OneturnError, problem_response)

    @app.post("/own/{conversation_id}")
    async def own(
        conversation_id: str,
        body: Hello,
        request: Request,
        who: Annotated[Principal, Depends(ann)],
        key: Annotated[str, Header(alias="Idempotency-Key")],
    ) -> Response:
        handle = await gate.ask(hello, body, conversation=conversation_id, key=key, principal=who)
        return await respond(handle, request)

    async with app.router.lifespan_context(app), client_of(app) as client:

        async def post(text: str, **headers: str) -> httpx.Response:
            named = {"Idempotency-Key": "k", **headers}
            return await client.post("/own/a%20b", json={"text": text}, headers=named)

        first = await post("hi", Prefer="wait=0")
        turn = first.headers["turn-id"]
        if first.status_code == 202:
            assert first.headers["location"] == f"/api/conversations/a%20b/turns/{turn}"
        answer = await post("hi")
        assert answer.json() == {"turn": turn, "status": "succeeded", "result": "re: hi"}
        streamed = await post("hi", Accept="text/event-stream")
        assert streamed.text.rstrip().endswith('data: {"result":"re: hi"}')
        reused = await post("other")
        assert (reused.status_code, reused.json()["turn"]) == (422, turn)


@pytest.mark.case("T13")
@pytest.mark.row("Q2", "Q3")
@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
async def test_a_second_process_attaches_stops_and_replays(open_service: Open) -> None:
    """Two gates on one file: what one runs, the other watches and stops. (Memory is one process by declaration.)"""
    async with open_service() as one, open_service() as two:
        turn = await one.running()
        attached = await two.ask({"text": "hold"}, key="k", Prefer="wait=0")
        assert (attached.status_code, attached.json()["turn"]) == (202, turn)
        busy = await two.ask({"text": "next", "on_busy": "reject"}, key="k2")
        assert (busy.status_code, busy.json()["turn"]) == (409, turn)
        await two.client.post(f"{two.path()}/{turn}/cancel")
        assert (await two.final(turn))["reason"] == "cancelled"
        await one.until(lambda: one.stopped == [turn])
        done = await one.ask({"text": "hi"}, key="k3")
        again = await two.ask({"text": "hi"}, key="k3")
        assert again.content == done.content
        assert (one.calls, two.calls) == (["hold", "hi"], [])


async def test_identity_is_asked_on_every_call(service: Service) -> None:
    turn = (await service.ask({"text": "hi"}, key="k")).json()["turn"]
    for method, path in (
        ("POST", service.path()),
        ("GET", service.path()),
        ("GET", f"{service.path()}/{turn}"),
        ("GET", f"{service.path()}/{turn}/events"),
        ("POST", f"{service.path()}/{turn}/cancel"),
        ("GET", "/api/conversations/c/events"),
    ):
        headers = {"X-User": "nobody", "Idempotency-Key": "k"}
        answer = await service.client.request(method, path, headers=headers, json={"text": "hi"})
        assert answer.status_code == 401, path


class Node(BaseModel):
    name: str
    children: list[Node] = []


async def tree(turn: Turn[Node]) -> None: ...


def test_the_openapi_document_knows_the_body_and_refers_to_nothing_that_is_not_there(url: str) -> None:
    gate, app = Gate(Settings(records=url)), FastAPI()
    gate.turn("tree", client_may=("reject",))(tree)
    app.include_router(turn_router(gate, tree, principal=ann), prefix="/api")
    post = app.openapi()["paths"]["/api/conversations/{conversation_id}/turns"]["post"]
    payload, beside = post["requestBody"]["content"]["application/json"]["schema"]["allOf"]
    assert payload["properties"]["name"]["type"] == "string"
    assert beside["properties"]["on_busy"] == {"enum": ["enqueue", "reject"]}
    assert "$defs" not in json.dumps(post)
    assert {parameter["name"] for parameter in post["parameters"]} >= {"conversation_id", "Idempotency-Key", "Prefer"}


def test_public_names_are_those_that_are_listed() -> None:
    assert oneturn.http.__all__ == ["problem_response", "respond", "turn_router"]
    assert all(hasattr(oneturn.http, name) for name in oneturn.http.__all__)


def client_of(app: Any) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test")
