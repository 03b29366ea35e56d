"""The drain: what a process has begun when it closes ends there, and nothing of it is left behind."""

from __future__ import annotations

import asyncio

import pytest

from asking import Ask
from oneturn import Turn
from oneturn.core.failpoint import install
from oneturn.testing.clock import settle
from oneturn.testing.harness import Harness


@pytest.mark.parametrize("boundary", ["leases.acquire.after", "records.start.after"])
async def test_a_start_that_is_under_way_leaves_neither_keys_nor_a_running_record(
    harness: Harness, boundary: str
) -> None:
    """A process takes a message from the queue while it begins to close: nobody has to wait for a TTL afterwards."""
    first_may_end, reached, proceed = asyncio.Event(), asyncio.Event(), asyncio.Event()

    @harness.turn("chat")
    async def chat(turn: Turn[Ask]) -> str:
        if turn.payload.text == "first":
            await first_may_end.wait()
        else:
            await asyncio.Event().wait()
        return "done"

    async def hook(name: str) -> None:
        if name == boundary and first_may_end.is_set():
            reached.set()
            await proceed.wait()

    other = await harness.another()
    await harness.gate.ask(chat, Ask(text="first"), conversation="c", key="1", principal=harness.principal)
    second = await other.ask(chat, Ask(text="second"), conversation="c", key="2", principal=harness.principal)
    harness.gate.engine.drain()
    install(hook)
    first_may_end.set()
    await reached.wait()
    async with asyncio.TaskGroup() as tasks:
        closing = tasks.create_task(other.engine.close())
        await settle()
        proceed.set()
        while not closing.done():
            await harness.elapse(0.5)
    install(None)
    record = await harness.backend.records.read(tenant="acme", id=second.id)
    assert record is not None
    assert record.status.value in {"queued", "stopped"}
    for key in (record.identity.request_lock(), record.identity.scope_lock()):
        assert await harness.backend.leases.inspect(key) is None
