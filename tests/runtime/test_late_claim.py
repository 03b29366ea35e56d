"""A claim whose answer comes late: what the process may still believe, and that it begins nothing it has lost."""

from __future__ import annotations

import asyncio

import pytest

from asking import Ask
from oneturn import BackendUnavailable, Turn
from oneturn.core.failpoint import install
from oneturn.core.identity import Identity
from oneturn.core.record import Record
from oneturn.core.status import Status
from oneturn.core.steps import Lapsed
from oneturn.testing.harness import Harness

_NAME = Identity(tenant="acme", subject="ada", scope="c", key="k")


@pytest.mark.parametrize("asynchronous", [True, False], ids=["on the loop", "in a thread"])
async def test_work_is_not_entered_once_its_record_was_abandoned(harness: Harness, asynchronous: bool) -> None:
    """The answer to the claim is heard so late that a sweeper has given the record up: nothing begins under it."""
    entered: list[str] = []

    if asynchronous:

        @harness.turn("chat")
        async def chat(turn: Turn[Ask]) -> str:
            entered.append("chat")
            return "done"
    else:

        @harness.turn("chat")
        def chat(turn: Turn[Ask]) -> str:
            entered.append("chat")
            return "done"

    await harness.another()
    heard, slow = asyncio.Event(), [True]

    async def hook(name: str) -> None:
        if name == "leases.renew.before":
            raise BackendUnavailable("cut off")
        if name == "process.preceded" and slow.pop():
            await heard.wait()

    install(hook)
    try:
        asking = asyncio.ensure_future(  # noqa: TID251 - awaited below
            harness.gate.ask(chat, Ask(text=""), conversation="c", key="k", principal=harness.principal)
        )
        await harness.elapse(200)
        record = await harness.backend.records.find(_NAME)
        assert record is not None
        assert record.status is Status.ABANDONED
        heard.set()
        await harness.elapse(30)
        await asyncio.gather(asking, return_exceptions=True)
        assert entered == []
    finally:
        install(None)


async def test_a_claim_that_had_to_look_twice_vouches_from_its_first_try(harness: Harness) -> None:
    """The first try may have been applied after it was given up: then the second is told "as before", and prolongs nothing."""
    process = harness.gate.engine.process
    began, tries = harness.clock.monotonic(), 0

    async def step(dead: str | None, alive: str | None) -> str | Lapsed:
        nonlocal tries
        tries += 1
        await harness.elapse(7)
        return Lapsed(record=lapsed) if tries == 1 else "claimed"

    lapsed = Record(id="r", identity=_NAME, handler="chat", fingerprint="", payload=None, status=Status.RUNNING)
    assert await process.precede(step) == (began, "claimed")
    assert tries == 2
