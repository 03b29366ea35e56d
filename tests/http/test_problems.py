"""Every row of the problem table, as a client sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx
import pytest
from fastapi import FastAPI

from oneturn import BackendUnavailable, OneturnError, Stopped, StopReason, TurnFailed
from oneturn.core.errors import Contended
from oneturn.core.fingerprint import fingerprint
from oneturn.core.identity import Identity
from oneturn.core.steps import Abandon, Claim, Claimed, Ended, Retention
from oneturn.http import problem_response
from oneturn.http.problem import TABLE, TYPE_PREFIX

if TYPE_CHECKING:
    from http.conftest import Open, Service


def check(answer: httpx.Response, kind: str, status: int, *, retry: bool = False, turn: str | None = None) -> None:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    document = answer.json()
    assert document["type"] == TYPE_PREFIX + kind
    assert document["status"] == status
    assert document["title"]
    assert document["detail"]
    assert ("retry-after" in answer.headers) is retry
    if retry:
        assert int(answer.headers["retry-after"]) >= 1
    assert document.get("turn") == turn
    assert answer.headers.get("turn-id") == turn


async def test_a_missing_key(service: Service) -> None:
    check(await service.ask({"text": "hi"}), "invalid-idempotency-key", 400)
    assert service.calls == []


@pytest.mark.row("Q17")
@pytest.mark.case("O5")
@pytest.mark.parametrize("cache", [600, 0])
async def test_other_content_under_a_used_key(open_service: Open, cache: float) -> None:
    """While it runs and after its end, with the replay cache on and off."""
    async with open_service(keep_replays=cache) as service:
        turn = await service.running()
        check(await service.ask({"text": "other"}, key="k"), "idempotency-key-reused", 422, turn=turn)
        service.release.set()
        await service.final(turn)
        check(await service.ask({"text": "other"}, key="k"), "idempotency-key-reused", 422, turn=turn)
        assert service.calls == ["hold"]


@pytest.mark.row("Q4")
@pytest.mark.case("T4", "O10")
async def test_a_busy_conversation_names_the_running_turn(service: Service) -> None:
    """On every entry: waiting, in the background, and as a stream; the key stays free."""
    turn = await service.running()
    for headers in ({}, {"Prefer": "wait=0"}, {"Accept": "text/event-stream"}):
        answer = await service.ask({"text": "next", "on_busy": "reject"}, key="k2", **headers)
        check(answer, "conversation-busy", 409, retry=True, turn=turn)
    service.release.set()
    await service.final(turn)
    assert (await service.ask({"text": "next", "on_busy": "reject"}, key="k2")).status_code == 200


@pytest.mark.case("O10")
async def test_a_full_queue(open_service: Open) -> None:
    async with open_service(queue_limit=1) as service:
        turn = await service.running()
        assert (await service.ask({"text": "a"}, key="a", Prefer="wait=0")).status_code == 202
        check(await service.ask({"text": "b"}, key="b"), "limit-reached", 429, retry=True)
        service.release.set()
        await service.final(turn)
        assert (await service.ask({"text": "b"}, key="b")).status_code == 200


@pytest.mark.row("Q18")
async def test_a_turn_whose_process_died(service: Service) -> None:
    sent = {"body": {"text": "hi"}, "query": [], "headers": {}}
    records = service.gate.engine.process.records
    claim = Claim(
        id="dead",
        identity=Identity(tenant="t", subject="ann", scope="c", key="k"),
        handler="chat",
        fingerprint=fingerprint(handler="chat", sent=sent),
        payload=b'{"text":"hi"}',
        owner="o",
        ttl=0.01,
    )
    claimed = await records.claim(claim)
    assert isinstance(claimed, Claimed)
    record = claimed.record
    answer: Any = None
    while not isinstance(answer, Ended):
        answer = await records.abandon(
            Abandon(tenant="t", id="dead", epoch=record.epoch or 0, alive_until=record.alive_until)
        )
    by_key = await service.ask({"text": "hi"}, key="k")
    check(by_key, "result-unavailable", 409, turn="dead")
    assert (await service.state("dead"))["status"] == "abandoned"
    events = await service.client.get(f"{service.path()}/dead/events")
    assert [frame.event for frame in service.frames(events.text)] == ["started", "abandoned"]
    assert service.calls == []


@pytest.mark.case("O13")
async def test_an_expired_result(open_service: Open) -> None:
    async with open_service(keep_replays=0) as service:
        turn = (await service.ask({"text": "hi"}, key="k")).json()["turn"]
        records = service.gate.engine.process.records
        swept = 0
        while not swept:
            swept = (await records.sweep(Retention(results=0, tombstones=1e6, events=0))).results
        check(await service.ask({"text": "hi"}, key="k"), "result-expired", 410, turn=turn)
        check(await service.client.get(f"{service.path()}/{turn}/events"), "result-expired", 410, turn=turn)
        assert (await service.state(turn))["result"] is None
        assert service.calls == ["hi"]


@pytest.mark.case("O10")
async def test_a_store_that_is_away(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    process = service.gate.engine.process

    class Away:
        def __getattr__(self, name: str) -> Any:
            async def away(*args: Any, **named: Any) -> Any:
                raise BackendUnavailable("secret-host:5432 does not answer")

            return away

    with monkeypatch.context() as patch:
        patch.setattr(process, "records", Away())
        for answer in (
            await service.ask({"text": "hi"}, key="k"),
            await service.client.get(f"{service.path()}/x"),
            await service.client.get(service.path()),
            await service.client.get("/api/conversations/c/events"),
            await service.client.post(f"{service.path()}/x/cancel"),
        ):
            check(answer, "store-unavailable", 503, retry=True)
            assert "secret-host" not in answer.text
        assert (await service.client.get("/api/health/ready")).status_code == 503
    assert (await service.ask({"text": "hi"}, key="k")).status_code == 200


@pytest.mark.case("O10")
async def test_a_draining_process(service: Service) -> None:
    assert (await service.client.get("/api/health/ready")).status_code == 200
    done = await service.ask({"text": "hi"}, key="done")
    service.gate.engine.drain()
    check(await service.ask({"text": "hi"}, key="k"), "draining", 503, retry=True)
    assert (await service.ask({"text": "hi"}, key="done")).content == done.content
    assert (await service.client.get("/api/health/live")).status_code == 200
    ready = await service.client.get("/api/health/ready")
    assert (ready.status_code, ready.json()) == (503, {"status": "draining"})


async def test_a_turn_that_cannot_be_regenerated(service: Service) -> None:
    for named in ("nothing", "x\r\nSet-Cookie: a=b", "没有"):
        for message in ({}, {"text": "hi"}):
            answer = await service.ask({"regenerate": named, **message}, key="k")
            assert answer.status_code == 409
            assert answer.json()["type"].endswith(":not-regenerable")
            assert "set-cookie" not in answer.headers
            assert answer.headers.get("turn-id", "nothing") == "nothing"


@pytest.mark.case("T28")
@pytest.mark.row("Q2")
async def test_what_is_not_yours_is_not_found(service: Service) -> None:
    """Another tenant's turn, another conversation's, none, and a conversation that the application refuses: all alike."""
    turn = (await service.ask({"text": "hi"}, key="k")).json()["turn"]
    seen = set()
    for path, headers in (
        (f"{service.path()}/{turn}", {"X-Tenant": "other"}),
        (f"{service.path('d')}/{turn}", {}),
        (f"{service.path()}/none", {}),
        (f"{service.path('not-mine')}/{turn}", {}),
        (f"{service.path('x' * 256)}/{turn}", {}),
        (f"{service.path('%00')}/{turn}", {}),
    ):
        for method, rest in (("GET", ""), ("GET", "/events"), ("POST", "/cancel")):
            answer = await service.client.request(method, path + rest, headers=headers)
            check(answer, "not-found", 404)
            seen.add(answer.content)
    assert len(seen) == 1
    check(await service.client.get("/api/conversations/not-mine/events"), "not-found", 404)
    check(await service.ask({"text": "hi"}, key="k", conversation="not-mine"), "not-found", 404)
    assert (await service.client.get(service.path(), headers={"X-Tenant": "other"})).json() == {"turns": []}


@pytest.mark.case("O10")
async def test_the_applications_own_refusal_stays_its_own(service: Service) -> None:
    answer = await service.ask({"text": "hi"}, key="k", X_User="nobody")
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert service.calls == []
    assert (await service.ask({"text": "hi"}, key="k")).status_code == 200


@pytest.mark.case("T15")
@pytest.mark.parametrize("cursor", ["abc", "-2", "1.5", "99", "１", "9" * 30, "3-1"])
async def test_a_cursor_from_nowhere(service: Service, cursor: str) -> None:
    turn = (await service.ask({"text": "hi"}, key="k")).json()["turn"]
    path = f"{service.path()}/{turn}/events"
    check(await service.client.get(path, params={"after": cursor}), "invalid-cursor", 400)


@pytest.mark.parametrize("cursor", ["abc", "-2", "7", "1-99", "9-1", "1-", "1-2-3"])
async def test_a_conversations_cursor_from_nowhere(service: Service, cursor: str) -> None:
    await service.ask({"text": "hi"}, key="k")
    answer = await service.client.get("/api/conversations/c/events", headers={"Last-Event-ID": cursor})
    check(answer, "invalid-cursor", 400)


@pytest.mark.parametrize(
    ("error", "kind", "status", "retry"),
    [
        (Contended("kb:42", remaining=2.2), "request-in-progress", 409, True),
        (Stopped(StopReason.SUPERSEDED), "turn-stopped", 409, False),
        (TurnFailed("no", code="odd"), "turn-failed", 500, False),
        (BackendUnavailable("x"), "store-unavailable", 503, True),
        (OneturnError("a secret"), "internal-error", 500, False),
    ],
)
async def test_an_own_endpoint_answers_with_the_same_documents(
    error: OneturnError, kind: str, status: int, retry: bool
) -> None:
    app = FastAPI()
    app.add_exception_handler(OneturnError, problem_response)

    @app.get("/own")
    async def own() -> None:
        raise error

    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
        answer = await client.get("/own")
    check(answer, kind, status, retry=retry)
    assert "a secret" not in answer.text


def test_types_are_stable() -> None:
    """A client's code compares them: a row may be added, never renamed."""
    assert {kind: row.status for kind, row in TABLE.items()} == {
        "invalid-request": 400,
        "invalid-payload": 422,
        "invalid-idempotency-key": 400,
        "invalid-cursor": 400,
        "not-found": 404,
        "too-large": 413,
        "idempotency-key-reused": 422,
        "request-in-progress": 409,
        "conversation-busy": 409,
        "not-regenerable": 409,
        "limit-reached": 429,
        "result-unavailable": 409,
        "result-expired": 410,
        "store-unavailable": 503,
        "draining": 503,
        "turn-failed": 500,
        "turn-stopped": 409,
        "internal-error": 500,
    }
