"""A simulated process: what its death, its end, its pauses and its blocked loop leave behind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from functools import partial
from typing import Any

import pytest
from pydantic import BaseModel

from oneturn.core.identity import Principal
from oneturn.core.record import Record
from oneturn.core.status import Status
from oneturn.gate import Gate, Handle
from oneturn.runtime.turn import Turn
from oneturn.testing.finals import finals_of
from oneturn.testing.simulation.host import Dropped, Host
from oneturn.testing.simulation.loop import SimulatedLoop
from oneturn.testing.simulation.threads import sleep
from oneturn.testing.simulation.world import World

LOOPS = {"simulated": partial(SimulatedLoop, 1)}
HOUR = 3600.0


class Ask(BaseModel):
    """How many seconds to work for."""

    seconds: int


class Site:
    """Two processes in calm weather, whose handlers write down each second of their work."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.ticks: list[tuple[str, float]] = []
        world.weather.calm()
        world.declare = self._declare

    def _declare(self, gate: Gate) -> None:
        @gate.turn("works", run_limit=HOUR)
        async def works(turn: Turn[Ask]) -> str:
            for _ in range(turn.payload.seconds):
                await asyncio.sleep(1)
                self._tick()
            return "done"

        @gate.turn("works in a thread", run_limit=HOUR)
        def works_in_a_thread(turn: Turn[Ask]) -> str:
            for _ in range(turn.payload.seconds):
                sleep(1)
                turn.check()
                self._tick()
            return "done"

    def _tick(self) -> None:
        self.ticks.append((self.world.loop.host(), self.world.loop.time()))

    async def ask(self, host: Host, *, seconds: int, handler: str = "works") -> str:
        """One question, asked within a process; returns with the answer."""
        handle: Handle[Any] = await host.gate.ask(
            self.world.handlers(host)[handler],
            Ask(seconds=seconds),
            conversation="c",
            key="k",
            principal=Principal(tenant="acme", subject="ada"),
        )
        answer: str = await handle.result()
        return answer

    def asked(self, host: Host, *, seconds: int, patience: float = HOUR, handler: str = "works") -> asyncio.Task[str]:
        """The same, as a client outside of all processes."""
        return self.client(host.request(self.ask(host, seconds=seconds, handler=handler), patience=patience))

    def client(self, work: Coroutine[Any, Any, str]) -> asyncio.Task[str]:
        return self.world.loop.create_task(work)

    @property
    def record(self) -> Record:
        (final,) = self.world.servers.look(finals_of(self.world.servers.records, self.world.servers.scopes)).values()
        return final.record


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SimulatedLoop)
    world = World(loop, seed=1, hosts=2)
    made = Site(world)
    await world.open()
    yield made
    await world.close()


@pytest.fixture
def host(site: Site) -> Host:
    return site.world.hosts[0]


def _tasks_of(begin: set[asyncio.Task[Any]]) -> list[str]:
    return sorted(task.get_name() for task in asyncio.all_tasks() - begin)


async def _dropped(client: asyncio.Task[str]) -> bool:
    try:
        await client
    except Dropped:
        return True
    return False


@pytest.mark.parametrize("handler", ["works", "works in a thread"])
async def test_a_killed_process_takes_not_one_more_step(site: Site, host: Host, handler: str) -> None:
    client = site.asked(host, seconds=1000, handler=handler)
    await asyncio.sleep(5.5)
    assert len(site.ticks) >= 4
    ticks, decisions = len(site.ticks), list(site.world.evidence.decisions)
    (name,) = {decision.process for decision in decisions if decision.execution == site.record.id}
    await host.kill()
    assert await _dropped(client)
    assert host.threads_left() == []
    await asyncio.sleep(1)  # what it had sent has arrived
    assert not site.record.status.final, "nobody has told the store"
    assert site.world.servers.holders() != {}, "nothing was given back"
    sent = [step for step in site.world.servers.journal if step.host == host.name]
    await asyncio.sleep(100)
    assert len(site.ticks) == ticks
    assert [step for step in site.world.servers.journal if step.host == host.name] == sent
    later = site.world.evidence.decisions[len(decisions) :]
    assert later, "the other process goes on deciding"
    assert name not in {decision.process for decision in later}
    assert site.record.status is Status.ABANDONED, "the other process has found it dead"
    assert site.world.servers.holders() == {}


async def test_nothing_of_a_killed_process_remains(site: Site) -> None:
    before = asyncio.all_tasks()
    host = await site.world._start()
    client = site.asked(host, seconds=1000)
    await asyncio.sleep(5.5)
    assert len(_tasks_of(before)) > 5, "its keeper, its sweeper, its request, its work"
    await host.kill()
    assert await _dropped(client)
    await asyncio.sleep(1)
    assert _tasks_of(before) == []
    assert host.threads_left() == []
    await host.kill()  # once more: nothing


async def test_a_process_may_be_killed_while_it_is_paused(site: Site, host: Host) -> None:
    client = site.asked(host, seconds=1000)
    await asyncio.sleep(5.5)
    site.world.loop.pause(*host.lanes)
    ticks = len(site.ticks)
    await host.kill()
    assert await _dropped(client)
    await asyncio.sleep(100)
    assert len(site.ticks) == ticks


@pytest.mark.parametrize("handler", ["works", "works in a thread"])
async def test_a_drained_process_leaves_nothing(site: Site, handler: str) -> None:
    before = asyncio.all_tasks()
    host = await site.world._start()
    client = site.asked(host, seconds=1000, handler=handler)
    await asyncio.sleep(5.5)
    began = site.world.loop.time()
    assert await host.drain() == []
    assert site.world.loop.time() - began <= site.world.settings.hard_deadline + 1
    assert site.record.status is Status.STOPPED, "by the process itself, not by somebody who found it dead"
    assert site.world.servers.holders() == {}
    await asyncio.wait([client])
    assert client.exception() is not None
    await asyncio.sleep(1)
    assert (_tasks_of(before), host.threads_left()) == ([], [])
    assert await host.drain() == []


async def test_a_drain_lets_work_finish_within_its_grace(site: Site, host: Host) -> None:
    client = site.asked(host, seconds=3)
    await asyncio.sleep(2.5)
    assert await host.drain() == []
    assert site.record.status is Status.SUCCEEDED
    await asyncio.wait([client])


async def test_a_request_to_a_dead_process_is_dropped(site: Site, host: Host) -> None:
    await host.kill()
    with pytest.raises(Dropped):
        await host.request(site.ask(host, seconds=1), patience=HOUR)
    assert site.world.servers.scopes == {}


async def test_a_client_that_has_waited_long_enough_leaves(site: Site, host: Host) -> None:
    """Its request ends; the work, which is the process's, goes on."""

    async def wait() -> None:
        await site.world.loop.create_future()

    before, began = asyncio.all_tasks(), site.world.loop.time()
    with pytest.raises(Dropped):
        await host.request(wait(), patience=5)
    assert site.world.loop.time() - began == 5
    await asyncio.sleep(0.1)
    assert _tasks_of(before) == []
    with pytest.raises(Dropped):
        await host.request(site.ask(host, seconds=10), patience=5)
    await asyncio.sleep(20)
    assert site.record.status is Status.SUCCEEDED
    assert _tasks_of(before) == []


async def test_what_a_request_answers_or_raises_its_client_gets(site: Site, host: Host) -> None:
    async def fail() -> str:
        raise KeyError("k")

    assert await site.asked(host, seconds=1) == "done"
    with pytest.raises(KeyError):
        await host.request(fail(), patience=HOUR)


async def test_a_paused_process_answers_nobody_until_it_is_resumed(site: Site, host: Host) -> None:
    loop = site.world.loop
    loop.pause(*host.lanes)
    with pytest.raises(Dropped):
        await host.request(site.ask(host, seconds=1), patience=30)
    patient = site.asked(host, seconds=1)
    await asyncio.sleep(30)
    assert not patient.done()
    assert site.world.servers.scopes == {}
    loop.resume(*host.lanes)
    assert await patient == "done"


async def _frozen(site: Site, lanes: Callable[[Host], tuple[str, ...]], host: Host) -> list[bool]:
    """Freeze parts of a process that works, for three TTLs; answers whether its keys were held, second by second."""
    client = site.asked(host, seconds=20)
    await asyncio.sleep(5.5)
    ticks, held = len(site.ticks), list[bool]()
    site.world.loop.pause(*lanes(host))
    for _ in range(int(3 * site.world.settings.ttl)):
        await asyncio.sleep(1)
        held.append(bool(site.world.servers.holders()))
    assert len(site.ticks) == ticks, "the work stands still"
    site.world.loop.resume(*lanes(host))
    await asyncio.wait([client])
    return held


async def test_a_blocked_loop_keeps_its_lease_since_its_keeper_has_a_thread(site: Site, host: Host) -> None:
    """Blocked for three times the TTL: the lease lives, and the same attempt finishes."""
    held = await _frozen(site, lambda host: host.lanes[:1], host)
    assert held == [True] * 30
    assert (site.record.status, site.record.epoch, site.record.attempt) == (Status.SUCCEEDED, 1, 1)
    assert len(site.ticks) == 20
    renewals = [step for step in site.world.servers.journal if step.method == "renew" and step.host == host.name]
    assert len(renewals) > 30 / site.world.settings.renew_every


async def test_a_paused_process_loses_its_lease(site: Site, host: Host) -> None:
    """The contrast: without a keeper the TTL runs out, and somebody else says how it ended."""
    held = await _frozen(site, lambda host: host.lanes, host)
    ttl = int(site.world.settings.ttl)
    assert held[0]
    assert held[ttl:] == [False] * (len(held) - ttl)
    assert site.record.status is Status.ABANDONED
    assert len(site.ticks) < 20
