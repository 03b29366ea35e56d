"""Admission: one execution per identity, whatever arrives, in whatever order."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine
from typing import Any

import pytest

from asking import Ask
from oneturn import Handle, Principal, Refused, ResultUnavailable, Stopped, Turn, TurnFailed
from oneturn.core.errors import BackendUnavailable
from oneturn.core.failpoint import install
from oneturn.testing.harness import Harness


@pytest.mark.row("Q3", "Q10")
@pytest.mark.case("T1")
async def test_a_double_click_is_answered_once(anywhere: Harness) -> None:
    """Fifty posts with one key at one moment: one execution, fifty equal results."""

    @anywhere.turn("chat")
    async def chat(turn: Turn[Ask]) -> str:
        return turn.payload.text.upper()

    def ask() -> Coroutine[Any, Any, Handle[str]]:
        return anywhere.gate.ask(chat, Ask(text="hi"), conversation="c", key="k", principal=anywhere.principal)

    handles = await asyncio.gather(*(ask() for _ in range(50)))
    assert {await handle.result() for handle in handles} == {"HI"}
    assert anywhere.calls(chat) == 1
    assert sum(handle.new for handle in handles) == 1


@pytest.mark.row("Q10")
async def test_a_finished_request_is_replayed_without_the_handler(anywhere: Harness) -> None:
    @anywhere.turn("chat")
    async def chat(turn: Turn[Ask]) -> list[str]:
        return []

    first = await anywhere.gate.ask(chat, Ask(), conversation="c", key="k", principal=anywhere.principal)
    assert await first.result() == []
    again = await anywhere.gate.ask(chat, Ask(), conversation="c", key="k", principal=anywhere.principal)
    assert (again.admission, await again.result(), again.id) == ("replayed", [], first.id)
    assert anywhere.calls(chat) == 1


@pytest.mark.case("T2")
async def test_the_same_words_under_a_new_key_are_executed(anywhere: Harness) -> None:
    """Identity is the key, never the text."""

    @anywhere.turn("chat")
    async def chat(turn: Turn[Ask]) -> int:
        return turn.epoch

    results = []
    for key in ("1", "2"):
        handle = await anywhere.gate.ask(
            chat, Ask(text="same"), conversation="c", key=key, principal=anywhere.principal
        )
        results.append(await handle.result())
    assert results[0] < results[1]
    assert anywhere.calls(chat) == 2


@pytest.mark.row("Q17")
@pytest.mark.case("O5")
@pytest.mark.parametrize("cached", [True, False])
@pytest.mark.parametrize("running", [True, False])
async def test_the_same_key_with_other_content_is_refused(anywhere: Harness, cached: bool, running: bool) -> None:
    """While it runs and after its end, with the replay cache and without."""
    finish = asyncio.Event()
    anywhere.gate.settings.keep_replays = 600 if cached else 0

    @anywhere.turn("chat")
    async def chat(turn: Turn[Ask]) -> str:
        await finish.wait()
        return "secret of the first"

    first = await anywhere.gate.ask(chat, Ask(text="a"), conversation="c", key="k", principal=anywhere.principal)
    if not running:
        finish.set()
        await first.result()
    with pytest.raises(Refused) as refused:
        await anywhere.gate.ask(chat, Ask(text="b"), conversation="c", key="k", principal=anywhere.principal)
    assert (refused.value.reason, refused.value.turn) == ("key-reused", first.id)
    assert "secret" not in str(refused.value)
    assert anywhere.calls(chat) == 1
    finish.set()


@pytest.mark.case("O4")
async def test_keys_of_other_people_and_tenants_are_independent(anywhere: Harness) -> None:
    @anywhere.turn("chat")
    async def chat(turn: Turn[Ask]) -> str:
        return f"{turn.principal.tenant}/{turn.principal.subject}"

    people = [("acme", "ada"), ("acme", "bob"), ("umbrella", "ada")]
    for tenant, subject in people:
        who = Principal(tenant=tenant, subject=subject)
        handle = await anywhere.gate.ask(chat, Ask(text=subject), conversation=f"c{subject}", key="k", principal=who)
        assert await handle.result() == f"{tenant}/{subject}"
    assert anywhere.calls(chat) == 3


@pytest.mark.row("Q4", "K5")
@pytest.mark.case("T5", "T6")
async def test_one_at_a_time_per_conversation_and_others_are_not_delayed(anywhere: Harness) -> None:
    inside: dict[str, int] = {}
    gates = {name: asyncio.Event() for name in ("a1", "a2", "b1")}
    entered = {name: asyncio.Event() for name in gates}

    @anywhere.turn("chat")
    async def chat(turn: Turn[Ask]) -> list[str]:
        inside[turn.conversation] = inside.get(turn.conversation, 0) + 1
        assert inside[turn.conversation] == 1
        entered[turn.payload.text].set()
        await gates[turn.payload.text].wait()
        inside[turn.conversation] -= 1
        return [message.payload.text for message in await turn.history()]

    ask = anywhere.gate.ask
    a1 = await ask(chat, Ask(text="a1"), conversation="a", key="1", principal=anywhere.principal)
    a2 = await ask(chat, Ask(text="a2"), conversation="a", key="2", principal=anywhere.principal)
    b1 = await ask(chat, Ask(text="b1"), conversation="b", key="1", principal=anywhere.principal)
    assert (a1.admission, a2.admission, b1.admission) == ("started", "queued", "started")
    await entered["b1"].wait()
    gates["b1"].set()
    assert await b1.result() == []
    gates["a1"].set()
    gates["a2"].set()
    assert await a1.result() == []
    assert await a2.result() == ["a1"]


@pytest.mark.case("T4", "O10")
async def test_reject_refuses_and_the_key_is_not_used_up(anywhere: Harness) -> None:
    finish = asyncio.Event()

    @anywhere.turn("chat", on_busy="reject")
    async def chat(turn: Turn[Ask]) -> str:
        await finish.wait()
        return "done"

    ask = anywhere.gate.ask
    first = await ask(chat, Ask(), conversation="c", key="1", principal=anywhere.principal)
    with pytest.raises(Refused) as refused:
        await ask(chat, Ask(), conversation="c", key="2", principal=anywhere.principal)
    assert (refused.value.reason, refused.value.turn) == ("busy", first.id)
    finish.set()
    await first.result()
    second = await ask(chat, Ask(), conversation="c", key="2", principal=anywhere.principal)
    assert (second.admission, await second.result()) == ("started", "done")


@pytest.mark.case("T8", "O10")
async def test_the_queue_is_bounded_exactly(anywhere: Harness) -> None:
    """Twenty at one moment: one runs, eight wait, eleven are refused, and their keys are free."""
    finish = asyncio.Event()

    @anywhere.turn("chat")
    async def chat(turn: Turn[Ask]) -> int:
        await finish.wait()
        return turn.sequence

    async def ask(number: int) -> str:
        try:
            handle = await anywhere.gate.ask(
                chat, Ask(), conversation="c", key=str(number), principal=anywhere.principal
            )
        except Refused as refused:
            return refused.reason
        return handle.admission

    answers = await asyncio.gather(*(ask(number) for number in range(20)))
    assert {answer: answers.count(answer) for answer in set(answers)} == {"started": 1, "queued": 8, "limit": 11}
    finish.set()


@pytest.mark.case("T7", "T10")
async def test_every_queued_message_runs_in_order_and_ends_once(anywhere: Harness) -> None:
    order: list[int] = []

    @anywhere.turn("chat")
    async def chat(turn: Turn[Ask]) -> int:
        order.append(turn.sequence)
        turn.text("x")
        return turn.sequence

    handles = [
        await anywhere.gate.ask(chat, Ask(), conversation="c", key=str(number), principal=anywhere.principal)
        for number in range(6)
    ]
    assert [await handle.result() for handle in handles] == [1, 2, 3, 4, 5, 6]
    assert order == [1, 2, 3, 4, 5, 6]
    for handle in handles:
        kinds = [event.kind async for event in handle.events()]
        assert kinds[-1] == "succeeded"
        assert kinds.count("succeeded") == 1


@pytest.mark.case("T11")
async def test_cancelling_a_queued_turn_never_calls_the_handler(anywhere: Harness) -> None:
    finish = asyncio.Event()

    @anywhere.turn("chat")
    async def chat(turn: Turn[Ask]) -> str:
        await finish.wait()
        return "done"

    ask = anywhere.gate.ask
    first = await ask(chat, Ask(), conversation="c", key="1", principal=anywhere.principal)
    second = await ask(chat, Ask(), conversation="c", key="2", principal=anywhere.principal)
    await second.cancel()
    finish.set()
    assert await first.result() == "done"
    with pytest.raises(Stopped) as stopped:
        await second.result()
    assert stopped.value.reason == "cancelled"
    assert [event.kind async for event in second.events()] == ["queued", "stopped"]
    assert anywhere.calls(chat) == 1


@pytest.mark.row("Q18")
@pytest.mark.case("T22", "T26")
async def test_a_crash_is_told_and_frees_the_conversation(harness: Harness) -> None:
    """The vanished lock says nothing about success: "result unavailable", and nothing runs again by itself."""
    begun = asyncio.Event()

    @harness.turn("chat")
    async def chat(turn: Turn[Ask]) -> str:
        if turn.payload.text == "die":
            begun.set()
            await asyncio.Event().wait()
        return "fine"

    def ask(text: str, key: str) -> Awaitable[Handle[str]]:
        return harness.gate.ask(chat, Ask(text=text), conversation="c", key=key, principal=harness.principal)

    first = await ask("die", "1")
    await begun.wait()
    await harness.crash()
    await harness.elapse(60 + 20 + 15 + 5)
    with pytest.raises(ResultUnavailable) as unavailable:
        await ask("die", "1")
    assert (unavailable.value.why, unavailable.value.turn) == ("abandoned", first.id)
    found = await harness.gate.find(first.id, principal=harness.principal)
    assert found is not None
    assert [event.kind async for event in found.events()][-1] == "abandoned"
    after = await ask("go on", "2")
    assert await after.result() == "fine"
    assert harness.calls(chat) == 2


@pytest.mark.case("T22")
async def test_a_declared_rerun_is_started_again_on_the_same_record(harness: Harness) -> None:
    attempts: list[str] = []

    @harness.turn("chat", recovery="rerun")
    async def chat(turn: Turn[Ask]) -> str:
        attempts.append(turn.id)
        if len(attempts) == 1:
            await asyncio.Event().wait()
        return "second time"

    first = await harness.gate.ask(chat, Ask(), conversation="c", key="1", principal=harness.principal)
    while not attempts:  # noqa: ASYNC110 - the handler runs on this loop
        await asyncio.sleep(0)
    await harness.crash()
    await harness.elapse(60 + 20 + 15 + 10)
    again = await harness.gate.ask(chat, Ask(), conversation="c", key="1", principal=harness.principal)
    assert await again.result() == "second time"
    assert attempts == [first.id, first.id]
    kinds = [event.kind async for event in again.events()]
    assert kinds == ["started", "restarted", "succeeded"]


@pytest.mark.case("T3", "O6")
@pytest.mark.parametrize("lost", ["records.claim.after", "leases.acquire.after", "records.finish.after"])
async def test_a_lost_reply_neither_loses_nor_doubles_the_message(harness: Harness, lost: str) -> None:
    """The step was applied, its answer was not heard: the same step, repeated, answers what is true."""
    lose = [lost]

    async def hook(name: str) -> None:
        if lose and name == lose[0]:
            lose.clear()
            raise BackendUnavailable("the reply was lost")

    @harness.turn("chat")
    async def chat(turn: Turn[Ask]) -> str:
        turn.text("once")
        return "once"

    install(hook)
    try:
        asking = asyncio.ensure_future(  # noqa: TID251 - the test's own task, awaited below
            harness.gate.ask(chat, Ask(), conversation="c", key="k", principal=harness.principal)
        )
        await harness.elapse(1)
        handle = await asking
        while lose:  # noqa: ASYNC110
            await asyncio.sleep(0)
        await harness.elapse(1)
        assert await handle.result() == "once"
    finally:
        install(None)
    events = [event async for event in handle.events()]
    assert [event.kind for event in events] == ["started", "text", "succeeded"]
    assert [event.id for event in events] == [1, 2, 3]
    assert harness.calls(chat) == 1


@pytest.mark.row("Q19")
async def test_a_failing_replay_cache_loses_nothing(anywhere: Harness) -> None:
    async def hook(name: str) -> None:
        if name.startswith("replay."):
            raise BackendUnavailable("the cache is away")

    @anywhere.turn("chat")
    async def chat(turn: Turn[Ask]) -> int:
        return 0

    install(hook)
    try:
        for admission in ("started", "replayed", "replayed"):
            handle = await anywhere.gate.ask(chat, Ask(), conversation="c", key="k", principal=anywhere.principal)
            assert (handle.admission, await handle.result()) == (admission, 0)
    finally:
        install(None)
    assert anywhere.calls(chat) == 1


@pytest.mark.case("O8")
@pytest.mark.parametrize("steps", range(0, 24, 2))
async def test_a_client_that_leaves_at_any_await_changes_nothing(anywhere: Harness, steps: int) -> None:
    """Cancelled after n steps of the loop: exactly one effect, and asking again attaches or replays."""

    @anywhere.turn("chat")
    async def chat(turn: Turn[Ask]) -> str:
        return "effect"

    def ask() -> Coroutine[Any, Any, Handle[str]]:
        return anywhere.gate.ask(chat, Ask(), conversation="c", key="k", principal=anywhere.principal)

    leaving = asyncio.ensure_future(ask())  # noqa: TID251 - cancelled and awaited below
    for _ in range(steps):
        await asyncio.sleep(0)
    leaving.cancel()
    await asyncio.gather(leaving, return_exceptions=True)
    handle = await anywhere.gate.ask(chat, Ask(), conversation="c", key="k", principal=anywhere.principal)
    assert await handle.result() == "effect"
    assert anywhere.calls(chat) == 1


@pytest.mark.case("T26")
async def test_a_failed_turn_leaves_a_valid_conversation(anywhere: Harness) -> None:
    @anywhere.turn("chat")
    async def chat(turn: Turn[Ask]) -> list[str]:
        if turn.payload.text == "bad":
            raise TurnFailed("No.", code="no-answer")
        if turn.payload.text == "bug":
            raise ZeroDivisionError("a secret detail")
        return [message.payload.text for message in await turn.history()]

    async def ask(text: str) -> list[str]:
        handle: Handle[list[str]] = await anywhere.gate.ask(
            chat, Ask(text=text), conversation="c", key=text, principal=anywhere.principal
        )
        return await handle.result()

    assert await ask("one") == []
    with pytest.raises(TurnFailed) as failed:
        await ask("bad")
    assert (failed.value.code, str(failed.value)) == ("no-answer", "No.")
    with pytest.raises(TurnFailed) as failed:
        await ask("bug")
    assert failed.value.code == "internal-error"
    assert "secret" not in str(failed.value)
    assert await ask("two") == ["one"]


async def test_a_new_default_does_not_turn_retries_into_refusals(anywhere: Harness) -> None:
    """The fingerprint is taken from what was sent: api rule 5."""

    @anywhere.turn("chat")
    async def chat(turn: Turn[Ask]) -> str:
        return turn.payload.tone

    first = await anywhere.gate.ask(chat, Ask(text="a"), conversation="c", key="k", principal=anywhere.principal)
    again = await anywhere.gate.ask(
        chat, Ask.model_validate({"text": "a"}), conversation="c", key="k", principal=anywhere.principal
    )
    assert again.id == first.id


async def test_regenerate_asks_the_same_message_again_and_replaces_its_answer(anywhere: Harness) -> None:
    """api rule 9: a new key, the same place; the history of the second does not hold the first."""
    answers = iter(["draft", "better", "next"])
    histories: list[list[bytes | None]] = []

    @anywhere.turn("chat")
    async def chat(turn: Turn[Ask]) -> str:
        histories.append([message.answer for message in await turn.history()])
        return next(answers)

    ask = anywhere.gate.ask
    who = anywhere.principal
    first = await ask(chat, Ask(text="q"), conversation="c", key="1", principal=who)
    assert await first.result() == "draft"
    second = await ask(chat, Ask(text="q"), conversation="c", key="2", principal=who, regenerate=first.id)
    assert (await second.result(), second.sequence) == ("better", first.sequence)
    third = await ask(chat, Ask(text="r"), conversation="c", key="3", principal=who)
    assert await third.result() == "next"
    assert histories == [[], [], [b'"better"']]
    with pytest.raises(Refused) as refused:
        await ask(chat, Ask(text="q"), conversation="c", key="4", principal=who, regenerate=first.id)
    assert refused.value.reason == "not-regenerable"


async def test_forget_erases_what_was_said_and_remembers_the_key(anywhere: Harness) -> None:
    """api rule 10."""

    @anywhere.turn("chat")
    async def chat(turn: Turn[Ask]) -> str:
        return "private"

    first = await anywhere.gate.ask(chat, Ask(text="mine"), conversation="c", key="k", principal=anywhere.principal)
    await first.result()
    assert await anywhere.gate.forget(tenant="acme", conversation="c") == 1
    with pytest.raises(ResultUnavailable) as unavailable:
        await anywhere.gate.ask(chat, Ask(text="mine"), conversation="c", key="k", principal=anywhere.principal)
    assert unavailable.value.why == "expired"
    record = await anywhere.gate.engine.find(first.id, principal=anywhere.principal)
    assert record is not None
    assert (record.payload, record.body) == (None, b"")
    assert anywhere.calls(chat) == 1
