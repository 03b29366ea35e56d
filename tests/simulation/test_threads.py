"""Worker threads in virtual time: real code on real threads, of which one runs at a time."""

from __future__ import annotations

import asyncio
import random
from functools import partial

import pytest

from oneturn.testing.link import Crashed
from oneturn.testing.simulation.loop import SimulatedLoop
from oneturn.testing.simulation.threads import SimulatedThreads, sleep

LOOPS = {"simulated": partial(SimulatedLoop, 1)}


@pytest.fixture
async def loop() -> SimulatedLoop:
    running = asyncio.get_running_loop()
    assert isinstance(running, SimulatedLoop)
    return running


@pytest.fixture
async def threads(loop: SimulatedLoop) -> SimulatedThreads:
    return SimulatedThreads(loop, "h0", random.Random(1))


async def test_jobs_take_virtual_time_and_answer(loop: SimulatedLoop, threads: SimulatedThreads) -> None:
    began = loop.time()

    def work(seconds: float) -> float:
        sleep(seconds)
        return loop.time()

    futures = [threads.submit(work, seconds) for seconds in (60, 600)]
    assert threads.jobs == 2
    times = [await asyncio.wrap_future(future) for future in futures]
    assert times[0] - began >= 60
    assert 600 <= times[1] - began < 630, "they sleep side by side, and begin soon"
    assert threads.jobs == 0


async def test_jobs_run_one_at_a_time_and_meet_where_they_sleep(loop: SimulatedLoop, threads: SimulatedThreads) -> None:
    log = list[tuple[int, str]]()

    def work(number: int) -> None:
        for _ in range(5):
            log.append((number, "in"))
            sum(range(20_000))  # long enough for another thread to come between, if one could
            log.append((number, "out"))
            sleep(0.001)

    futures = [threads.submit(work, number) for number in range(8)]
    await asyncio.gather(*(asyncio.wrap_future(future) for future in futures))
    pairs = list(zip(log[::2], log[1::2], strict=True))
    assert [(first[1], second[1], first[0] == second[0]) for first, second in pairs] == [("in", "out", True)] * 40
    order = [first[0] for first, _ in pairs]
    assert order != sorted(order), "they take turns"


async def test_what_a_job_raises_is_its_futures(threads: SimulatedThreads) -> None:
    def work() -> None:
        sleep(1)
        raise KeyError("k")

    with pytest.raises(KeyError, match="k"):
        await asyncio.wrap_future(threads.submit(work))
    assert threads.jobs == 0


def test_outside_of_a_job_nobody_may_sleep() -> None:
    with pytest.raises(RuntimeError, match="worker thread only"):
        sleep(1)


async def test_a_killed_job_learns_it_where_it_sleeps(loop: SimulatedLoop, threads: SimulatedThreads) -> None:
    steps = list[str]()

    def work() -> None:
        steps.append("begun")
        try:
            sleep(100)
            steps.append("slept")
        except Crashed:
            steps.append("crashed")
            raise

    future = threads.submit(work)
    await asyncio.sleep(50)
    threads.kill()
    assert steps == ["begun", "crashed"]
    assert threads.jobs == 0
    assert isinstance(future.exception(timeout=0), Crashed)
    await asyncio.sleep(100)
    assert steps == ["begun", "crashed"], "its alarm clock rings for nobody"


async def test_a_killed_job_that_goes_on_is_told_again(threads: SimulatedThreads) -> None:
    crashed = list[int]()

    def work() -> None:
        for number in range(3):
            try:
                sleep(100)
            except Crashed:
                crashed.append(number)

    future = threads.submit(work)
    await asyncio.sleep(50)
    threads.kill()
    assert future.done(), "or its thread would wait for ever"
    assert crashed == [0, 1, 2]


async def test_a_job_that_was_killed_before_it_began_never_does(threads: SimulatedThreads) -> None:
    begun = list[int]()
    threads.submit(begun.append, 1)
    threads.kill()
    await asyncio.sleep(100)
    assert (begun, threads.jobs) == ([], 0)


async def test_shutting_down_begins_nothing_and_leaves_running_jobs_alone(threads: SimulatedThreads) -> None:
    log = list[str]()

    def running() -> str:
        log.append("begun")
        sleep(100)
        log.append("ended")
        return "answer"

    runs = threads.submit(running)
    await asyncio.sleep(50)
    threads.submit(log.append, "late")
    threads.shutdown(wait=False, cancel_futures=True)
    assert threads.jobs == 1
    assert await asyncio.wrap_future(runs) == "answer"
    await asyncio.sleep(100)
    assert log == ["begun", "ended"]


async def test_a_paused_process_threads_stand_still(loop: SimulatedLoop, threads: SimulatedThreads) -> None:
    def work() -> float:
        sleep(1)
        return loop.time()

    future = threads.submit(work)
    loop.pause("h0/work")
    await asyncio.sleep(100)
    assert not future.done()
    loop.resume("h0/work")
    assert await asyncio.wrap_future(future) >= 100


def _trace(seed: int) -> list[tuple[float, int]]:
    loop, trace = SimulatedLoop(seed), list[tuple[float, int]]()
    threads = SimulatedThreads(loop, "h0", random.Random(seed))

    def work(number: int) -> None:
        for _ in range(4):
            trace.append((loop.time(), number))
            sleep(0.5)

    async def all_of_them() -> None:
        futures = [threads.submit(work, number) for number in range(10)]
        await asyncio.gather(*(asyncio.wrap_future(future) for future in futures))

    loop.run_until_complete(all_of_them())
    loop.close()
    return trace


def test_equal_seeds_give_equal_runs_whatever_the_operating_system_does() -> None:
    first = _trace(1)
    assert [_trace(1) for _ in range(5)] == [first] * 5
    assert _trace(2) != first
