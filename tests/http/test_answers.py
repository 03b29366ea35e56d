"""The answer of a turn: waited for, accepted, replayed; always the same bytes."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from http.conftest import Open, Service

    import httpx


async def test_an_answer_names_its_turn_and_holds_the_result(service: Service) -> None:
    answer = await service.ask({"text": "hi", "value": {"b": 1, "a": "é"}}, key="k")
    assert answer.status_code == 200
    turn = answer.headers["turn-id"]
    assert answer.content == f'{{"turn":"{turn}","status":"succeeded","result":{{"b":1,"a":"é"}}}}'.encode()
    assert answer.headers["cache-control"] == "no-store"
    assert "idempotency-replayed" not in answer.headers


@pytest.mark.row("Q10", "Q17")
@pytest.mark.case("O6", "O14")
@pytest.mark.parametrize("cache", [600, 0])
@pytest.mark.parametrize("value", [[], None, False, 0, "", {"z": 1, "a": [1.0]}])
async def test_any_result_is_replayed_as_itself(open_service: Open, cache: float, value: Any) -> None:
    async with open_service(keep_replays=cache) as service:
        first = await service.ask({"text": "hi", "value": value}, key="k")
        again = await service.ask({"text": "hi", "value": value}, key="k")
        assert first.status_code == again.status_code == 200
        assert first.json()["result"] == value
        assert again.content == first.content
        assert again.headers["turn-id"] == first.headers["turn-id"]
        assert again.headers["idempotency-replayed"] == "true"
        assert service.calls == ["hi"]


@pytest.mark.case("S12", "O23")
@pytest.mark.parametrize(
    ("text", "code"), [("fail", "empty-answer"), ("boom", "internal-error"), ("fail late", "late")]
)
async def test_a_failure_is_a_problem_and_its_replay_is_marked(service: Service, text: str, code: str) -> None:
    first = await service.ask({"text": text}, key="k")
    again = await service.ask({"text": text}, key="k")
    assert first.status_code == again.status_code == 500
    assert first.headers["content-type"] == again.headers["content-type"] == "application/problem+json"
    document = first.json()
    assert document["type"].endswith(":turn-failed")
    assert document["code"] == code
    assert document["turn"] == first.headers["turn-id"] == again.headers["turn-id"]
    assert "a secret" not in first.text
    assert again.content == first.content
    assert "idempotency-replayed" not in first.headers
    assert again.headers["idempotency-replayed"] == "true"
    assert service.calls == [text]


@pytest.mark.row("Q3")
async def test_fifty_posts_at_once_are_one_execution(service: Service) -> None:
    answers = await asyncio.gather(*(service.ask({"text": "hi"}, key="k") for _ in range(50)))
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.content for answer in answers}) == 1
    assert service.calls == ["hi"]


@pytest.mark.case("T2")
async def test_the_same_words_under_a_new_key_are_asked_again(service: Service) -> None:
    one, two = await service.ask({"text": "hi"}, key="1"), await service.ask({"text": "hi"}, key="2")
    assert one.json()["turn"] != two.json()["turn"]
    assert service.calls == ["hi", "hi"]


@pytest.mark.case("O4")
async def test_keys_of_different_people_and_tenants_are_different(service: Service) -> None:
    answers = [
        await service.ask({"text": "hi"}, key="k"),
        await service.ask({"text": "hi"}, key="k", X_User="bob"),
        await service.ask({"text": "hi"}, key="k", X_Tenant="u"),
        await service.ask({"text": "other"}, key="k", X_User="eve"),
    ]
    assert [answer.status_code for answer in answers] == [200] * 4
    assert len({answer.json()["turn"] for answer in answers}) == 4


@pytest.mark.row("Q2")
@pytest.mark.case("T29")
async def test_a_wait_that_is_over_is_accepted_with_an_address(service: Service) -> None:
    answer = await service.ask({"text": "hold"}, key="k", conversation="a b", Prefer="respond-async, wait=0")
    assert answer.status_code == 202
    turn = answer.headers["turn-id"]
    assert answer.json()["turn"] == turn
    assert answer.json()["status"] == "running"
    assert answer.headers["preference-applied"] == "wait=0"
    assert answer.headers["retry-after"] == "1"
    assert answer.headers["location"] == f"/api/conversations/a%20b/turns/{turn}"
    service.release.set()
    await service.final(turn, "a b")
    found = await service.client.get(answer.headers["location"])
    assert found.json()["status"] == "succeeded"


@pytest.mark.parametrize("wish", [{}, {"Prefer": "wait=60"}, {"Prefer": "wait=9999"}, {"Prefer": "wait=soon"}])
async def test_a_wait_ends_with_the_turn(service: Service, wish: dict[str, str]) -> None:
    asking = asyncio.gather(service.ask({"text": "hold"}, key="k", **wish))
    await service.entered.wait()
    service.release.set()
    (answer,) = await asking
    assert answer.status_code == 200
    assert answer.headers.get("preference-applied") == (
        "wait=60" if wish.get("Prefer", "").endswith(("0", "9")) else None
    )


@pytest.mark.row("Q4")
async def test_a_message_for_a_busy_conversation_is_queued_with_its_place(service: Service) -> None:
    await service.running()
    first = await service.ask({"text": "a"}, key="a", Prefer="wait=0")
    second = await service.ask({"text": "b"}, key="b", Prefer="wait=0")
    assert (first.status_code, second.status_code) == (202, 202)
    assert first.json() == {"turn": first.headers["turn-id"], "status": "queued", "position": 1}
    assert second.json()["position"] == 2
    service.release.set()
    assert (await service.final(second.json()["turn"]))["status"] == "succeeded"
    assert service.calls == ["hold", "a", "b"]


@pytest.mark.row("Q3")
async def test_a_retry_attaches_and_gets_the_same_bytes(service: Service) -> None:
    turn = await service.running()
    attached = asyncio.gather(*(service.ask({"text": "hold"}, key="k") for _ in range(3)))
    service.release.set()
    answers: list[httpx.Response] = await attached
    replay = await service.ask({"text": "hold"}, key="k")
    assert {answer.content for answer in [*answers, replay]} == {answers[0].content}
    assert replay.headers["idempotency-replayed"] == "true"
    assert {answer.headers["turn-id"] for answer in answers} == {turn}
    assert service.calls == ["hold"]


@pytest.mark.case("T11", "T13")
async def test_a_cancelled_turn_is_a_problem_and_stays_one(service: Service) -> None:
    turn = await service.running()
    waiting = asyncio.gather(service.ask({"text": "hold"}, key="k"))
    cancelled = await service.client.post(f"{service.path()}/{turn}/cancel")
    assert cancelled.status_code == 200
    assert cancelled.json()["status"] == "stopped"
    (attached,) = await waiting
    replay = await service.ask({"text": "hold"}, key="k")
    assert attached.status_code == replay.status_code == 409
    assert attached.json()["type"].endswith(":turn-stopped")
    assert (attached.json()["reason"], attached.json()["turn"]) == ("cancelled", turn)
    assert replay.content == attached.content
    assert "retry-after" not in replay.headers
    assert (await service.client.post(f"{service.path()}/{turn}/cancel")).json()["status"] == "stopped"
    await service.until(lambda: service.stopped == [turn])


@pytest.mark.case("T11")
async def test_a_queued_turn_that_is_cancelled_never_runs(service: Service) -> None:
    running = await service.running()
    queued = (await service.ask({"text": "a"}, key="a", Prefer="wait=0")).json()["turn"]
    assert (await service.client.post(f"{service.path()}/{queued}/cancel")).json()["status"] == "stopped"
    service.release.set()
    await service.final(running)
    await service.ask({"text": "b"}, key="b")
    assert service.calls == ["hold", "b"]
    events = await service.client.get(f"{service.path()}/{queued}/events")
    assert [frame.event for frame in service.frames(events.text)] == ["queued", "stopped"]


@pytest.mark.case("T6")
async def test_another_conversation_is_not_delayed(service: Service) -> None:
    await service.running(conversation="a")
    assert (await service.ask({"text": "hi"}, key="k", conversation="b")).status_code == 200


@pytest.mark.row("Q2")
async def test_state_and_history_hold_the_stored_bytes(service: Service) -> None:
    done = await service.ask({"text": "hi", "value": {"b": 1, "a": 2}}, key="k1")
    failed = await service.ask({"text": "fail"}, key="k2")
    running = await service.running(key="k3")
    history = (await service.client.get(service.path())).json()["turns"]
    assert [turn["key"] for turn in history] == ["k1", "k2", "k3"]
    first, second, third = history
    assert first["turn"] == first["message"] == done.json()["turn"]
    assert (first["status"], first["sequence"], first["error"], first["reason"]) == ("succeeded", 1, None, None)
    assert json.dumps(first["result"]) == '{"b": 1, "a": 2}'
    assert first["payload"] == {"text": "hi", "value": {"b": 1, "a": 2}}
    assert first["created_at"] <= first["started_at"] <= first["ended_at"]
    assert (second["status"], second["result"]) == ("failed", None)
    assert second["error"]["code"] == failed.json()["code"] == "empty-answer"
    assert (third["turn"], third["status"], third["ended_at"]) == (running, "running", None)
    assert first["epoch"] < second["epoch"] < third["epoch"]
    assert await service.state(first["turn"]) == first
    page = await service.client.get(service.path(), params={"limit": 1, "before": 3})
    assert [turn["key"] for turn in page.json()["turns"]] == ["k2"]
    assert (await service.client.get(service.path(), params={"limit": "x"})).status_code == 400


@pytest.mark.case("O8")
async def test_a_client_that_leaves_while_it_asks_leaves_one_execution(service: Service) -> None:
    """The request is cancelled at one await after the other; the retry attaches or replays."""
    for step in range(40):
        asking = asyncio.gather(service.ask({"text": f"hi {step}"}, key=f"k{step}"))
        for _ in range(step):
            await asyncio.sleep(0)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        retry = await service.ask({"text": f"hi {step}"}, key=f"k{step}")
        assert retry.json()["result"] == f"re: hi {step}"
    assert service.calls == [f"hi {step}" for step in range(40)]


@pytest.mark.case("O8", "O9")
@pytest.mark.parametrize("complete", [True, False])
async def test_a_client_that_hangs_up(served: Service, complete: bool, caplog: pytest.LogCaptureFixture) -> None:
    """Before its body was complete: the key is free. After: one execution, and the retry attaches or replays."""
    address = served.client.base_url
    _, writer = await asyncio.open_connection(address.host, address.port)
    body = b'{"text":"hi"}'
    head = f"POST {served.path()} HTTP/1.1\r\nHost: x\r\nIdempotency-Key: k\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + (body if complete else body[:-1]))
    await writer.drain()
    writer.close()
    await writer.wait_closed()
    if complete:
        retry = await served.ask(body, key="k")
        assert retry.json()["result"] == "re: hi"
        assert served.calls == ["hi"]
    else:
        other = await served.ask({"text": "other"}, key="k")
        assert other.json()["result"] == "re: other"
        assert served.calls == ["other"]
    assert "Exception in ASGI" not in caplog.text
