"""The execution: the lease, the check, the observer, and what ends a turn."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any

import pytest

from asking import Ask
from oneturn import ConfigurationError, Handle, Lease, Stopped, Turn, TurnFailed, current_turn
from oneturn.core.failpoint import install
from oneturn.core.identity import Identity
from oneturn.testing.harness import Harness


async def _asked(harness: Harness, handler: Callable[..., Any], *, key: str = "k", text: str = "") -> Handle[Any]:
    return await harness.gate.ask(handler, Ask(text=text), conversation="c", key=key, principal=harness.principal)


def _identity(harness: Harness, key: str = "k") -> Identity:
    return Identity(tenant="acme", subject="ada", scope="c", key=key)


@pytest.mark.row("Q2", "Q12", "Q13")
@pytest.mark.case("T25")
async def test_the_work_outlives_the_request_that_began_it(harness: Harness) -> None:
    """A cut stream and a cancelled waiter leave lease, work and clean-up alone; the end of the work releases."""
    go, cleaned = asyncio.Event(), asyncio.Event()

    @harness.turn("chat")
    async def chat(turn: Turn[Ask]) -> str:
        try:
            await go.wait()
            return "done"
        finally:
            await asyncio.sleep(0)
            cleaned.set()

    handle = await _asked(harness, chat)
    waiting = asyncio.ensure_future(handle.result())  # noqa: TID251 - cancelled below
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    lock = _identity(harness).request_lock()
    assert await harness.backend.leases.inspect(lock) is not None
    go.set()
    assert await handle.result() == "done"
    assert cleaned.is_set()
    await _released(harness, lock)


async def _released(harness: Harness, lock: str) -> None:
    for _ in range(200):
        if await harness.backend.leases.inspect(lock) is None:
            return
        await asyncio.sleep(0)
    raise AssertionError(f"{lock} is still held")


@pytest.mark.row("Q5")
async def test_a_lease_is_renewed_while_its_work_runs(harness: Harness) -> None:
    go = asyncio.Event()

    @harness.turn("chat")
    async def chat(turn: Turn[Ask]) -> str:
        await go.wait()
        turn.check()
        return "done"

    handle = await _asked(harness, chat)
    for _ in range(20):
        await harness.elapse(15)
        holding = await harness.backend.leases.inspect(_identity(harness).request_lock())
        assert holding is not None
        assert 0 < holding.remaining <= 60
    go.set()
    assert await handle.result() == "done"


@pytest.mark.row("Q5", "Q15")
@pytest.mark.case("T23", "T24")
async def test_the_run_limit_frees_the_conversation_from_a_hung_thread(harness: Harness) -> None:
    """The thread cannot be killed; its record ends, its keys are free, and its late result changes nothing."""
    release, late = threading.Event(), threading.Event()

    @harness.turn("chat", run_limit=100)
    def chat(turn: Turn[Ask]) -> str:
        if turn.payload.text == "hang":
            release.wait()
            late.set()
        return "result"

    handle = await _asked(harness, chat, text="hang")
    await harness.elapse(100)
    await harness.elapse(10)
    with pytest.raises(Stopped) as stopped:
        await handle.result()
    assert stopped.value.reason == "run limit"
    second = await _asked(harness, chat, key="k2")
    assert await second.result() == "result"
    release.set()
    await asyncio.get_running_loop().run_in_executor(None, late.wait)
    outcome = await handle.outcome()
    assert outcome is not None
    assert (outcome.status, outcome.reason) == ("stopped", "run limit")


@pytest.mark.row("Q8", "Q6")
async def test_threads_get_the_same_lease_object_and_context_does_not_leak(harness: Harness) -> None:
    secret: ContextVar[str] = ContextVar("secret", default="none")
    secret.set("of the request")
    seen: dict[str, tuple[Any, ...]] = {}

    @harness.turn("threaded")
    def threaded(turn: Turn[Ask]) -> str:
        seen["thread"] = (current_turn() is turn, turn.lease, secret.get(), threading.current_thread().name)
        return "t"

    @harness.turn("async")
    async def asynchronous(turn: Turn[Ask]) -> str:
        with ThreadPoolExecutor(1) as pool:
            lease = await turn.follow(pool.submit(lambda: turn.lease))
        seen["async"] = (current_turn() is turn, lease is turn.lease, secret.get())
        return "a"

    for key, handler in (("1", threaded), ("2", asynchronous)):
        handle = await _asked(harness, handler, key=key)
        await handle.result()
    same, lease, value, name = seen["thread"]
    assert (same, value) == (True, "none")
    assert str(name).startswith("oneturn-work")
    assert lease.fencing_token > 0
    assert seen["async"] == (True, True, "none")
    with pytest.raises(LookupError, match="current turn"):
        current_turn()


@pytest.mark.row("Q11", "Q14")
async def test_a_key_in_other_hands_loses_the_whole_lease_and_stops_the_work(harness: Harness) -> None:
    """Renewal is all or nothing: the scope key went to somebody else, so the request key is not extended either."""
    reasons: list[object] = []

    @harness.turn("chat")
    async def chat(turn: Turn[Ask]) -> str:
        try:
            await asyncio.Event().wait()
        finally:
            reasons.append(turn.stopping)
        return "never"

    handle = await _asked(harness, chat)
    await asyncio.sleep(0)
    identity, leases = _identity(harness), harness.backend.leases
    await leases.revoke(identity.scope_lock(), mark_for=0.001)
    await harness.elapse(0.01)
    await leases.acquire([identity.scope_lock()], owner="stranger", ttl=600)
    await harness.elapse(45)
    with pytest.raises(Stopped) as stopped:
        await handle.result()
    assert stopped.value.reason == "lease lost"
    assert reasons == ["lease lost"]
    holding = await leases.inspect(identity.scope_lock())
    assert holding is not None
    assert holding.owner == "stranger"


@pytest.mark.row("Q11")
async def test_an_emptied_lock_service_makes_things_slower_never_wrong(harness: Harness) -> None:
    """The record vouches; the same owner takes its vanished keys again and the work never notices."""
    go = asyncio.Event()

    @harness.turn("chat")
    async def chat(turn: Turn[Ask]) -> str:
        await go.wait()
        turn.check()
        return "done"

    handle = await _asked(harness, chat)
    identity, leases = _identity(harness), harness.backend.leases
    holding = await leases.inspect(identity.request_lock())
    assert holding is not None
    from oneturn.core.lease import Grant

    keys = (identity.request_lock(), identity.scope_lock())
    assert await leases.release(Grant(keys=keys, owner=holding.owner, ttl=60, fencing_token=holding.fencing_token))
    await harness.elapse(45)
    again = await leases.inspect(identity.request_lock())
    assert again is not None
    assert again.owner == holding.owner
    go.set()
    assert await handle.result() == "done"


@pytest.mark.row("Q16", "Q7")
async def test_the_check_is_cooperative_and_the_owner_is_not_the_key(harness: Harness) -> None:
    """A thread goes on until it asks; the lock's value is a random owner, never the client's key."""
    told, asked = threading.Event(), threading.Event()

    @harness.turn("chat")
    def chat(turn: Turn[Ask]) -> str:
        turn.on_stop(told.set)
        told.wait()
        asked.set()
        turn.check()
        return "unreachable"

    handle = await _asked(harness, chat)
    holding = await harness.backend.leases.inspect(_identity(harness).request_lock())
    assert holding is not None
    assert holding.owner != "k"
    assert len(holding.owner) >= 20
    await handle.cancel()
    with pytest.raises(Stopped):
        await handle.result()
    await asyncio.get_running_loop().run_in_executor(None, asked.wait)
    await _released(harness, _identity(harness).request_lock())


@pytest.mark.row("Q15")
async def test_a_late_yes_does_not_revive_a_lease(harness: Harness) -> None:
    """The renewal's answer is held back until the local deadline has passed: the lease stays lost."""
    hold = asyncio.Event()
    reached = asyncio.Event()

    async def hook(name: str) -> None:
        if name in ("leases.renew.after", "records.touch.after"):
            reached.set()
            await hold.wait()

    leases: list[Lease] = []

    @harness.turn("chat")
    async def chat(turn: Turn[Ask]) -> str:
        leases.append(turn.lease)
        await asyncio.Event().wait()
        return "never"

    handle = await _asked(harness, chat)
    install(hook)
    try:
        await harness.elapse(61)
        assert reached.is_set()
        (lease,) = leases
        assert lease.state == "lost"
        hold.set()
        await harness.elapse(1)
        assert lease.state in ("lost", "released")
        with pytest.raises(Stopped):
            lease.check()
    finally:
        install(None)
    with pytest.raises(Stopped):
        await handle.result()


@pytest.mark.row("Q12")
async def test_a_followed_thread_is_leased_until_it_ends(harness: Harness) -> None:
    """The await was cancelled, the thread goes on: the keys stay held until it has ended."""
    release, pool = threading.Event(), ThreadPoolExecutor(1)

    @harness.turn("chat")
    async def chat(turn: Turn[Ask]) -> bool:
        return await turn.follow(pool.submit(release.wait))

    handle = await _asked(harness, chat)
    for _ in range(20):
        await asyncio.sleep(0)
    await handle.cancel()
    with pytest.raises(Stopped):
        await handle.result()
    for _ in range(50):
        await asyncio.sleep(0)
    lock = _identity(harness).request_lock()
    assert await harness.backend.leases.inspect(lock) is not None
    release.set()
    await asyncio.get_running_loop().run_in_executor(None, pool.shutdown)
    await _released(harness, lock)


@pytest.mark.case("T12", "T13", "T24")
async def test_a_stop_starts_nothing_and_final_stays_final(harness: Harness) -> None:
    began = asyncio.Event()

    @harness.turn("chat")
    async def chat(turn: Turn[Ask]) -> str:
        turn.text("half an ans")
        began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "a result after all"  # swallows the stop
        return "never"

    handle = await _asked(harness, chat)
    await began.wait()
    other = await harness.another()
    found = await other.find(handle.id, principal=harness.principal)
    assert found is not None
    await found.cancel()
    outcome = await handle.outcome()
    assert outcome is not None
    assert (outcome.status, outcome.reason) == ("stopped", "cancelled")
    await _released(harness, _identity(harness).request_lock())
    kinds = [event.kind async for event in handle.events()]
    assert kinds == ["started", "text", "stopped"]
    assert harness.calls(chat) == 1


@pytest.mark.case("T14")
async def test_a_lost_signal_costs_at_most_a_check_interval(harness: Harness) -> None:
    """No signal arrives anywhere: the stop reaches the work, and the stream ends, from the record."""
    stopped = asyncio.Event()

    @harness.turn("chat")
    async def chat(turn: Turn[Ask]) -> str:
        turn.on_stop(stopped.set)
        await asyncio.Event().wait()
        return "never"

    handle = await _asked(harness, chat)
    other = await harness.another()
    found = await other.find(handle.id, principal=harness.principal)
    assert found is not None
    other.engine.process.signals = _Deaf()
    reading = asyncio.ensure_future(_kinds(handle))  # noqa: TID251 - awaited below
    await asyncio.sleep(0)
    await found.cancel()
    await harness.elapse(6)
    await stopped.wait()
    await harness.elapse(6)
    assert (await reading)[-1] == "stopped"


async def _kinds(handle: Handle[Any]) -> list[str]:
    return [event.kind async for event in handle.events()]


class _Deaf:
    def publish(self, topic: str) -> None:
        return

    def subscribe(self, topic: str, wake: Callable[[], None]) -> Callable[[], None]:
        return lambda: None


@pytest.mark.case("T15", "T16")
async def test_a_reader_that_comes_back_sees_each_event_once(harness: Harness) -> None:
    steps = [asyncio.Event() for _ in range(4)]

    @harness.turn("chat")
    async def chat(turn: Turn[Ask]) -> str:
        for number, step in enumerate(steps):
            await step.wait()
            turn.emit("step", {"name": f"s{number}", "state": "done"})
            await turn.flush()
        return "done"

    handle = await _asked(harness, chat)
    seen: list[int] = []
    for number, step in enumerate(steps):
        step.set()
        async for event in handle.events(after=seen[-1] if seen else -1):
            seen.append(event.id)
            if event.kind == "step" and event.data["name"] == f"s{number}":
                break
    seen.extend([event.id async for event in handle.events(after=seen[-1])])
    assert seen == [1, 2, 3, 4, 5, 6]


async def test_text_is_packed_and_the_first_goes_at_once(harness: Harness) -> None:
    @harness.turn("chat")
    async def chat(turn: Turn[Ask]) -> str:
        turn.text("first ")
        await turn.flush()
        for word in ("a", "b", "c"):
            turn.text(word)
        return "end"

    handle = await _asked(harness, chat)
    await handle.result()
    deltas = [event.data["delta"] async for event in handle.events() if event.kind == "text"]
    assert deltas == ["first ", "abc"]


async def test_an_event_that_is_too_large_is_refused_where_it_is_emitted(harness: Harness) -> None:
    @harness.turn("chat")
    async def chat(turn: Turn[Ask]) -> str:
        with pytest.raises(ValueError, match="reference"):
            turn.emit("data", {"name": "blob", "value": "x" * 300_000})
        with pytest.raises(ValueError, match="cannot be emitted"):
            turn.emit("succeeded", {})
        turn.text("汉" * 300_000)
        return "fine"

    handle = await _asked(harness, chat)
    assert await handle.result() == "fine"
    text = "".join([event.data["delta"] async for event in handle.events() if event.kind == "text"])
    assert text == "汉" * 300_000


async def test_an_unserialisable_result_fails_plainly(harness: Harness) -> None:
    @harness.turn("chat")
    async def chat(turn: Turn[Ask]) -> object:
        return object()

    handle = await _asked(harness, chat)
    with pytest.raises(TurnFailed) as failed:
        await handle.result()
    assert failed.value.code == "internal-error"


@pytest.mark.row("Q9")
async def test_the_order_of_admission(harness: Harness) -> None:
    """Fingerprint and record first, then both keys in one step, then the claim, then the work."""
    order: list[str] = []

    async def hook(name: str) -> None:
        order.append(name)

    @harness.turn("chat")
    async def chat(turn: Turn[Ask]) -> str:
        order.append("work")
        return "x"

    install(hook)
    try:
        handle = await _asked(harness, chat)
        await handle.result()
    finally:
        install(None)
    wanted = ["records.find.before", "leases.acquire.before", "records.claim.before", "work", "records.finish.before"]
    assert [name for name in order if name in wanted] == wanted
    after_finish = order[order.index("records.finish.before") :]
    assert after_finish.index("cache.put.before") < after_finish.index("leases.release.before")


@pytest.mark.parametrize("threaded", [False, True])
@pytest.mark.parametrize(
    "raised",
    [ZeroDivisionError(), SystemExit(3), GeneratorExit(), StopIteration(), StopAsyncIteration(), BaseException("x")],
    ids=lambda error: type(error).__name__,
)
async def test_whatever_a_handler_raises_ends_its_turn_and_nothing_else(
    harness: Harness, raised: BaseException, threaded: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Also what would end a loop, or what a future cannot carry; it is logged once."""

    async def asynchronous(turn: Turn[Ask]) -> str:
        raise raised

    def synchronous(turn: Turn[Ask]) -> str:
        raise raised

    handler = harness.turn("chat")(synchronous if threaded else asynchronous)
    handle = await _asked(harness, handler)
    with pytest.raises(TurnFailed) as failed:
        await handle.result()
    assert failed.value.code == "internal-error"
    assert [record.message for record in caplog.records] == ["a handler failed"]


async def test_a_close_that_is_cancelled_leaves_nothing_behind(harness: Harness) -> None:
    """The caller's patience ends before the work does: tasks and keys of this process are gone all the same."""
    stubborn = asyncio.Event()

    @harness.turn("chat")
    async def chat(turn: Turn[Ask]) -> str:
        while not stubborn.is_set():
            try:
                await stubborn.wait()
            except asyncio.CancelledError:
                continue
        return "late"

    await _asked(harness, chat)
    other = await harness.another()
    handle = await other.ask(chat, Ask(), conversation="d", key="k", principal=harness.principal)
    closing = asyncio.ensure_future(other.engine.close())  # noqa: TID251 - cancelled and awaited below
    for _ in range(20):
        await asyncio.sleep(0)
    closing.cancel()
    for _ in range(20):
        await asyncio.sleep(0)
    stubborn.set()
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert not other.engine.process.supervisor.tasks
    assert handle.id not in other.engine.process.executions


async def test_a_payload_of_the_wrong_type_is_refused_before_anything_is_stored(harness: Harness) -> None:
    @harness.turn("chat")
    async def chat(turn: Turn[Ask]) -> str:
        return turn.payload.text

    wrong: Any = {"text": 3}
    with pytest.raises(ValueError, match="valid string"):
        await harness.gate.ask(chat, wrong, conversation="c", key="k", principal=harness.principal)
    for key in ("", "x" * 300, "a\x00b"):
        with pytest.raises(ValueError, match="key"):
            await harness.gate.ask(chat, Ask(), conversation="c", key=key, principal=harness.principal)
    right: Any = {"text": "3"}
    handle = await harness.gate.ask(chat, right, conversation="c", key="k", principal=harness.principal)
    assert (handle.admission, await handle.result()) == ("started", "3")


async def test_an_emoji_that_a_stream_split_in_two_arrives_whole(harness: Harness) -> None:
    """Halves are joined across pieces; what stays half is replaced, for a lone surrogate cannot be stored."""

    @harness.turn("chat")
    async def chat(turn: Turn[Ask]) -> str:
        for piece in ("a", "\ud83d", "\ude00", "b\udc00c\ud83d"):
            turn.text(piece)
            await turn.flush()
        return "fine"

    handle = await _asked(harness, chat)
    assert await handle.result() == "fine"
    text = "".join([event.data["delta"] async for event in handle.events() if event.kind == "text"])
    assert text == "a\U0001f600b\ufffdc\ufffd"


@pytest.mark.parametrize(
    ("kind", "data"), [("step", "text"), ("step", {}), ("data", None), ("text", {"x": 1}), (5, {}), ("x" * 100, {})]
)
async def test_a_badly_shaped_event_is_refused_where_it_is_emitted(harness: Harness, kind: Any, data: Any) -> None:
    @harness.turn("chat")
    async def chat(turn: Turn[Ask]) -> str:
        with pytest.raises(ValueError, match=r"event|emitted"):
            turn.emit(kind, data)
        return "fine"

    assert await (await _asked(harness, chat)).result() == "fine"


@pytest.mark.parametrize(("message", "code"), [("m\ud800", "c"), (object(), object()), (5, None)])
async def test_whatever_a_failure_says_is_told_at_once(harness: Harness, message: Any, code: Any) -> None:
    @harness.turn("chat")
    async def chat(turn: Turn[Ask]) -> str:
        raise TurnFailed(message, code=code)

    with pytest.raises(TurnFailed):
        await (await _asked(harness, chat)).result()


@pytest.mark.case("T23")
async def test_the_run_limit_ends_a_turn_whose_handler_gave_up_on_its_thread(harness: Harness) -> None:
    """The handler has returned, the thread that it followed has not: the limit frees the conversation."""
    release, pool = threading.Event(), ThreadPoolExecutor(1)

    @harness.turn("chat", run_limit=30)
    async def chat(turn: Turn[Ask]) -> str:
        following = asyncio.ensure_future(turn.follow(pool.submit(release.wait)))  # noqa: TID251 - left on purpose
        await asyncio.sleep(0)
        following.cancel()
        return "gave up"

    handle = await _asked(harness, chat)
    await harness.elapse(29)
    assert await handle.outcome(wait=0) is None
    await harness.elapse(10)
    outcome = await handle.outcome()
    assert outcome is not None
    assert (outcome.status, outcome.reason) == ("stopped", "run limit")
    release.set()
    pool.shutdown()


async def test_a_reader_of_what_was_forgotten_ends(harness: Harness) -> None:
    @harness.turn("chat")
    async def chat(turn: Turn[Ask]) -> str:
        return "x"

    handle = await _asked(harness, chat)
    await handle.result()
    await harness.gate.forget(tenant="acme", conversation="c")
    reading = asyncio.ensure_future(_kinds(handle))  # noqa: TID251 - awaited below
    await harness.elapse(6)
    assert await reading == []


async def _two(turn: Turn[Ask], other: int) -> str:
    return f"{turn}{other}"


async def _none() -> str:
    return ""


async def _listed(turn: list[int]) -> str:
    return f"{turn}"


def _generator(turn: Turn[Ask]) -> Any:
    yield turn


async def _fine(turn: Turn[Ask]) -> str:
    return turn.key


@pytest.mark.parametrize("function", [_two, _none, _listed, _generator], ids=lambda function: function.__name__)
def test_a_function_that_is_no_handler_is_refused_where_it_is_declared(
    harness: Harness, function: Callable[..., Any]
) -> None:
    with pytest.raises(ConfigurationError, match=r"must take one argument|generator"):
        harness.gate.turn("bad")(function)


@pytest.mark.parametrize(
    "options",
    [
        {"name": ""},
        {"name": 5},
        {"on_busy": "interrupt"},
        {"client_may": ("rollback",)},
        {"partial": "next"},
        {"recovery": "bogus"},
        {"run_limit": 0},
        {"run_limit": True},
        {"run_limit": "5"},
        {"run_limit": float("inf")},
    ],
    ids=str,
)
def test_an_option_that_cannot_work_is_refused_in_words(harness: Harness, options: dict[str, Any]) -> None:
    chosen = {"name": "ok", **options}
    with pytest.raises(ConfigurationError, match=r"use|must|name"):
        harness.gate.turn(chosen.pop("name"), **chosen)(_fine)
