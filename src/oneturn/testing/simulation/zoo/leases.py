"""Planted bugs of leases: keys, renewals, deadlines, and what is given back."""
# ruff: noqa: ARG001, SLF001 - a mutant sits inside of what it mutates, and leaves out what it should have looked at

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from oneturn.core import granting
from oneturn.core.granting import Entry, Keys
from oneturn.core.lease import Grant, Held, Renewal
from oneturn.core.status import StopReason
from oneturn.runtime.engine import Engine
from oneturn.runtime.execution import Execution
from oneturn.runtime.keeper import Keeper
from oneturn.runtime.lease import Lease, LeaseState
from oneturn.runtime.process import Process
from oneturn.testing.simulation.zoo.bug import Bug, patched

# -- deadlines --------------------------------------------------------------------------------------------------------


def _stopping_without_deadline(self: Lease) -> StopReason | None:
    published = self._published
    return published.stop or (
        StopReason.LEASE_LOST if published.state in (LeaseState.LOST, LeaseState.RELEASED) else None
    )


async def _watch_nothing(self: Keeper) -> float | None:
    return 1.0


# -- keys -------------------------------------------------------------------------------------------------------------


class _OneKey:
    """Keys of which only one can be changed."""

    def __init__(self, keys: Any, name: str) -> None:
        self._keys = keys
        self._name = name

    def put(self, key: str, entry: Entry) -> None:
        if key == self._name:
            self._keys.put(key, entry)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._keys, name)


def _renew_the_first(keys: Keys, grant: Grant) -> Renewal:
    return _real_renew(cast("Keys", _OneKey(keys, grant.keys[0])), grant)


def _renew_what_is_gone(keys: Keys, grant: Grant) -> Renewal:
    for name in grant.keys:
        entry = keys.live(name)
        if entry is not None and entry.owner not in ("", grant.owner):
            return Renewal.FOREIGN
        keys.put(name, Entry(owner=grant.owner, until=keys.now + grant.ttl, token=grant.fencing_token))
    return Renewal.KEPT


def _release_anybodys(keys: Keys, grant: Grant) -> bool:
    held = [name for name in grant.keys if keys.live(name) is not None]
    for name in held:
        keys.drop(name)
    return len(held) == len(grant.keys)


def _acquire_one_by_one(keys: Keys, names: Sequence[str], *, owner: str, ttl: float) -> Grant | Held:
    token = keys.next_token()
    for name in names:
        entry = keys.live(name)
        if entry is not None and (entry.revoked_from == owner or entry.owner not in ("", owner)):
            return Held(key=name, remaining=entry.until - keys.now)
        keys.put(name, Entry(owner=owner, until=keys.now + ttl, token=token))
    return Grant(keys=tuple(names), owner=owner, ttl=ttl, fencing_token=token)


def _acquire_in_spite_of_a_mark(keys: Keys, names: Sequence[str], *, owner: str, ttl: float) -> Grant | Held:
    for name in names:
        entry = keys.live(name)
        if entry is not None and entry.revoked_from == owner:
            keys.drop(name)
    return _real_acquire(keys, names, owner=owner, ttl=ttl)


def _renew_in_spite_of_a_mark(keys: Keys, grant: Grant) -> Renewal:
    marked = [
        name for name in grant.keys if (entry := keys.live(name)) is not None and entry.revoked_from == grant.owner
    ]
    for name in marked:
        keys.drop(name)
    return _real_renew(keys, grant)


_real_acquire, _real_renew = granting.acquire, granting.renew


# -- giving back ------------------------------------------------------------------------------------------------------


async def _kept_lease(self: Process, lease: Lease) -> None:
    lease.released()


async def _admit_in_the_request(self: Engine, asked: Any) -> Any:
    return await self._admission.admit(asked)


async def _acquire_and_leak(self: Process, keys: tuple[str, ...], *, owner: str, run_limit: float) -> Any:
    taking = self.supervisor.spawn(
        self._take(keys, owner=owner, run_limit=run_limit, left=asyncio.Event()), name=f"acquire {owner}", judged=True
    )
    return await asyncio.shield(taking)


async def _acquire_and_release_at_once(self: Process, keys: tuple[str, ...], *, owner: str, run_limit: float) -> Any:
    try:
        return await self._take(keys, owner=owner, run_limit=run_limit, left=asyncio.Event())
    except asyncio.CancelledError:
        grant = Grant(keys=keys, owner=owner, ttl=self.settings.ttl, fencing_token=0)
        self.supervisor.spawn(self.leases.release(grant), name=f"release {owner}", judged=True)
        raise


# -- the right to begin -----------------------------------------------------------------------------------------------

_real_leased, _real_work = Process.leased, Execution._start


def _leased_without_limit(self: Process, grant: Grant, *, asked_at: float, limit_at: float | None) -> Lease:
    return _real_leased(self, grant, asked_at=asked_at, limit_at=None)


class _Unasked:
    """A lease that is not asked by who begins."""

    def __init__(self, lease: Lease) -> None:
        self._lease = lease

    def check(self) -> None:
        return

    def __getattr__(self, name: str) -> Any:
        return getattr(self._lease, name)


def _start_whatever_was_claimed(self: Execution, turn: Any, handler: Any) -> Any:
    real_function = handler.function

    def function(turn: Any) -> Any:
        self.lease = real_lease
        return real_function(turn)

    real_lease = self.lease
    self.lease = cast("Lease", _Unasked(real_lease))
    return _real_work(self, turn, replace(handler, function=function))


BUGS: tuple[Bug, ...] = (
    Bug(
        name="a lease without a local deadline",
        breaks=("I10",),
        plant=patched((Lease, "stopping", property(_stopping_without_deadline)), (Keeper, "_watch", _watch_nothing)),
    ),
    Bug(
        name="only the first key is renewed",
        breaks=("I10", "model"),
        plant=patched((granting, "renew", _renew_the_first)),
    ),
    Bug(
        name="a renewal takes what has lapsed",
        breaks=("I10",),
        plant=patched((granting, "renew", _renew_what_is_gone)),
    ),
    Bug(
        name="a release of somebody else's keys",
        breaks=("I10",),
        plant=patched((granting, "release", _release_anybodys)),
    ),
    Bug(
        name="a refused acquire keeps some keys",
        breaks=("I10",),
        plant=patched((granting, "acquire", _acquire_one_by_one)),
    ),
    Bug(
        name="a revoked owner takes its keys again",
        breaks=("I10", "model"),
        plant=patched(
            (granting, "acquire", _acquire_in_spite_of_a_mark), (granting, "renew", _renew_in_spite_of_a_mark)
        ),
    ),
    Bug(name="a lease is never released", breaks=("I14",), plant=patched((Process, "release", _kept_lease))),
    Bug(
        name="a cancelled acquire leaks its lease",
        breaks=("I14", "I16"),
        plant=patched((Engine, "admit", _admit_in_the_request), (Process, "_acquire", _acquire_and_leak)),
    ),
    Bug(
        name="a release overtakes the acquire that it undoes",
        breaks=("I14", "I16"),
        plant=patched((Engine, "admit", _admit_in_the_request), (Process, "_acquire", _acquire_and_release_at_once)),
    ),
    Bug(
        name="a run without its limit",
        breaks=("I3", "I14", "I15"),
        plant=patched((Process, "leased", _leased_without_limit)),
    ),
    Bug(
        name="work begins without asking",
        breaks=("I2",),
        plant=patched((Execution, "_start", _start_whatever_was_claimed)),
    ),
)
