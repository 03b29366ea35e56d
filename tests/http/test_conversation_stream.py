"""The stream of a conversation: all its turns in one, for every tab of a page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from http.conftest import Service

EVENTS = "/api/conversations/c/events"


@pytest.mark.case("T17", "T18")
@pytest.mark.row("Q2")
async def test_a_second_tab_sees_every_turn_live(served: Service) -> None:
    """The page is open before the first question, and one connection shows all that follow."""
    frames: list[Any] = []
    async with served.client.stream("GET", EVENTS) as response:
        asked = await served.ask({"text": "talk"}, key="1")
        async for frame in served.each(response):
            frames.append(frame)
            if frame.event == "succeeded":
                if len({seen.data["turn"] for seen in frames}) == 2:
                    break
                second = await served.ask({"text": "talk"}, key="2")
    turns = [asked.json()["turn"], second.json()["turn"]]
    for turn in turns:
        epoch = (await served.state(turn))["epoch"]
        own = [frame for frame in frames if frame.data["turn"] == turn]
        assert [frame.id for frame in own] == [f"{epoch}-{seq}" for seq in range(1, len(own) + 1)]
        own_stream = served.frames((await served.client.get(f"{served.path()}/{turn}/events")).text)
        assert [(frame.event, frame.data["data"]) for frame in own] == [
            (frame.event, frame.data) for frame in own_stream
        ]


@pytest.mark.case("T15", "T16")
async def test_a_tab_resumes_by_the_pair_and_misses_nothing(served: Service) -> None:
    await served.ask({"text": "talk"}, key="1")
    running = await served.running()
    path = {"after": 0}
    frames = []
    async with served.client.stream("GET", EVENTS, params=path) as response:
        async for frame in served.each(response):
            frames.append(frame)
            if frame.data["turn"] == running and frame.event == "text":
                break
    for cut, seen in enumerate(frames[:-1]):
        rest = []
        async with served.client.stream("GET", EVENTS, headers={"Last-Event-ID": str(seen.id)}) as response:
            async for frame in served.each(response):
                rest.append(frame)
                if frame.id == frames[-1].id:
                    break
        assert rest == frames[cut + 1 :]
    served.release.set()
    await served.final(running)


@pytest.mark.case("T17")
async def test_nothing_to_resume_is_204(service: Service) -> None:
    """After the end an EventSource would reconnect for ever."""
    assert (await service.client.get(EVENTS, params={"after": 0})).status_code == 204
    turn = (await service.ask({"text": "hi"}, key="1")).json()["turn"]
    state = await service.state(turn)
    over = await service.client.get(EVENTS, headers={"Last-Event-ID": f"{state['epoch']}-{state['last_event']}"})
    assert (over.status_code, over.content) == (204, b"")


@pytest.mark.case("T18")
@pytest.mark.row("Q4")
async def test_the_queue_is_told_on_connecting_and_carries_no_id(served: Service) -> None:
    running = await served.running()
    queued = (await served.ask({"text": "a"}, key="a", Prefer="wait=0")).json()["turn"]
    frames = []
    async with served.client.stream("GET", EVENTS) as response:
        async for frame in served.each(response):
            frames.append(frame)
            if frame.event == "text":
                await served.client.post(f"{served.path()}/{queued}/cancel")
            if frame.data["turn"] == queued and frame.event == "stopped":
                break
    own = [frame for frame in frames if frame.data["turn"] == queued]
    assert [(frame.id, frame.event) for frame in own] == [(None, "queued"), (None, "stopped")]
    assert own[-1].data["data"]["reason"] == "cancelled"
    served.release.set()
    await served.final(running)


async def test_idle_tabs_are_told_of_a_drain_and_leave_nothing_behind(served: Service) -> None:
    async with served.client.stream("GET", EVENTS) as response:
        bells = served.gate.engine._readers._bells
        await served.until(lambda: bells)
        served.gate.drain()
        frames = [frame async for frame in served.each(response)]
    assert [(frame.id, frame.event) for frame in frames] == [(None, "reconnect")]
    await served.until(lambda: not bells)


@pytest.mark.case("T28")
async def test_another_tenant_hears_nothing(service: Service) -> None:
    await service.ask({"text": "hi"}, key="1")
    other = await service.client.get(EVENTS, params={"after": 0}, headers={"X-Tenant": "other"})
    assert other.status_code == 204


@pytest.mark.case("S13")
async def test_an_idle_conversation_says_that_it_lives(served: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oneturn.http.stream.HEARTBEAT", 0.05)
    async with served.client.stream("GET", EVENTS) as response:
        async for frame in served.each(response):
            assert frame.comment == "still here"
            break
