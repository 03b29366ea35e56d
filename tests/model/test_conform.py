"""Conformance: what real stores do in random sequences of steps is what the model does, and what a mutant does is not."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any
from unittest.mock import patch

import pytest

from oneturn.backends.memory import memory_backend
from oneturn.core import granting, transitions
from oneturn.core.event import stop_body
from oneturn.core.granting import Keys
from oneturn.core.lease import Grant, Renewal
from oneturn.core.record import Record
from oneturn.core.rows import Rows
from oneturn.core.status import Status, StopReason
from oneturn.core.steps import Abandon, Appended, Busy, Claimed, Ended, Gone, Requeued, Retention, Stop, Vouch
from oneturn.testing.contracts.subject import append_of, claim_of, emitted, finish_of, start_of
from oneturn.testing.evidence import Step
from oneturn.testing.model.conform import conform
from oneturn.testing.simulation.zoo import ZOO

TTL = 60.0


@dataclass(slots=True)
class Times:
    """A store's clock that stands until it is moved."""

    now: float = 1000.0

    def monotonic(self) -> float:
        return self.now

    def wall(self) -> float:
        return self.now


@dataclass
class Driver:
    """Takes random steps on the reference backend and writes down what they gave."""

    draw: random.Random
    times: Times = field(default_factory=Times)
    steps: list[Step] = field(default_factory=list)
    records: dict[str, Record] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.backend: Any = memory_backend(clock=self.times)

    async def run(self, count: int) -> list[Step]:
        kinds: list[Callable[[], Any]] = [self.claim, self.on_record, self.on_record, self.lease, self.elapse]
        for _ in range(count):
            await self.draw.choice(kinds)()
        return self.steps

    async def take(self, port: Any, method: str, asked: Any = None, keys: tuple[str, ...] = (), **named: Any) -> Any:
        before = await self.holders(keys)
        call = getattr(getattr(self.backend, port), method)
        answer = await (call(**named) if asked is None else call(asked, **named))
        self.steps.append(
            Step(
                seq=len(self.steps),
                time=self.times.now,
                host="h",
                port=port,
                method=method,
                asked=asked,
                named=named,
                answer=answer,
                before=before,
                after=await self.holders(keys),
            )
        )
        for one in answer if isinstance(answer, list) else [answer]:
            record = one if isinstance(one, Record) else getattr(one, "record", None)
            if isinstance(record, Record) and record.identity.scope:
                self.records[record.id] = record
        return answer

    async def holders(self, keys: tuple[str, ...]) -> dict[str, str]:
        found = [await self.backend.leases.inspect(key) for key in keys]
        return {holding.key: holding.owner for holding in found if holding is not None}

    async def elapse(self) -> None:
        self.times.now += self.draw.choice((0.0, 1.0, TTL / 2, TTL))

    async def claim(self) -> None:
        draw, known = self.draw, [*self.records, "nobody"]
        claim = claim_of(
            tenant=draw.choice(("acme", "beta")),
            scope=draw.choice("cd"),
            key=f"k{draw.randrange(400)}",
            owner=f"o{draw.randrange(5)}",
            ttl=TTL,
            on_busy=draw.choice(("enqueue", "enqueue", "reject")),
            queue_limit=draw.randint(1, 3),
            recovery=draw.choice(("abandon", "rerun")),
            dead=draw.choice((None, draw.choice(known[-8:]))),
            alive=draw.choice((None, None, draw.choice(known[-8:]))),
            regenerate=draw.choice((None, None, None, draw.choice(known[-8:]))),
        )
        await self.take("records", "claim", claim)
        if draw.random() < 0.2:
            await self.take("records", "claim", claim)

    async def on_record(self) -> None:
        if not self.records:
            return
        draw, open_ones = self.draw, [record for record in self.records.values() if not record.status.final]
        record = draw.choice(open_ones if open_ones and draw.random() < 0.8 else list(self.records.values()))
        epoch = (record.epoch or 0) + draw.choice((0, 0, 0, 0, -1, 1))
        after = max(record.last_seq - draw.choice((0, 0, 1, 2)), 0)
        tenant, name = record.identity.tenant, record.id
        owner, others = f"o{draw.randrange(5)}", (None, draw.choice(list(self.records)))
        kind, asked = draw.choice(
            (
                ("start", start_of(record, owner=owner, ttl=TTL, dead=draw.choice(others), alive=draw.choice(others))),
                ("append", append_of(record, "text", "step", epoch=epoch, after=after)),
                ("finish", self.finish(record, epoch=epoch, after=after)),
                ("finish", self.finish(record, epoch=epoch, after=after)),
                ("stop", Stop(tenant=tenant, id=name, reason=StopReason.CANCELLED)),
                ("abandon", Abandon(tenant=tenant, id=name, epoch=epoch, alive_until=record.alive_until)),
                ("abandon", Abandon(tenant=tenant, id=name, epoch=epoch, alive_until=record.alive_until)),
                ("touch", [Vouch(tenant=tenant, id=name, epoch=epoch, ttl=TTL)] * draw.randint(1, 2)),
                ("stop", Stop(tenant="gamma", id=name, reason=StopReason.CANCELLED)),
            )
        )
        await self.take("records", kind, asked)
        if draw.random() < 0.3:
            await self.take("records", kind, asked)
        found = await self.backend.records.read(tenant=tenant, id=name)
        if found is not None and draw.random() < 0.8:
            self.records[name] = found

    def finish(self, record: Record, **changes: Any) -> Any:
        status = self.draw.choice((Status.SUCCEEDED, Status.SUCCEEDED, Status.FAILED, Status.STOPPED))
        if status is Status.STOPPED:
            changes |= {"body": stop_body(StopReason.CANCELLED), "reason": StopReason.CANCELLED}
        return finish_of(record, status=status, events=emitted("text")[: self.draw.randrange(2)], **changes)

    async def lease(self) -> None:
        draw = self.draw
        keys = tuple(draw.sample("pqrs", draw.randint(1, 2)))
        owner = draw.choice("xyz")
        grant = Grant(keys=keys, owner=owner, ttl=TTL, fencing_token=0)
        match draw.choice(("acquire", "acquire", "renew", "release", "revoke")):
            case "acquire":
                await self.take("leases", "acquire", keys, keys, owner=owner, ttl=TTL)
            case "renew":
                other = replace(grant, keys=tuple(draw.sample("pqrs", 2)), owner=draw.choice("xyz"))
                await self.take("leases", "renew", [grant, other], tuple(dict.fromkeys((*keys, *other.keys))))
            case "release":
                await self.take("leases", "release", grant, keys)
            case _:
                await self.take("leases", "revoke", keys[0], keys[:1], mark_for=TTL / 2)


async def driven(seed: int, count: int = 400) -> list[Step]:
    return await Driver(random.Random(seed)).run(count)


async def test_the_reference_backend_does_what_the_model_does() -> None:
    steps = [await driven(seed) for seed in range(20)]
    assert [conform(one) for one in steps] == [[]] * len(steps)
    flat = [step for one in steps for step in one]
    assert len(flat) > 5_000
    answers = {type(step.answer).__name__ for step in flat}
    assert answers >= {"Claimed", "Enqueued", "Existing", "Busy", "Lapsed", "Full", "NotRegenerable"}
    assert answers >= {"Gone", "Appended", "Ended", "Requeued", "Grant", "Held", "bool", "list"}
    assert {answer for step in flat if step.method == "renew" for answer in step.answer} == set(Renewal)


async def test_what_retention_and_erasure_took_is_followed() -> None:
    driver = Driver(random.Random(7))
    for _ in range(30):
        await driver.run(30)
        await driver.take("records", "erase", tenant="acme", scope="c")
        await driver.take("records", "sweep", Retention(results=TTL * 2, tombstones=TTL * 4, events=TTL))
    assert conform(driver.steps) == []
    assert sum(step.answer.tombstones for step in driver.steps if step.method == "sweep") > 10


async def test_a_jump_of_the_clock_relaxes_what_depends_on_time_alone() -> None:
    driver = Driver(random.Random(3))
    await driver.take("records", "claim", claim_of(ttl=TTL))
    await driver.take("records", "claim", claim_of(ttl=TTL, on_busy="reject"))
    await driver.take("records", "append", append_of(next(iter(driver.records.values())), "text"))
    assert [type(step.answer) for step in driver.steps] == [Claimed, Busy, Appended]
    jumped = [replace(step, time=step.time + 1e6 * step.seq) for step in driver.steps]
    assert ["lapsed" in found.what for found in conform(jumped)] == [True]
    assert conform(jumped, clock_may_jump=True) == []
    jumped[2] = replace(jumped[2], answer=Appended(last_seq=99))
    assert ["appended 99" in found.what for found in conform(jumped, clock_may_jump=True)] == [True]


async def test_keys_that_vanish_are_a_violation_unless_they_may() -> None:
    driver = Driver(random.Random(1))
    await driver.take("leases", "acquire", ("p",), ("p",), owner="x", ttl=TTL)
    driver.backend.leases._keys._entries.clear()
    await driver.take("leases", "acquire", ("p",), ("p",), owner="y", ttl=TTL)
    assert ["before its time" in found.what for found in conform(driver.steps)] == [True]
    assert conform(driver.steps, keys_may_vanish=True) == []


async def test_a_mark_that_vanishes_or_comes_back_is_a_violation_unless_it_may() -> None:
    """Each mark by itself; and whoever takes a key whose mark is gone holds it for as long as ever."""
    driver = Driver(random.Random(1))
    entries, keys = driver.backend.leases._keys._entries, ("p", "q")
    grant = await driver.take("leases", "acquire", keys, keys, owner="x", ttl=TTL)
    for key in keys:
        await driver.take("leases", "revoke", key, (key,), mark_for=TTL)
    replica = dict(entries)
    del entries["p"]
    driver.times.now += 1
    assert await driver.take("leases", "renew", [grant], keys) == [Renewal.REVOKED]
    entries.clear()
    assert isinstance(await driver.take("leases", "acquire", keys, keys, owner="x", ttl=TTL), Grant)
    driver.times.now += 1
    assert await driver.take("leases", "release", grant, keys)
    entries.update(replica)
    assert await driver.take("leases", "renew", [grant], keys) == [Renewal.REVOKED]
    assert conform(driver.steps) != []
    assert conform(driver.steps, keys_may_vanish=True) == []
    driver.times.now += TTL
    late = replace(driver.steps[-1], time=driver.times.now)
    assert ["absent" in found.what for found in conform([*driver.steps, late], keys_may_vanish=True)] == [True]


async def test_the_clock_of_the_steps_may_be_another_than_the_stores() -> None:
    """Vouchers are compared by their distance, so the two clocks need not begin alike; slack covers what a call takes."""
    steps = [replace(step, time=step.time - 500.0 + 0.01 * (step.seq % 2)) for step in await driven(5)]
    records = [step for step in steps if step.port == "records"]
    assert conform(records, slack=0.05) == []


def _partial_renew(keys: Keys, grant: Grant) -> Renewal:
    ours = [name for name in grant.keys if (entry := keys.live(name)) is not None and entry.owner == grant.owner]
    for name in ours:
        keys.put(name, granting.Entry(owner=grant.owner, until=keys.now + grant.ttl, token=1))
    return Renewal.KEPT if ours else Renewal.ABSENT


def _release_anybody(keys: Keys, grant: Grant) -> bool:
    for name in grant.keys:
        if keys.live(name) is not None:
            keys.drop(name)
    return True


_real_stop, _real_touch = transitions.stop, transitions.touch


class _Unraised:
    """Rows whose epoch nobody can raise."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def raise_epoch(self, identity: Any) -> int:
        return 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rows, name)


def _touch_anything(rows: Rows, asked: Vouch) -> None:
    _real_touch(rows, asked)


def _abandon_the_living(rows: Rows, asked: Abandon) -> Any:
    record = rows.read(asked.tenant, asked.id)
    if record is None or record.status is not Status.RUNNING or record.epoch != asked.epoch:
        return Gone(record=record)
    after = transitions._end_dead(rows, record)
    return Ended(record=after) if after.status.final else Requeued(record=after)


def _stop_without_epoch(rows: Any, asked: Stop) -> Any:
    return _real_stop(_Unraised(rows), asked)


IN_STORES = {
    "a write without the fence",
    "events accepted after the terminal one",
    "a repeated append logs twice",
    "claim without looking the key up",
    "a start after a stop",
    "the queue starts its newest first",
    "a rerun of what declared none",
    "the terminal event is missing",
}
MUTANTS: dict[str, Callable[[], AbstractContextManager[object]]] = {
    **{bug.name: bug.plant for bug in ZOO if bug.name in IN_STORES},
    "a stop that leaves the epoch": lambda: patch.object(transitions, "stop", _stop_without_epoch),
    "a voucher for anything": lambda: patch.object(transitions, "touch", _touch_anything),
    "an abandoned one that lives": lambda: patch.object(transitions, "abandon", _abandon_the_living),
    "a partial renewal": lambda: patch.object(granting, "renew", _partial_renew),
    "a release of anybody's key": lambda: patch.object(granting, "release", _release_anybody),
}


@pytest.mark.parametrize("name", [*sorted(IN_STORES), *(name for name in MUTANTS if name not in IN_STORES)])
async def test_a_mutant_does_not_conform(name: str) -> None:
    with MUTANTS[name]():
        found = [violation for seed in range(5) for violation in conform(await driven(seed))]
    assert found, name
