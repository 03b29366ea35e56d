"""Closing: whoever still watches is told the end, or that nobody here will ever know it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from asking import Ask
from oneturn import BackendUnavailable, Gate, Handle, Principal, Settings, Turn
from oneturn.testing.harness import Harness

Watch = Callable[[Handle[Any]], Coroutine[Any, Any, object]]


async def _kinds(handle: Handle[Any]) -> list[str]:
    return [event.kind async for event in handle.events()]


WATCHES: dict[str, Watch] = {
    "result": lambda handle: handle.result(),
    "result, bounded": lambda handle: handle.result(wait=3600),
    "outcome": lambda handle: handle.outcome(),
    "events": _kinds,
}


async def _asked(gate: Gate, handler: Callable[..., Any], harness: Harness) -> Handle[Any]:
    return await gate.ask(handler, Ask(), conversation="c", key="k", principal=harness.principal)


async def _passes() -> None:
    for _ in range(50):
        await asyncio.sleep(0)


@pytest.mark.parametrize("watch", WATCHES.values(), ids=WATCHES)
async def test_whoever_still_waits_when_the_gate_has_closed_is_told_at_once(harness: Harness, watch: Watch) -> None:
    """The turn runs elsewhere. No time passes on the clock: nobody waits for a bound or for the next look."""
    go = asyncio.Event()

    @harness.turn("chat")
    async def chat(turn: Turn[Ask]) -> str:
        await go.wait()
        return "done"

    handle = await _asked(harness.gate, chat, harness)
    other = await harness.another()
    elsewhere = await other.find(handle.id, principal=harness.principal)
    assert elsewhere is not None
    watching = asyncio.ensure_future(watch(elsewhere))  # noqa: TID251 - awaited below
    await _passes()
    assert not watching.done()
    await other.__aexit__(None, None, None)
    with pytest.raises(BackendUnavailable, match="gate was closed"):
        async with asyncio.timeout(5):
            await watching
    go.set()
    assert await handle.result() == "done"


@pytest.mark.parametrize("watch", WATCHES.values(), ids=WATCHES)
async def test_a_store_that_closes_with_its_gate_is_no_other_answer(tmp_path: Path, watch: Watch) -> None:
    """Two processes of a real deployment: one closes everything that it opened while the other works on."""
    settings = Settings(records=f"sqlite:///{tmp_path / 'r.db'}", grace=0, hard_deadline=5)
    go, ada = asyncio.Event(), Principal(tenant="acme", subject="ada")
    async with Gate(settings) as gate:

        @gate.turn("chat")
        async def chat(turn: Turn[Ask]) -> str:
            await go.wait()
            return "done"

        handle = await gate.ask(chat, Ask(), conversation="c", key="k", principal=ada)
        async with Gate(settings) as other:
            elsewhere = await other.find(handle.id, principal=ada)
            assert elsewhere is not None
            watching = asyncio.ensure_future(watch(elsewhere))  # noqa: TID251 - awaited below
            await handle.engine.ready()  # a round trip through the file: by now it watches
        with pytest.raises(BackendUnavailable, match="gate was closed"):
            async with asyncio.timeout(5):
                await watching
        go.set()
        assert await handle.result() == "done"


@pytest.mark.parametrize("watch", [WATCHES["outcome"], WATCHES["events"]], ids=["outcome", "events"])
async def test_what_ends_because_its_gate_closes_is_told(anywhere: Harness, watch: Watch) -> None:
    """Closing stops the work; whoever waits for it hears that."""

    @anywhere.turn("chat")
    async def chat(turn: Turn[Ask]) -> str:
        await asyncio.Event().wait()
        return "never"

    gate = await anywhere.another()
    handle = await _asked(gate, chat, anywhere)
    watching = asyncio.ensure_future(watch(handle))  # noqa: TID251 - awaited below
    await _passes()
    await gate.__aexit__(None, None, None)
    async with asyncio.timeout(5):
        told = await watching
    assert told == ["started", "stopped"] or getattr(told, "status", "") == "stopped"


async def test_a_reader_stays_while_its_process_drains(harness: Harness) -> None:
    """A drain ends what is admitted, not what is watched: what comes is read, and the loop is free in between."""
    go = asyncio.Event()

    @harness.turn("chat")
    async def chat(turn: Turn[Ask]) -> str:
        await go.wait()
        turn.text("late")
        return "done"

    handle = await _asked(harness.gate, chat, harness)
    watching = asyncio.ensure_future(_kinds(handle))  # noqa: TID251 - awaited below
    await _passes()
    harness.gate.drain()
    await _passes()
    assert not watching.done()
    go.set()
    assert await watching == ["started", "text", "succeeded"]
