"""The simulated network: what becomes of a call, and of a signal, in each kind of weather."""

from __future__ import annotations

import asyncio
import random
from functools import partial

import pytest

from oneturn.core.errors import BackendUnavailable
from oneturn.core.lease import Grant, Renewal
from oneturn.testing.evidence import Step
from oneturn.testing.link import Crashed
from oneturn.testing.simulation.loop import SimulatedLoop, lane_context
from oneturn.testing.simulation.network import KINDS, Weather, Wire
from oneturn.testing.simulation.servers import Port, Servers

LOOPS = {"simulated": partial(SimulatedLoop, 1)}
SHORT = 1e-6
"""Virtual seconds after which every task has had its turn, and nothing that was sent has arrived."""
LONG = 60.0
"""Virtual seconds after which whatever was under way has arrived."""


@pytest.fixture
async def loop() -> SimulatedLoop:
    running = asyncio.get_running_loop()
    assert isinstance(running, SimulatedLoop)
    return running


@pytest.fixture
async def servers(loop: SimulatedLoop) -> Servers:
    return Servers(loop)


@pytest.fixture
def weather() -> Weather:
    made = Weather(draw=random.Random(1))
    made.calm()
    return made


@pytest.fixture
async def wire(loop: SimulatedLoop, servers: Servers, weather: Weather) -> Wire:
    return Wire("h0", servers=servers, loop=loop, weather=weather)


async def _acquire(wire: Wire, *, owner: str = "a", ttl: float = 1000) -> Grant:
    grant = await wire.backend().leases.acquire(["k"], owner=owner, ttl=ttl)
    assert isinstance(grant, Grant)
    return grant


def _restart_after_a_step(loop: SimulatedLoop, servers: Servers, port: Port) -> None:
    def seen(step: Step, kept: object) -> None:
        loop.call_soon(servers.restart, port)  # while its answer is on its way

    servers.seen = seen


def _methods(servers: Servers) -> list[str]:
    return [step.method for step in servers.journal]


async def test_a_call_takes_its_time_each_way(loop: SimulatedLoop, servers: Servers, wire: Wire) -> None:
    began = loop.time()
    await _acquire(wire)
    (step,) = servers.journal
    assert began < step.time < loop.time() < began + 1
    assert (step.host, step.port, step.method, step.asked) == ("h0", "leases", "acquire", ["k"])


async def test_a_slow_call_takes_a_hundred_times_as_long(loop: SimulatedLoop, wire: Wire, weather: Weather) -> None:
    weather.slow = 1.0
    began = loop.time()
    for _ in range(50):
        await wire.backend().leases.inspect("k")
    assert 100 < loop.time() - began < 300, "50 calls, two ways, 2 s each on average"


async def test_a_lost_request_is_never_applied(servers: Servers, wire: Wire, weather: Weather) -> None:
    weather.lost = 1.0
    with pytest.raises(BackendUnavailable):
        await _acquire(wire)
    await asyncio.sleep(LONG)
    assert servers.journal == []
    assert weather.hits == {"lost": 1}


async def test_a_lost_reply_was_applied_once_and_nobody_knows(servers: Servers, wire: Wire, weather: Weather) -> None:
    weather.reply_lost = 1.0
    with pytest.raises(BackendUnavailable):
        await _acquire(wire)
    await asyncio.sleep(LONG)
    assert _methods(servers) == ["acquire"]
    assert servers.holders() == {"k": "a"}
    assert weather.hits == {"reply_lost": 1}


async def test_a_late_call_is_applied_after_its_caller_gave_up(
    loop: SimulatedLoop, servers: Servers, wire: Wire, weather: Weather
) -> None:
    weather.late = 1.0
    with pytest.raises(BackendUnavailable):
        await _acquire(wire)
    gave_up = loop.time()
    assert servers.journal == []
    await asyncio.sleep(LONG)
    (step,) = servers.journal
    assert step.time > gave_up
    assert servers.holders() == {"k": "a"}


async def test_a_late_call_may_arrive_behind_its_callers_next_one(
    servers: Servers, wire: Wire, weather: Weather
) -> None:
    """A key that was released is taken again by the acquire that was given up before: its TTL has to free it."""
    weather.late = 1.0
    with pytest.raises(BackendUnavailable):
        await _acquire(wire)
    weather.calm()
    assert not await wire.backend().leases.release(Grant(keys=("k",), owner="a", ttl=1, fencing_token=0))
    await asyncio.sleep(LONG)
    assert _methods(servers) == ["release", "acquire"]


async def test_a_doubled_call_is_applied_twice_and_answered_once(
    servers: Servers, wire: Wire, weather: Weather
) -> None:
    grant = await _acquire(wire)
    weather.doubled = 1.0
    assert await wire.backend().leases.renew([grant]) == [Renewal.KEPT]
    assert await wire.backend().leases.release(grant) is False, "the second delivery's answer"
    assert _methods(servers) == ["acquire", "renew", "renew", "release", "release"]
    assert [step.answer for step in servers.journal[-2:]] == [True, False]


async def test_what_a_store_refuses_its_caller_hears(servers: Servers, wire: Wire) -> None:
    with pytest.raises(ValueError, match="ttl"):
        await _acquire(wire, ttl=-1)
    assert servers.journal == []


async def test_what_a_dead_process_had_sent_still_arrives(loop: SimulatedLoop, servers: Servers, wire: Wire) -> None:
    asking = loop.create_task(_acquire(wire), context=lane_context("h0"))
    await asyncio.sleep(SHORT)
    assert servers.journal == []
    wire.cut = True
    asking.cancel()
    await asyncio.wait([asking])
    await asyncio.sleep(LONG)
    assert [(step.host, step.method) for step in servers.journal] == [("h0", "acquire")]


async def test_a_dead_process_hears_nothing_and_sends_nothing(
    loop: SimulatedLoop, servers: Servers, wire: Wire
) -> None:
    heard = list[str]()
    wire.backend().signals.subscribe("t", lambda: heard.append("a signal"))

    async def ask() -> None:
        for _ in range(2):
            try:
                await _acquire(wire)
                heard.append("an answer")
            except Crashed:
                heard.append("crashed")

    asking = loop.create_task(ask(), context=lane_context("h0"))
    await asyncio.sleep(SHORT)
    wire.cut = True
    await asking
    wire.publish("t")
    await asyncio.sleep(LONG)
    assert heard == ["crashed", "crashed"]
    assert _methods(servers) == ["acquire"], "what it had sent; what it called when it was dead never left"


async def test_an_answer_of_before_a_restart_never_leaves(loop: SimulatedLoop, servers: Servers, wire: Wire) -> None:
    _restart_after_a_step(loop, servers, "leases")
    with pytest.raises(BackendUnavailable):
        await _acquire(wire)
    assert _methods(servers) == ["acquire"]
    assert servers.holders() == {"k": "a"}, "it was applied, and the server has not forgotten it"


async def test_a_restart_of_one_server_is_none_of_another(loop: SimulatedLoop, servers: Servers, wire: Wire) -> None:
    _restart_after_a_step(loop, servers, "records")
    await _acquire(wire)


async def test_a_server_that_is_away_answers_nobody(servers: Servers, wire: Wire) -> None:
    servers.leave("leases")
    servers.leave("leases")
    with pytest.raises(BackendUnavailable):
        await _acquire(wire)
    assert await wire.backend().records.scope_epoch(tenant="a", scope="s") == 0
    servers.come_back("leases")
    with pytest.raises(BackendUnavailable):
        await _acquire(wire)
    await asyncio.sleep(LONG)
    assert _methods(servers) == ["scope_epoch"], "nothing that came meanwhile is made up for"
    servers.come_back("leases")
    await _acquire(wire)


async def test_calm_weather_heals_everything(loop: SimulatedLoop, wire: Wire, weather: Weather) -> None:
    for kind in KINDS:
        setattr(weather, kind, 1.0)
    with pytest.raises(BackendUnavailable):
        await _acquire(wire)
    assert weather.faults > 0
    weather.calm()
    faults, began, woken = weather.faults, loop.time(), list[float]()
    wire.backend().signals.subscribe("t", lambda: woken.append(loop.time()))
    for number in range(100):
        await _acquire(wire)
        wire.publish("t")
        assert loop.time() < began + 1 + number
    await asyncio.sleep(LONG)
    assert weather.faults == faults
    assert len(woken) == 100


async def test_signals_are_late_or_lost(loop: SimulatedLoop, servers: Servers, wire: Wire, weather: Weather) -> None:
    signals, woken = wire.backend().signals, list[float]()
    end = signals.subscribe("t", lambda: woken.append(loop.time()))
    sent = loop.time()
    signals.publish("t")
    assert woken == []
    await asyncio.sleep(LONG)
    assert [time > sent for time in woken] == [True]
    weather.signals_lost = 1.0
    signals.publish("t")
    await asyncio.sleep(LONG)
    assert len(woken) == 1
    assert weather.hits == {"signals_lost": 1}
    end()
    assert servers.signals.topics == frozenset()


async def test_both_ends_of_a_call_are_boundaries(loop: SimulatedLoop, servers: Servers, weather: Weather) -> None:
    reached = list[tuple[str, int]]()

    async def boundary(name: str) -> None:
        reached.append((name, len(servers.journal)))

    await _acquire(Wire("h0", servers=servers, loop=loop, weather=weather, boundary=boundary))
    assert reached == [("leases.acquire.sent", 0), ("leases.acquire.heard", 1)]


async def test_equal_seeds_are_equal_weather() -> None:
    def hits(seed: int) -> list[tuple[str, float]]:
        weather = Weather(draw=random.Random(seed))
        return [(kind, weather.trip()) for _ in range(300) for kind in KINDS if weather.strikes(kind, 0.1)]

    assert hits(1) == hits(1)
    assert hits(1) != hits(2)
