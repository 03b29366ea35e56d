"""The stream of one turn: complete, resumable, alive while silent, and never a reason for the work to stop."""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Any

import pytest
from fastapi import FastAPI

from oneturn import Gate, Principal, Settings, Turn
from oneturn.backends.memory import memory_backend
from oneturn.http import turn_router
from oneturn.testing.clock import ManualClock

if TYPE_CHECKING:
    from http.conftest import Service

STREAM = {"Accept": "text/event-stream"}


def gapless(frames: list[Any]) -> bool:
    return [int(frame.id) for frame in frames] == list(range(1, len(frames) + 1))


@pytest.mark.case("T29")
async def test_a_post_streams_its_turn_from_the_start(service: Service) -> None:
    answer = await service.ask({"text": "talk"}, key="k", **STREAM)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-accel-buffering"] == "no"
    assert "content-length" not in answer.headers
    assert answer.text.startswith("retry: ")
    frames = service.frames(answer.text)
    assert gapless(frames)
    assert frames[0].event == "started"
    assert "".join(frame.data["delta"] for frame in frames if frame.event == "text") == "ab"
    assert [frame.data for frame in frames if frame.event == "step"] == [{"name": "sql", "state": "done"}]
    assert frames[-1].event == "succeeded"
    assert frames[-1].data == {"result": "re: talk"}
    assert (await service.state(answer.headers["turn-id"]))["last_event"] == len(frames)


@pytest.mark.case("O16", "O23")
async def test_each_retry_gets_its_form_of_the_one_outcome(service: Service) -> None:
    stream = await service.ask({"text": "talk"}, key="a", **STREAM)
    document = await service.ask({"text": "talk"}, key="a")
    assert document.json()["result"] == "re: talk"
    again = await service.ask({"text": "talk"}, key="a", **STREAM)
    marked = service.frames(again.text)
    assert marked[0].comment == "replayed"
    assert marked[1:] == service.frames(stream.text)
    assert again.headers["idempotency-replayed"] == "true"
    waited = await service.ask({"text": "hi"}, key="b")
    streamed = await service.ask({"text": "hi"}, key="b", **STREAM)
    assert service.frames(streamed.text)[-1].data == {"result": waited.json()["result"]}
    assert service.calls == ["talk", "hi"]


@pytest.mark.case("S12", "O23")
async def test_a_failure_before_the_first_word_is_a_problem_document(service: Service) -> None:
    first = await service.ask({"text": "fail"}, key="k", **STREAM)
    again = await service.ask({"text": "fail"}, key="k", **STREAM)
    assert first.status_code == again.status_code == 500
    assert first.headers["content-type"] == "application/problem+json"
    assert first.content == again.content == (await service.ask({"text": "fail"}, key="k")).content
    assert "idempotency-replayed" not in first.headers
    assert again.headers["idempotency-replayed"] == "true"
    assert service.calls == ["fail"]


@pytest.mark.case("S12")
async def test_a_failure_after_the_third_word_is_an_event_after_the_third(service: Service) -> None:
    answer = await service.ask({"text": "fail late"}, key="k", **STREAM)
    assert answer.status_code == 200
    frames = service.frames(answer.text)
    assert gapless(frames)
    assert "".join(frame.data["delta"] for frame in frames if frame.event == "text") == "abc"
    assert (frames[-1].event, frames[-1].data["code"]) == ("failed", "late")


@pytest.mark.case("T15")
@pytest.mark.row("Q2")
async def test_a_reader_resumes_anywhere_and_sees_each_event_once(service: Service) -> None:
    whole = service.frames((await service.ask({"text": "talk"}, key="k", **STREAM)).text)
    turn = (await service.ask({"text": "talk"}, key="k")).json()["turn"]
    path = f"{service.path()}/{turn}/events"
    for after in range(len(whole)):
        resumed = await service.client.get(path, headers={"Last-Event-ID": str(after)})
        assert service.frames(resumed.text) == whole[after:]
        assert service.frames((await service.client.get(path, params={"after": after})).text) == whole[after:]
    assert service.frames((await service.client.get(path)).text) == whole
    assert service.frames((await service.client.get(path, params={"after": -1})).text) == whole
    newer = await service.client.get(path, params={"after": 1}, headers={"Last-Event-ID": "2"})
    assert service.frames(newer.text) == whole[2:]
    over = await service.client.get(path, headers={"Last-Event-ID": str(len(whole))})
    assert (over.status_code, over.content, over.headers["turn-id"]) == (204, b"", turn)


@pytest.mark.case("T15")
@pytest.mark.row("Q2")
async def test_long_after_the_end_a_snapshot_stands_for_what_was_folded(service: Service) -> None:
    from oneturn.core.steps import Retention

    failed = await service.ask({"text": "fail"}, key="fail", **STREAM)
    turn = (await service.ask({"text": "talk"}, key="k")).json()["turn"]
    last = (await service.state(turn))["last_event"]
    path = f"{service.path()}/{turn}/events"
    records = service.gate.engine.process.records
    while len(await records.events(tenant="t", id=turn, after=0)) > 2:
        await records.sweep(Retention(results=1e6, tombstones=1e6, events=0))
    snapshot, end = service.frames((await service.client.get(path)).text)
    assert (snapshot.event, snapshot.id, snapshot.data["text"]) == ("snapshot", str(last - 1), "ab")
    assert (end.event, end.id) == ("succeeded", str(last))
    tail = await service.client.get(path, headers={"Last-Event-ID": str(last - 1)})
    assert [frame.event for frame in service.frames(tail.text)] == ["succeeded"]
    assert (await service.ask({"text": "fail"}, key="fail", **STREAM)).content == failed.content


@pytest.mark.case("T16")
async def test_readers_that_come_at_any_moment_see_every_event_once(served: Service) -> None:
    """Readers join between any two events, while the work goes on."""
    turn = await served.running()
    path = f"{served.path()}/{turn}/events"

    async def read() -> list[Any]:
        async with served.client.stream("GET", path) as response:
            return [frame async for frame in served.each(response)]

    readers = []
    for _ in range(10):
        readers.append(asyncio.get_running_loop().create_task(read()))
        await served.state(turn)
    served.release.set()
    late = await read()
    assert gapless(late)
    assert late[-1].event == "succeeded"
    assert await asyncio.gather(*readers) == [late] * 10


@pytest.mark.row("Q2")
async def test_a_reader_that_leaves_stops_nothing_and_leaves_nothing_behind(served: Service) -> None:
    async with served.client.stream(
        "POST", served.path(), json={"text": "hold"}, headers={"Idempotency-Key": "k", **STREAM}
    ) as response:
        turn = response.headers["turn-id"]
        async for frame in served.each(response):
            if frame.event == "text":
                break
    feeds = served.gate.engine._readers._feeds
    await served.until(lambda: not feeds)
    assert not served.gate.engine._readers._bells
    assert (await served.state(turn))["status"] == "running"
    assert served.stopped == []
    served.release.set()
    retry = await served.ask({"text": "hold"}, key="k")
    assert retry.json() == {"turn": turn, "status": "succeeded", "result": "re: hold"}
    assert served.calls == ["hold"]


@pytest.mark.case("S13")
async def test_a_silent_stream_says_that_it_lives(served: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    from oneturn.http import stream

    assert stream.HEARTBEAT < 15
    monkeypatch.setattr(stream, "HEARTBEAT", 0.05)
    turn = await served.running("silent")
    async with served.client.stream("GET", f"{served.path()}/{turn}/events") as response:
        beats = 0
        async for frame in served.each(response):
            beats += frame.comment == "still here"
            if beats == 3:
                break
    assert beats == 3


@pytest.mark.case("S13")
async def test_the_heartbeat_is_never_later_than_promised() -> None:
    """Fifteen seconds on the library's clock, whatever the check interval is."""
    clock = ManualClock()
    settings = Settings(records="memory://", grace=0, hard_deadline=5, check_every=4)
    gate = Gate(settings, backend=memory_backend(clock=clock), clock=clock, keeper_on="loop")
    release = asyncio.Event()

    async def silent(turn: Turn[dict[str, str]]) -> None:
        await release.wait()

    async def ann() -> Principal:
        return Principal(tenant="t", subject="ann")

    app = FastAPI()
    app.include_router(turn_router(gate, gate.turn("silent")(silent), principal=ann))
    sent: asyncio.Queue[bytes] = asyncio.Queue()
    asked = {"type": "http.request", "body": b"{}", "more_body": False}
    gone = asyncio.Event()

    async def receive() -> dict[str, Any]:
        nonlocal asked
        if asked:
            asked, message = {}, asked
            return message
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: MutableMapping[str, Any]) -> None:
        if message.get("body"):
            sent.put_nowait(message["body"])

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/conversations/c/turns",
        "query_string": b"",
        "headers": [(b"idempotency-key", b"k"), (b"accept", b"text/event-stream")],
    }
    async with app.router.lifespan_context(app):
        streaming = asyncio.get_running_loop().create_task(app(scope, receive, send))
        await clock.advance(1)
        assert (await sent.get()).startswith(b"retry: ")
        assert b"event: started" in await sent.get()
        for _ in range(4):
            await clock.advance(15)
            assert sent.get_nowait() == b": still here\n\n"
        gone.set()
        await streaming
        release.set()


@pytest.mark.case("T29")
async def test_the_id_comes_before_the_work_says_anything(served: Service) -> None:
    async with served.client.stream(
        "POST", served.path(), json={"text": "silent"}, headers={"Idempotency-Key": "k", **STREAM}
    ) as response:
        turn = response.headers["turn-id"]
        served.release.set()
        frames = [frame async for frame in served.each(response)]
    assert (await served.state(turn))["last_event"] == len(frames)


@pytest.mark.row("Q4")
async def test_a_queued_turn_tells_its_place_as_it_changes(served: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oneturn.http.turn_stream.POSITION_EVERY", 0.05)
    running = await served.running()
    first = (await served.ask({"text": "a"}, key="a", Prefer="wait=0")).json()["turn"]
    frames: list[Any] = []
    async with served.client.stream(
        "POST", served.path(), json={"text": "b"}, headers={"Idempotency-Key": "b", **STREAM}
    ) as response:
        async for frame in served.each(response):
            frames.append(frame)
            if frame.event == "position" and frame.data == {"position": 2}:
                await served.client.post(f"{served.path()}/{first}/cancel")
            elif frame.event == "position" and frame.data == {"position": 1}:
                served.release.set()
    assert [frame.data["position"] for frame in frames if frame.event == "position"] == [2, 1]
    assert all(frame.id is None for frame in frames if frame.event == "position")
    logged = [frame for frame in frames if frame.id is not None]
    assert gapless(logged)
    assert [logged[0].event, logged[1].event, logged[-1].event] == ["queued", "started", "succeeded"]
    assert (await served.final(running))["status"] == "succeeded"


async def test_a_drain_says_goodbye_and_ends_cleanly(served: Service) -> None:
    turn = await served.running("silent")
    async with served.client.stream("GET", f"{served.path()}/{turn}/events") as response:
        frames: list[Any] = []
        async for frame in served.each(response):
            if not frames:
                served.gate.drain()
            frames.append(frame)
    assert [(frame.id, frame.event) for frame in frames] == [("1", "started"), (None, "reconnect")]
    served.release.set()
    assert (await served.state(turn))["turn"] == turn


@pytest.mark.case("T13")
@pytest.mark.row("Q2")
async def test_a_stop_from_another_tab_ends_the_stream_of_the_first(served: Service) -> None:
    async with served.client.stream(
        "POST", served.path(), json={"text": "hold"}, headers={"Idempotency-Key": "k", **STREAM}
    ) as response:
        turn = response.headers["turn-id"]
        frames = []
        async for frame in served.each(response):
            frames.append(frame)
            if frame.event == "text":
                await served.client.post(f"{served.path()}/{turn}/cancel")
    assert (frames[-1].event, frames[-1].data["reason"]) == ("stopped", "cancelled")
    await served.until(lambda: served.stopped == [turn])


async def test_a_store_that_goes_away_in_mid_stream_is_a_clean_end(
    served: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    from oneturn import BackendUnavailable

    engine = served.gate.engine

    class Away:
        async def events(self, **named: Any) -> Any:
            raise BackendUnavailable("gone")

    turn = await served.running()
    frames = []
    with monkeypatch.context() as patch:
        async with served.client.stream("GET", f"{served.path()}/{turn}/events") as response:
            async for frame in served.each(response):
                frames.append(frame)
                if frame.event == "text":
                    patch.setattr(engine.process, "records", Away())
                    engine._readers.wake()
    assert [(frame.id, frame.event) for frame in frames] == [("1", "started"), ("2", "text"), (None, "reconnect")]
    served.release.set()
    rest = await served.client.get(f"{served.path()}/{turn}/events", headers={"Last-Event-ID": "2"})
    assert [(frame.id, frame.event) for frame in served.frames(rest.text)] == [("3", "succeeded")]


@pytest.mark.parametrize(
    ("accept", "stream"),
    [
        ("text/event-stream", True),
        ("application/json, text/event-stream", True),
        ("application/json, text/event-stream;q=0.5", False),
        ("text/event-stream;q=0", False),
        ("*/*", False),
    ],
)
async def test_the_client_chooses_the_form(service: Service, accept: str, stream: bool) -> None:
    answer = await service.ask({"text": "hi"}, key="k", Accept=accept)
    assert answer.headers["content-type"].startswith("text/event-stream") is stream
