"""The seeded loop: virtual time, an order that the seed decides, lanes that can be stopped one by one."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from oneturn.testing.simulation.loop import LANE, LoopClock, SimulatedLoop, Stuck, lane_context
from oneturn.testing.simulation.threads import Job, sleep

LOOPS = {"simulated": partial(SimulatedLoop, 1)}


@pytest.fixture
async def loop() -> SimulatedLoop:
    running = asyncio.get_running_loop()
    assert isinstance(running, SimulatedLoop)
    return running


def _order(seed: int) -> list[int]:
    """Who ran when, of twelve that take three turns each."""
    loop, ran = SimulatedLoop(seed), list[int]()

    async def step(number: int) -> None:
        for _ in range(3):
            ran.append(number)
            await asyncio.sleep(0)

    async def all_of_them() -> None:
        await asyncio.gather(*(step(number) for number in range(12)))

    loop.run_until_complete(all_of_them())
    loop.close()
    return ran


def _tick(loop: SimulatedLoop, lane: str, ticks: list[float]) -> asyncio.Task[None]:
    """Write down the time each second, for ever."""

    async def tick() -> None:
        while True:
            await asyncio.sleep(1)
            ticks.append(loop.time())

    return loop.create_task(tick(), context=lane_context(lane))


async def test_an_hour_passes_at_once_and_to_the_instant(loop: SimulatedLoop) -> None:
    began, steps = loop.time(), loop.steps
    await asyncio.sleep(3600)
    assert loop.time() - began == 3600
    assert loop.steps - steps < 10


async def test_timers_run_in_the_order_of_their_times(loop: SimulatedLoop) -> None:
    ran, over = list[int](), loop.create_future()
    for seconds in (3, 1, 2):
        loop.call_later(seconds, ran.append, seconds)
    loop.call_later(2.5, ran.append, 99).cancel()
    loop.call_later(4, over.set_result, None)
    await over
    assert ran == [1, 2, 3]


def test_the_seed_and_nothing_else_decides_the_order() -> None:
    orders = [_order(seed) for seed in (1, 2, 3)]
    assert [_order(seed) for seed in (1, 2, 3)] == orders
    assert len({tuple(order) for order in orders}) == 3
    assert sorted(orders[0]) == sorted(orders[1])
    assert orders[0] != [*range(12)] * 3, "a loop that runs what is ready in turn finds no race"


@pytest.mark.parametrize("paused", ["h0", "h0/keeper", "h0/work", "h1"])
async def test_a_paused_lane_stops_and_no_other(loop: SimulatedLoop, paused: str) -> None:
    ticks = {lane: list[float]() for lane in ("", "h0", "h0/keeper", "h0/work", "h1", "h10")}
    tasks = [_tick(loop, lane, times) for lane, times in ticks.items()]
    loop.pause(paused)
    await asyncio.sleep(9.5)
    assert {lane: len(times) for lane, times in ticks.items()} == {lane: 9 * (lane != paused) for lane in ticks}
    loop.resume(paused)
    await asyncio.sleep(3)
    assert len(ticks[paused]) > 0
    assert ticks[paused][0] >= 9.5, "it goes on after the pause, not at a time within it"
    for task in tasks:
        task.cancel()


async def test_a_lane_that_was_paused_twice_is_resumed_twice(loop: SimulatedLoop) -> None:
    ticks = list[float]()
    task = _tick(loop, "h0", ticks)
    loop.pause("h0")
    loop.pause("h0", "h1")
    loop.resume("h0")
    await asyncio.sleep(5)
    assert ticks == []
    loop.resume("h0")
    await asyncio.sleep(5)
    assert len(ticks) >= 4
    loop.resume("h0")  # once more than it was paused: nothing is owed
    loop.pause("h0")
    seen = len(ticks)
    await asyncio.sleep(5)
    assert len(ticks) == seen
    loop.resume("h0")
    task.cancel()


def test_waiting_for_what_cannot_come_is_an_error_and_not_a_hang() -> None:
    loop = SimulatedLoop(1)
    never = loop.create_future()
    with pytest.raises(Stuck):
        loop.run_until_complete(never)
    loop.close()


def test_when_all_that_could_run_is_paused_for_good_it_is_stuck_too() -> None:
    loop = SimulatedLoop(1)
    over = loop.create_future()
    loop.call_soon(over.set_result, None, context=lane_context("h0"))
    loop.pause("h0")
    with pytest.raises(Stuck):
        loop.run_until_complete(over)
    loop.resume("h0")
    loop.run_until_complete(over)
    loop.close()


async def test_what_a_worker_thread_calls_runs_in_that_threads_lane(loop: SimulatedLoop) -> None:
    lanes, heard = list[str](), loop.create_future()

    def called() -> None:
        lanes.append(LANE.get())
        heard.set_result(None)

    def work() -> None:
        lanes.append(loop.host())
        loop.call_soon_threadsafe(called)
        sleep(1)

    Job(loop, "h0/work", work).later(0)
    await heard
    assert lanes == ["h0", "h0/work"]


async def test_what_a_worker_thread_calls_is_paused_with_it(loop: SimulatedLoop) -> None:
    heard = list[float]()

    def work() -> None:
        loop.call_soon_threadsafe(lambda: heard.append(loop.time()))
        loop.pause("h0/work")

    Job(loop, "h0/work", work).later(1)
    await asyncio.sleep(10)
    assert heard == []
    loop.resume("h0/work")
    await asyncio.sleep(1)
    assert [round(time) for time in heard] == [10]


async def test_a_keeper_has_a_lane_of_its_own(loop: SimulatedLoop) -> None:
    async def lane() -> str:
        return LANE.get()

    keeper = loop.create_task(lane(), name="keeper", context=lane_context("h0"))
    other = loop.create_task(lane(), name="sweeper", context=lane_context("h0"))
    assert (await keeper, await other) == ("h0/keeper", "h0")


async def test_a_clock_may_be_stepped_without_moving_the_loop(loop: SimulatedLoop) -> None:
    clock, other = LoopClock(loop), LoopClock(loop)
    clock.offset += 5
    clock.wall_offset -= 7
    assert clock.monotonic() == other.monotonic() + 5
    assert clock.wall() == other.wall() - 7
    rung = list[str]()
    clock.call_later(2, lambda: rung.append("kept"))
    clock.call_later(2, lambda: rung.append("cancelled"))()
    await clock.sleep(3)
    assert rung == ["kept"]
    assert other.monotonic() == loop.time()
