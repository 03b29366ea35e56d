"""Every public coroutine of the runtime is cancelled at its n-th await, for every n; nothing is left, nothing is lost (I14).

Plain, twice (again at the next await), with a lost reply, and with the process closing at that very moment.

What happens at each kind of await:

| await | cancelled there | its reply is lost | the process dies there | it is paused for longer than a TTL |
| --- | --- | --- | --- | --- |
| acquire | it goes on by itself, and what it took is given back | the same owner asks again and is told the same | the keys lapse with their TTL | the local deadline has passed: nothing starts, and the keys are free |
| claim, start | the keys are given back; a record that began is abandoned when its time has passed | asked again by the same owner: the same answer | the record is abandoned, or queued again where declared | somebody else may have ended it; the work is told at its first check and the fence refuses its writes |
| the wait for the same request's record | nothing was taken | none is asked | nothing was taken | it looks again, and attaches or replays |
| append | the batch travels with the final commit; numbers tell what is logged already | the batch is sent again with the same numbers | the log ends with the terminal event of the sweeper | refused if somebody else ended it |
| finish | committed or not: the record is final, or is abandoned; the keys are given back | repeated: the store says that it is final | the same | the result stands if nobody took over, else it is refused |
| release | it is sent once more by itself | repeated for half a TTL; then the TTL frees the keys | the TTL frees the keys | the keys have lapsed; a stranger's are not touched |
| stop | it goes on by itself, and is told | repeated: final stays final | stopped or not; if so, the executor sees it at its next touch | as a late stop: final stays final |
| renew, touch | the keeper ends and nothing is vouched for any more | suspect, then asked again until the deadline | keys and record lapse | the lease is lost, and a late yes does not revive it |
| abandon | done or not: the next sweep, anybody's, finds it | the next sweep finds it | another process's sweep finds it | nobody vouched in between, or it is refused |
| a read, a wait for a signal | the subscription ends; nothing else was held | the caller is told that the store is away, or it looks again | nothing is left but what the server forgets | it looks again |
| the handler, observed | the work is told to stop; its record is left to the sweeper | none is asked | the record is abandoned | the lease is lost and the work is stopped |
| open, close | what was begun is ended by itself | none is asked | as any death | the leases are lost |
"""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import pytest
import scenarios_of_leases
import scenarios_of_the_gate
import scenarios_of_the_process
from cut import Cut
from scenario import SCENARIOS, Scenario, public_coroutines
from stage import SETTINGS, Baseline, Stage
from virtual_time import Time, VirtualLoop

from oneturn import Settings
from oneturn.backends.memory import memory_backend
from oneturn.backends.sqlite import sqlite_backend
from oneturn.core.backend import Backend
from oneturn.core.errors import BackendUnavailable
from oneturn.core.failpoint import install

Weather = Literal["calm", "twice", "lost reply", "closing"]
MANY = 150
"""More awaits than any scenario has: a sweep that gets here would not end."""

assert scenarios_of_leases
assert scenarios_of_the_gate
assert scenarios_of_the_process


def test_every_public_coroutine_is_swept() -> None:
    """A new one without a scenario fails here, by name."""
    assert {scenario.name for scenario in SCENARIOS} == public_coroutines()


@pytest.mark.parametrize("weather", ["calm", "twice", "lost reply", "closing"])
@pytest.mark.parametrize("scenario", [s for s in SCENARIOS if not s.needs], ids=str)
def test_cancelled_at_any_await_it_leaves_nothing(scenario: Scenario, weather: Weather) -> None:
    time = Time()
    _sweep(scenario, weather, World(time=time, backend=memory_backend(clock=time), settings=SETTINGS))


@pytest.mark.parametrize("weather", ["calm", "closing"])
@pytest.mark.parametrize("scenario", [s for s in SCENARIOS if s.needs or s.sqlite], ids=str)
def test_a_store_on_a_thread_is_no_different(sqlite: World, scenario: Scenario, weather: Weather) -> None:
    """On SQLite a step that nobody awaits any more is committed all the same, at a moment of its own."""
    _sweep(scenario, weather, sqlite)


def test_an_observer_that_is_cancelled_before_its_first_step_gives_its_keys_back() -> None:
    """A task that never began runs no clean-up of its own."""
    time = Time()

    async def run() -> None:
        stage = Stage(time, memory_backend(clock=time), number=next(_numbers))
        await stage.gate.__aenter__()
        process, asked_at = stage.process, time.monotonic()
        claimed, lease, kept = await stage.claimed("1")
        process.execute(claimed, lease=lease, kept=kept, claimed_at=asked_at)
        (observer,) = process.supervisor.named("observer ")
        observer.cancel()
        await asyncio.sleep(1)
        assert await stage.held_by() == {}
        assert process.executions == {}
        await stage.close()

    loop = VirtualLoop(time)
    loop.run_until_complete(run())
    loop.close()


def test_what_is_admitted_while_the_process_stops_is_stopped_at_once() -> None:
    """The grace is over and an admission is under way: its turn does not begin, and its record is final."""
    time = Time()

    async def run() -> None:
        stage = Stage(
            time,
            memory_backend(clock=time),
            number=next(_numbers),
            settings=SETTINGS.model_copy(update={"grace": 0}),
        )
        await stage.gate.__aenter__()
        install(stage.failpoint)
        asking = asyncio.get_running_loop().create_task(stage.ask("held", "1"))
        while not await stage.held_by():  # noqa: ASYNC110 - virtual time
            await asyncio.sleep(0)
        await stage.close()
        assert (await asking).new
        (record,) = await stage.records()
        assert (record.status, record.reason) == ("stopped", "shutdown")
        assert stage.turns == {}

    loop = VirtualLoop(time)
    try:
        loop.run_until_complete(run())
    finally:
        install(None)
        loop.run_until_complete(_end_all())
        loop.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What the runs of one sweep share; each run has a scope of its own there."""

    time: Time
    backend: Backend
    settings: Settings
    barriers: tuple[Callable[[VirtualLoop], object], ...] = ()


@pytest.fixture(scope="module")
def sqlite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Its lanes are asked to finish whatever was given to them before time jumps."""
    file, time = tmp_path_factory.mktemp("sweep") / "records.db", Time()
    loop = VirtualLoop(time)
    loop.patience = 1
    backend: Any = loop.run_until_complete(sqlite_backend(file, times=time))
    lanes = (backend.records._writer, backend.records._reader, backend.leases._lane)

    def until_the_lanes_are_empty(loop: VirtualLoop) -> None:
        for lane in lanes:
            over = threading.Event()
            lane.post(lambda _: None, then=lambda _, over=over: over.set())
            # An application's open transaction holds a lane up, and ends on this very loop: then nobody waits for long.
            over.wait(loop.patience or 5)

    settings = SETTINGS.model_copy(update={"records": f"sqlite:///{file}"})
    yield World(time=time, backend=backend, settings=settings, barriers=(until_the_lanes_are_empty,))
    loop.run_until_complete(backend.close())
    loop.close()


def _sweep(scenario: Scenario, weather: Weather, world: World) -> None:
    for n in itertools.count(1):
        if not _survives(scenario, weather, n, world):
            break
        assert n < MANY, f"{scenario} has no end"


def _survives(scenario: Scenario, weather: Weather, n: int, world: World) -> bool:
    loop = VirtualLoop(world.time)
    loop.barriers.extend(world.barriers)
    try:
        return loop.run_until_complete(_one(scenario, weather, n, world))
    except BaseException as error:
        error.add_note(f"{scenario}, {weather}, cancelled at await {n}")
        raise
    finally:
        install(None)
        loop.run_until_complete(_end_all())
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


async def _end_all() -> None:
    """After a failed run: what it left behind must not disturb the next one."""
    while left := asyncio.all_tasks() - {asyncio.current_task()}:
        for task in left:
            task.cancel()
        await asyncio.wait(left, timeout=1)


async def _one(scenario: Scenario, weather: Weather, n: int, world: World) -> bool:
    """One run; False if the call had ended before its n-th await."""
    before = asyncio.all_tasks()
    stage = Stage(world.time, world.backend, number=next(_numbers), settings=world.settings)
    await stage.gate.__aenter__()
    await asyncio.sleep(0.01)
    baseline = Baseline(stage)
    call = await scenario.prepare(stage)
    cut = _cut(call, weather, n, stage)
    install(stage.failpoint)
    task = asyncio.get_running_loop().create_task(cut.run(), name="swept")
    _, endless = await asyncio.wait([task], timeout=scenario.endless)
    if endless:
        cut.delivered += task.cancel()
        await asyncio.wait([task])
    stage.heal()
    answer = _answer(task, cut, weather)
    for at_once in stage.at_once:
        await at_once()
    if weather == "closing":
        for put_away in stage.put_away:
            await put_away()
        await stage.close()
        await stage.nothing_is_left(before, unfinished=scenario.dies)
        return cut.suspensions >= n and not endless
    await asyncio.sleep(SETTINGS.ttl + SETTINGS.margin if weather == "lost reply" else 1)
    await stage.no_key_of_the_dead()
    stage.go.set()
    await asyncio.sleep(1)
    await stage.no_key_of_the_dead()
    await stage.all_final()
    for afterwards in stage.afterwards:
        await afterwards(answer)
    await stage.a_fresh_question_is_answered()
    for put_away in stage.put_away:
        await put_away()
    for gate in stage.gates[1:]:
        if gate.running:
            await gate.__aexit__(None, None, None)
    await asyncio.sleep(1)
    baseline.holds()
    await stage.close()
    await stage.nothing_is_left(before, unfinished=False)
    return cut.suspensions >= n and not endless


_numbers = itertools.count(1)


def _answer(task: asyncio.Task[Any], cut: Cut, weather: Weather) -> Any:
    """What the call answered; None if it was cancelled, or did not hear of what it did."""
    if task.cancelled():
        return None
    if weather == "lost reply" and isinstance(task.exception(), BackendUnavailable):
        return None
    answer = task.result()
    assert cut.delivered == 0, "the cancellation was swallowed"
    return answer


def _cut(call: Callable[[], Any], weather: Weather, n: int, stage: Stage) -> Cut:
    if weather == "twice":
        return Cut(call, at=frozenset({n, n + 1}))
    if weather == "lost reply":

        def lose() -> None:
            stage.losing = 1

        return Cut(call, at=frozenset({n + 1}), lose=n, on_lose=lose)
    return Cut(call, at=frozenset({n}))
