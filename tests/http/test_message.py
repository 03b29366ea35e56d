"""What a POST's body may be, and what is refused before the gate hears of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from pydantic import BaseModel, Field

from oneturn import ConfigurationError, Gate, Settings, Turn
from oneturn.http import turn_router

if TYPE_CHECKING:
    from http.conftest import Open, Service


@pytest.mark.case("O2")
async def test_order_and_layout_do_not_matter(service: Service) -> None:
    first = await service.ask(b'{"text": "hi", "value": {"a": 1, "b": 2}}', key="k")
    again = await service.ask(b'{ "value":{"b":2,\n"a":1},"text":"hi" }', key="k")
    assert first.status_code == 200
    assert again.content == first.content
    assert service.calls == ["hi"]


@pytest.mark.case("O2", "O10")
@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b'{"text": "a", "text": "b"}', "'text' occurs twice"),
        (b'{"text": "a", "value": NaN}', "NaN"),
        (b'{"text": "a", "value": 1e999}', "represented"),
        (b'{"text": "\\ud800"}', "represented"),
        (b'{"text": ', "JSON"),
        (b"[1]", "object"),
        (b"\xff", "JSON"),
        (b"[" * 100_000, "nested"),
        (b'{"text": "a", "on_busy": "interrupt"}', "on_busy"),
        (b'{"text": "a", "on_busy": "later"}', "on_busy"),
        (b'{"text": "a", "on_busy": ["reject"]}', "on_busy"),
        (b'{"regenerate": 7}', "regenerate"),
    ],
)
async def test_what_two_readers_could_read_apart_is_refused(service: Service, body: bytes, says: str) -> None:
    answer = await service.ask(body, key="k")
    assert answer.status_code == 400
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["type"].endswith(":invalid-request")
    assert says in answer.json()["detail"]
    assert (await service.ask({"text": "fine"}, key="k")).status_code == 200


async def test_an_invalid_message_is_told_what_is_wrong_and_keeps_its_key(service: Service) -> None:
    answer = await service.ask({"text": 7}, key="k")
    assert answer.status_code == 422
    assert answer.json()["type"].endswith(":invalid-payload")
    assert [error["loc"] for error in answer.json()["errors"]] == [["text"]]
    assert (await service.ask({"text": "fine"}, key="k")).status_code == 200


@pytest.mark.case("O3")
async def test_another_query_or_effect_header_is_another_request(service: Service) -> None:
    async def post(query: str, **headers: str) -> httpx.Response:
        named = {"Idempotency-Key": "k", **headers}
        return await service.client.post(service.path() + query, headers=named, json={"text": "hi"})

    first = await post("?a=1&b=2", **{"X-Model": "m"})
    assert first.status_code == 200
    assert (await post("?b=2&a=1", **{"X-Model": "m", "X-Trace": "other"})).content == first.content
    for reused in (
        await post("?a=1&b=3", **{"X-Model": "m"}),
        await post("?a=1&b=2", **{"X-Model": "n"}),
        await post(""),
    ):
        assert reused.status_code == 422
        assert reused.json()["type"].endswith(":idempotency-key-reused")
        assert reused.json()["turn"] == first.json()["turn"]
    assert service.calls == ["hi"]


@pytest.mark.case("O10", "O15")
@pytest.mark.parametrize("chunked", [False, True])
async def test_a_body_over_the_limit_never_passes_the_gate(open_service: Open, chunked: bool) -> None:
    read = 0

    async def pieces() -> AsyncIterator[bytes]:
        nonlocal read
        for _ in range(1000):
            read += 1
            yield b" " * 1024

    async with open_service(max_body=4096) as service:
        content: Any = pieces() if chunked else b" " * 1024 * 1000
        answer = await service.client.post(service.path(), content=content, headers={"Idempotency-Key": "k"})
        assert answer.status_code == 413
        assert answer.json()["type"].endswith(":too-large")
        assert read <= 5
        assert service.calls == []
        assert (await service.ask({"text": "fine"}, key="k")).status_code == 200


@pytest.mark.parametrize("name", ["request_id", "on_busy", "regenerate"])
def test_a_payload_may_not_have_a_member_that_the_body_keeps(name: str) -> None:
    gate = Gate(Settings(records="memory://"))

    class Clash(BaseModel):
        text: str
        other: int = Field(default=0, alias=name)

    async def handler(turn: Turn[Clash]) -> str:
        return ""

    handler.__annotations__["turn"] = Turn[Clash]
    gate.turn("clash")(handler)
    with pytest.raises(ConfigurationError, match=name):
        turn_router(gate, handler, principal=lambda: None)


@pytest.mark.row("Q3")
async def test_regenerate_asks_the_same_message_under_a_new_key(service: Service) -> None:
    first = await service.ask({"text": "hi"}, key="k1")
    again = await service.ask({"regenerate": first.json()["turn"]}, key="k2")
    assert again.status_code == 200
    assert again.json()["turn"] != first.json()["turn"]
    assert service.calls == ["hi", "hi"]
    assert (await service.state(again.json()["turn"]))["message"] == first.json()["turn"]
