"""A user's own handlers and scenario under the storm: what is right passes, what is wrong is found, shrunk and told."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from asking import Ask
from oneturn import BackendUnavailable, Gate, Refused, ResultUnavailable, Settings, Stopped, Turn, TurnFailed
from oneturn.core.errors import ConfigurationError
from oneturn.runtime.outcome import Outcome
from oneturn.testing import Harness, SimulationFailed, simulate
from oneturn.testing.simulation.scenario import TRIES
from oneturn.testing.simulation.threads import sleep
from oneturn.testing.simulation.zoo import ZOO

gate = Gate(Settings(records="memory://"))


@gate.turn("the answer", recovery="rerun", client_may=("reject",))
async def answer(turn: Turn[Ask]) -> str:
    for word in turn.payload.text.split():
        turn.check()
        turn.text(word)
        await asyncio.sleep(0.3)
    return turn.payload.text.upper()


async def plain(turn: Turn[Ask]) -> str:
    await asyncio.sleep(0.3)
    return turn.payload.text.upper()


@gate.turn("in a thread", recovery="rerun")
def in_a_thread(turn: Turn[Ask]) -> str:
    sleep(0.3)
    turn.check()
    return turn.payload.text.upper()


def plain_in_a_thread(turn: Turn[Ask]) -> str:
    return turn.payload.text.upper()


class Bot:
    def __init__(self, sign: str) -> None:
        self.sign = sign

    async def reply(self, turn: Turn[Ask]) -> str:
        return turn.payload.text.upper()


bot = Bot("!")
gate.turn("bot", recovery="rerun")(bot.reply)


async def asks_once(h: Harness) -> None:
    await h.gate.ask(plain, Ask(text="a"), conversation="c", key="1", principal=h.principal)


def two_tabs(handler: Callable[..., Any]) -> Callable[[Harness], Any]:
    async def scenario(h: Harness) -> None:
        first = await h.gate.ask(handler, Ask(text="a b"), conversation="c", key="1", principal=h.principal)
        await h.elapse(2)
        await h.crash()
        second = await h.gate.ask(handler, Ask(text="c"), conversation="c", key="2", principal=h.principal)
        assert await second.result() == "C"
        assert [event.kind async for event in second.events()][-1] == "succeeded"
        again = await h.gate.ask(handler, Ask(text="a b"), conversation="c", key="1", principal=h.principal)
        assert again.id == first.id
        assert await again.result() == "A B"

    return scenario


@pytest.mark.parametrize("handler", [answer, plain, in_a_thread, plain_in_a_thread, bot.reply])
def test_a_right_handler_survives(handler: Callable[..., Any]) -> None:
    """Decorated or not, on the loop or in a thread, a function or a method."""
    simulate(two_tabs(handler), handler, seeds=30)


def test_the_gate_of_the_user_is_not_opened_and_its_options_hold() -> None:
    mine = Gate(Settings(records="sqlite:///nowhere/at/all.db"))

    @mine.turn("refuses", on_busy="reject")
    async def refuses(turn: Turn[Ask]) -> str:
        await asyncio.sleep(20)
        return ""

    refused = Counter[str]()

    async def both(h: Harness) -> None:
        first = await h.gate.ask(refuses, Ask(text="a"), conversation="c", key="1", principal=h.principal)
        with contextlib.suppress(ResultUnavailable, Stopped):
            second = await h.gate.ask(refuses, Ask(text="b"), conversation="c", key="2", principal=h.principal)
            await second.outcome()
            assert await first.outcome(wait=0) is not None, "two at once"

    async def counted(h: Harness) -> None:
        try:
            await both(h)
        except Refused as busy:
            refused[busy.reason] += 1
            raise
        assert h.gate.handler(refuses).name == "refuses"

    simulate(counted, refuses, seeds=5)
    assert refused["busy"] > 0
    assert not mine.running


# -- what is found ----------------------------------------------------------------------------------------------------

paid: list[str] = []


@gate.turn("pay twice", recovery="rerun")
async def pay_twice(turn: Turn[Ask]) -> str:
    """Its author forgot that work which is run again has been run before."""
    paid.append(turn.id)
    await asyncio.sleep(1)
    return "paid"


@gate.turn("pay once", recovery="rerun")
async def pay_once(turn: Turn[Ask]) -> str:
    if turn.id not in paid:
        paid.append(turn.id)
    await asyncio.sleep(1)
    return "paid"


async def pays(h: Harness, handler: Callable[..., Any]) -> None:
    handle = await h.gate.ask(handler, Ask(text="5 €"), conversation="c", key="1", principal=h.principal)
    await handle.result()
    assert paid.count(handle.id) == 1, "paid twice"


async def twice(h: Harness) -> None:
    await pays(h, pay_twice)


async def once(h: Harness) -> None:
    await pays(h, pay_once)


def failure(*asked: Any, **options: Any) -> SimulationFailed:
    with pytest.raises(SimulationFailed) as failed:
        simulate(*asked, **options)
    return failed.value


def at_no_address(failed: SimulationFailed) -> str:
    return re.sub(r"0x[0-9a-f]+", "", str(failed))


def test_a_bug_of_a_handler_is_found_shrunk_and_run_again_by_the_line_that_is_told() -> None:
    failed = failure(twice, pay_twice, reset=paid.clear)
    assert isinstance(failed.__cause__, AssertionError)
    assert "paid twice" in str(failed.__cause__)
    message = str(failed)
    seed, again = re.findall(r"^seed (\d+) failed$|^again: (.*)$", message, re.MULTILINE)
    assert again[1] == f"simulate(twice, pay_twice, seeds=1, base={seed[0]}, reset=...)"
    # The line as it is told, with what the dots stand for.
    told = again[1].replace("reset=...", "reset=paid.clear")
    with pytest.raises(SimulationFailed) as second:
        exec(told, globals())
    assert at_no_address(second.value) == at_no_address(failed)
    faults = re.findall(r"^    (fault \d+|network \w+): (.*)$", message, re.MULTILINE)
    assert faults, "a process has to die"
    before, after = re.findall(r"shrunk from (\d+) to (\d+) lines", message)[0]
    assert int(after) < int(before)
    decided = re.findall(r"^    (\S+) s \w+ (?:restarted|started) ", message, re.MULTILINE)
    assert decided, "the decision log is told"
    began = float(re.findall(r"the scenario began at (\S+) s", message)[0])
    assert began < float(decided[0]) < began + 60, "in the times of what was done"


def test_the_same_handler_without_the_bug_passes() -> None:
    simulate(once, pay_once, reset=paid.clear)


def test_a_false_assertion_fails_the_first_seed_and_needs_no_fault() -> None:
    async def wrong(h: Harness) -> None:
        handle = await h.gate.ask(plain, Ask(text="a"), conversation="c", key="1", principal=h.principal)
        assert await handle.result() == "B", "not what was asked"

    failed = failure(wrong, plain, base=7)
    message = str(failed)
    assert message.startswith("seed 7 failed\n    the scenario raised AssertionError: not what was asked")
    assert re.search(r"^    the scenario began at", message, re.MULTILINE)
    assert not re.search(r"^    (fault|network) ", message, re.MULTILINE)
    assert message.endswith("\nagain: simulate(wrong, plain, seeds=1, base=7)")


def test_an_error_of_a_handler_fails_the_seed() -> None:
    async def broken(turn: Turn[Ask]) -> str:
        raise ZeroDivisionError

    failed = failure(two_tabs(broken), broken)
    assert isinstance(failed.__cause__, TurnFailed)
    assert re.search(r"^    the handler 'broken' raised ZeroDivisionError \(at ", str(failed), re.MULTILINE)


def test_what_a_handler_raised_is_told_with_its_place_though_no_client_is_shown_it() -> None:
    async def mistyped(turn: Turn[Ask]) -> str:
        return jsn.dumps(turn.payload.text)  # type: ignore[name-defined,no-any-return]  # noqa: F821 - the bug

    def reads(turn: Turn[Ask]) -> str:
        return str(json.loads(turn.payload.text))

    line = mistyped.__code__.co_firstlineno + 1
    message = str(failure(two_tabs(mistyped), mistyped))
    assert f"    the handler 'mistyped' raised NameError: name 'jsn' is not defined (at {__file__}:{line})\n" in message

    line = reads.__code__.co_firstlineno + 1
    message = str(failure(two_tabs(reads), reads))
    found = re.search(
        r"^    the handler 'reads' raised JSONDecodeError: Expecting value.*\(at (.*)\)$", message, re.MULTILINE
    )
    assert found
    assert re.fullmatch(rf".*decoder\.py:\d+, from {re.escape(__file__)}:{line}", found[1]), "where it is, and whose"


def test_an_answer_that_is_not_of_its_type_is_told() -> None:
    async def lies(turn: Turn[Ask]) -> int:
        return turn.payload.text  # type: ignore[return-value]

    message = str(failure(two_tabs(lies), lies))
    assert "    the handler 'lies' returned what its annotation does not allow: " in message
    assert "Expected `int`" in message


def test_what_a_handler_says_to_its_client_or_raises_when_it_is_stopped_is_not_told_twice() -> None:
    async def says(turn: Turn[Ask]) -> str:
        if turn.payload.text == "stop":
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                raise ValueError("while it was stopped") from None
        raise TurnFailed("no such tea", code="tea")

    async def asks(h: Harness) -> None:
        stopped = await h.gate.ask(says, Ask(text="stop"), conversation="c", key="1", principal=h.principal)
        await stopped.cancel()
        await stopped.outcome()
        handle = await h.gate.ask(says, Ask(text="a"), conversation="c", key="2", principal=h.principal)
        await handle.result()

    message = str(failure(asks, says))
    assert "the scenario raised TurnFailed: no such tea" in message
    assert "the handler" not in message


def test_a_bug_of_the_library_is_found_by_the_invariants() -> None:
    bug = next(bug for bug in ZOO if bug.name == "a lease is never released")

    async def asks(h: Harness) -> None:
        await h.gate.ask(answer, Ask(text="a"), conversation="c", key="1", principal=h.principal)

    with bug.plant():
        failed = failure(asks, answer)
    assert "    I14: " in str(failed)
    assert failed.__cause__ is None


async def nothing(_: Harness) -> None:
    return


def test_a_scenario_that_asks_no_turn_shows_nothing() -> None:
    """As one whose last `await` was forgotten."""
    assert "asked no turn in any of 3 seeds" in str(failure(nothing, plain, seeds=3))
    begun: list[int] = []

    async def once(h: Harness) -> None:
        begun.append(0)
        if len(begun) == 2:
            await asks_once(h)

    simulate(once, plain, seeds=3)  # one that asks is enough

    async def as_the_router_asks(h: Harness) -> None:
        handler, body = h.gate.handler(answer), Ask(text="a")
        await h.gate.engine.ask(
            handler,
            payload=body.model_dump_json().encode(),
            sent=body.model_dump(),
            conversation="c",
            key="1",
            principal=h.principal,
        )

    simulate(as_the_router_asks, answer, seeds=1)


# -- the client -------------------------------------------------------------------------------------------------------


def test_an_interrupted_scenario_begins_again_and_the_last_time_after_the_storm() -> None:
    begun: list[float] = []

    async def unlucky(h: Harness) -> None:
        begun.append(h.clock.monotonic())
        if len(begun) <= TRIES:
            raise BackendUnavailable("no answer came")
        await asks_once(h)

    simulate(unlucky, plain, seeds=1)
    assert begun == sorted(set(begun))
    assert len(begun) == TRIES + 1

    async def never(h: Harness) -> None:
        async with asyncio.TaskGroup() as tabs:
            tabs.create_task(unlucky(h))
            begun.clear()

    failed = failure(never, plain, seeds=1)
    assert isinstance(failed.__cause__, ExceptionGroup)
    assert str(failed).count("the scenario began") == TRIES + 1


def test_a_refusal_that_no_retry_cures_fails_the_seed() -> None:
    async def reuses(h: Harness) -> None:
        await h.gate.ask(plain, Ask(text="a"), conversation="c", key="1", principal=h.principal)
        await h.gate.ask(plain, Ask(text="b"), conversation="c", key="1", principal=h.principal)

    failed = failure(reuses, plain, seeds=1)
    assert isinstance(failed.__cause__, Refused)
    assert failed.__cause__.reason == "key-reused"


def test_what_the_harness_offers() -> None:
    async def scenario(h: Harness) -> None:
        began, who = h.clock.monotonic(), h.principal
        await h.elapse(5)
        assert h.clock.monotonic() == pytest.approx(began + 5)
        handle = await h.gate.ask(answer, Ask(text="a"), conversation="c", key="1", principal=who)
        other = await h.another()
        same = await other.find(handle.id, principal=who)
        assert same is not None
        outcome = await same.outcome()
        assert isinstance(outcome, Outcome)
        assert 1 <= h.calls(answer) <= 3
        assert any(decision.event == "started" for decision in h.decisions)
        more = await h.gate.ask(answer, Ask(text="a b c d"), conversation="c", key="2", principal=who)
        await more.cancel()
        assert (await more.outcome()).status in ("stopped", "succeeded")  # type: ignore[union-attr]
        assert await h.gate.forget(tenant=who.tenant, conversation="c") == 2
        with pytest.raises(ConfigurationError, match="simulate"):
            h.turn("later")(plain)

    simulate(scenario, answer, seeds=30)


def test_a_turn_that_fell_victim_to_the_storm_ends_its_scenario_and_is_no_failure() -> None:
    ends = Counter[str]()

    async def unlucky(h: Harness) -> None:
        handle = await h.gate.ask(plain, Ask(text="a"), conversation="c", key="1", principal=h.principal)
        try:
            await handle.result()
        except ResultUnavailable as gone:
            ends[gone.why] += 1
            raise
        ends["succeeded"] += 1

    simulate(unlucky, plain, seeds=60)
    assert ends["abandoned"] > 0
    assert ends["succeeded"] > 0


def test_a_stream_of_an_abandoned_turn_ends_with_that_event_and_raises_nothing() -> None:
    ends = Counter[str]()

    async def reads(h: Harness) -> None:
        handle = await h.gate.ask(plain, Ask(text="a"), conversation="c", key="1", principal=h.principal)
        last = [event.kind async for event in handle.events()][-1]
        ends[last] += 1
        if last == "abandoned":
            with pytest.raises(ResultUnavailable):
                await handle.result()

    simulate(reads, plain, seeds=60)
    assert ends["abandoned"] > 0
    assert ends["succeeded"] > 0


def test_a_scenario_that_never_comes_to_its_end_shows_nothing() -> None:
    async def endless(turn: Turn[Ask]) -> str:
        await asyncio.Event().wait()
        return ""

    async def waits(h: Harness) -> None:
        handle = await h.gate.ask(endless, Ask(text="a"), conversation="c", key="1", principal=h.principal)
        await handle.result()

    failed = failure(waits, endless, seeds=10)
    assert isinstance(failed.__cause__, Stopped | ResultUnavailable)
    assert "none of 10 seeds" in str(failed)
    simulate(waits, endless, seeds=1)  # one may be cut short


def test_a_scenario_that_waits_for_ever_fails() -> None:
    async def waits(h: Harness) -> None:
        await asyncio.Event().wait()

    failed = failure(waits, plain, seeds=1)
    assert isinstance(failed.__cause__, TimeoutError)
    line = waits.__code__.co_firstlineno + 1
    where = rf"\(it was at .*locks\.py:\d+, from {re.escape(__file__)}:{line}\)"
    assert re.search(rf"^    the scenario did not end within 800 virtual seconds {where}$", str(failed), re.MULTILINE)

    async def gives_up(h: Harness) -> None:
        async with asyncio.timeout(1):
            await asyncio.Event().wait()

    assert "    the scenario raised TimeoutError: \n" in str(failure(gives_up, plain, seeds=1)), "its own"


def test_a_handler_that_never_leaves_its_thread_is_named() -> None:
    def deaf(turn: Turn[Ask]) -> str:
        while turn.payload.text == "for ever":
            sleep(1)
        return ""

    async def asks(h: Harness) -> None:
        for text in ("a", "for ever"):
            await h.gate.ask(deaf, Ask(text=text), conversation=text, key="1", principal=h.principal)

    message = str(failure(asks, deaf, seeds=1))
    named = r"^    the handler 'deaf' was still in its thread at (h\d+): it neither asks turn\.check\(\) nor ends$"
    found = re.findall(named, message, re.MULTILINE)
    assert len(found) == 1
    assert f"was still at {found[0]} when closed" in message, "and the invariant with it"


def test_what_is_reset_is_reset_before_every_run() -> None:
    seen: list[int] = []
    state: list[str] = []

    async def scenario(h: Harness) -> None:
        await asks_once(h)
        seen.append(len(state))
        state.append("x")

    simulate(scenario, plain, seeds=5, reset=state.clear)
    assert seen == [0] * 5


def test_the_stores_are_simulated_whatever_the_settings_name() -> None:
    settings = Settings(records="sqlite:///nowhere/at/all.db", leases="sqlite:///nowhere/either.db", grace=2)

    async def scenario(h: Harness) -> None:
        assert h.settings.grace == h.gate.settings.grace == 2
        await h.gate.ask(answer, Ask(text="a"), conversation="c", key="1", principal=h.principal)

    simulate(scenario, answer, seeds=3, settings=settings)


# -- how it is called -------------------------------------------------------------------------------------------------


async def test_it_is_not_called_on_a_running_loop() -> None:
    with pytest.raises(ConfigurationError, match="plain `def"):
        simulate(nothing, plain, seeds=1)


@pytest.mark.parametrize(
    ("handlers", "seeds", "words"),
    [
        ((), 1, "a handler"),
        ((plain,), 0, "a seed"),
        ((plain, plain), 1, "two handlers"),
        ((print,), 1, "annotat"),
        (("plain",), 1, "'plain' is no handler: give the function itself"),
        ((functools.partial(plain),), 1, "has no name: declare it"),
    ],
)
def test_what_cannot_be_run_is_said_at_once(handlers: tuple[Any, ...], seeds: int, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        simulate(nothing, *handlers, seeds=seeds)


def test_a_scenario_that_cannot_be_awaited_is_refused() -> None:
    def sync(h: Harness) -> None:
        h.gate.handler(plain)

    def forgot_to_await(h: Harness) -> None:
        raise AttributeError("'coroutine' object has no attribute 'result'")

    async def takes_none() -> None:
        return

    async def streams(h: Harness) -> AsyncIterator[int]:
        yield 1

    for scenario in (sync, forgot_to_await, takes_none, streams):
        name = scenario.__name__
        words = re.escape(f"write the scenario as `async def {name}(h: Harness)`: the call {name}(h) ")
        with pytest.raises(ConfigurationError, match=words):
            simulate(scenario, plain, seeds=1)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="'sync' is no scenario: give the function itself"):
        simulate("sync", plain, seeds=1)  # type: ignore[arg-type]
    simulate(functools.partial(asks_once), plain, seeds=1)  # whatever gives something to await is one


def test_a_seed_fails_in_the_same_way_under_any_hash_seed() -> None:
    here = str(Path(__file__).parent)
    tests = str(Path(__file__).parents[1])
    code = """
from test_simulate import *
try:
    simulate(twice, pay_twice, reset=paid.clear)
except SimulationFailed as failed:
    print(failed)
"""
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={
                "PYTHONHASHSEED": seed,
                "PATH": "",
                "PYTHONPATH": os.pathsep.join(filter(None, (here, tests, os.environ.get("PYTHONPATH")))),
            },
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(outputs) == 1
    assert "paid twice" in outputs.pop()
