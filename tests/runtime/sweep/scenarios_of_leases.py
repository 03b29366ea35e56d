"""Leases: taken, given back, kept; and the loop that precedes a claim."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from typing import Any

from scenario import Call, scenario
from stage import Stage

from oneturn.core.errors import BackendUnavailable
from oneturn.runtime.admission import claim_of
from oneturn.runtime.keeper import Keeper, KeeperHost


@scenario("Process.acquire")
async def _(s: Stage) -> Call:
    identity, owner = s.identity("1"), s.ids.new()

    async def acquired() -> None:
        got = await s.process.acquire(identity, owner=owner, run_limit=600)
        assert isinstance(got, tuple)
        await s.process.give_back(*got)

    return acquired


@scenario("Process.acquire", "of a busy conversation")
async def _(s: Stage) -> Call:
    await s.running("1")
    identity, owner = s.identity("2"), s.ids.new()

    async def acquired() -> None:
        got = await s.process.acquire(identity, owner=owner, run_limit=600)
        assert isinstance(got, tuple)
        await s.process.give_back(*got)

    return acquired


@scenario("Process.give_back")
async def _(s: Stage) -> Call:
    lease, kept = await s.leased("1")
    return lambda: s.process.give_back(lease, kept)


@scenario("Process.release")
async def _(s: Stage) -> Call:
    lease, kept = await s.leased("1")
    s.process.keeper.remove(kept)
    return lambda: s.process.release(lease)


@scenario("Process.request_key_held")
async def _(s: Stage) -> Call:
    record = await s.ended("1")
    return lambda: s.process.request_key_held(record)


@scenario("Process.precede", "over a dead execution", dies=True)
async def _(s: Stage) -> Call:
    await s.orphan("1")
    await asyncio.sleep(s.settings.ttl + 0.5)
    process = s.process
    claim = claim_of(s.asked("quick", "2"), process=process, owner=s.ids.new())
    return lambda: process.precede(lambda dead, alive: process.records.claim(replace(claim, dead=dead, alive=alive)))


@scenario("Process.persistently")
async def _(s: Stage) -> Call:
    tries = iter(range(3))

    async def step() -> int:
        await asyncio.sleep(0)
        if (number := next(tries)) < 2:
            raise BackendUnavailable("not yet")
        return number

    return lambda: s.process.persistently(step, bound=5)


@scenario("Keeper.run", endless=20)
async def _(s: Stage) -> Call:
    process = s.process
    lease, kept = await s.leased("1")
    process.keeper.remove(kept)
    keeper = Keeper(
        leases=process.leases, records=process.records, clock=s.time, renew_every=0.2, check_every=0.1, margin=2
    )
    keeper.add(lease)

    s.mine.add(lease.grant.owner)
    s.put_away.append(lambda: process.release(lease))
    return lambda: keeper.run(lambda: None)


@scenario("KeeperHost.start", "on the loop")
async def _(s: Stage) -> Call:
    host = KeeperHost(_keeper(s), on="loop")

    async def started() -> None:
        await host.start(s.process.supervisor.spawn)
        await host.stop()

    return started


@scenario("KeeperHost.start", "on a thread")
async def _(s: Stage) -> Call:
    host = KeeperHost(_keeper(s), on="thread")
    s.loop.patience = 0.05

    async def started() -> None:
        await host.start(s.process.supervisor.spawn)
        await host.stop()

    s.afterwards.append(_no_keeper_thread)
    return started


@scenario("KeeperHost.stop", "on a thread")
async def _(s: Stage) -> Call:
    host = KeeperHost(_keeper(s), on="thread")
    s.loop.patience = 0.05
    await host.start(s.process.supervisor.spawn)
    s.afterwards.append(_no_keeper_thread)

    async def again(_: Any) -> None:
        await host.stop()

    s.afterwards.append(again)
    return host.stop


@scenario("KeeperHost.stop", "on the loop")
async def _(s: Stage) -> Call:
    host = KeeperHost(_keeper(s), on="loop")
    await host.start(s.process.supervisor.spawn)
    return host.stop


def _keeper(s: Stage) -> Keeper:
    process = s.process
    return Keeper(leases=process.leases, records=process.records, clock=s.time, renew_every=20, check_every=5, margin=2)


async def _no_keeper_thread(_: Any) -> None:
    for thread in threading.enumerate():
        if thread.name == "oneturn-keeper":
            thread.join(2)
            assert not thread.is_alive(), "the keeper's thread outlived its host"
