"""The contract of every boundary: a failpoint before and after each call; a lost reply is made good by asking again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from oneturn.core.failpoint import install
from oneturn.core.identity import Identity
from oneturn.core.lease import Grant
from oneturn.core.status import StopReason
from oneturn.core.steps import Abandon, Append, Appended, Claimed, Ended, Enqueued, Retention, Start, Stop, Vouch
from oneturn.testing.contracts.subject import Subject, claim_of, emitted, finish_of


class Lost(Exception):
    """The step happened; nobody was told."""


@contextmanager
def passed() -> Iterator[list[str]]:
    """The names of the failpoints that are passed meanwhile."""
    names: list[str] = []

    async def hook(name: str) -> None:
        names.append(name)

    before = install(hook)
    try:
        yield names
    finally:
        install(before)


@contextmanager
def reply_lost(name: str) -> Iterator[None]:
    """Whoever reaches that failpoint never hears what it was to be told."""

    async def hook(reached: str) -> None:
        if reached == name:
            raise Lost

    before = install(hook)
    try:
        yield
    finally:
        install(before)


class BoundariesContract:
    """Inherit it and provide a fixture `subject`."""

    async def test_each_call_of_a_port_passes_a_failpoint_before_and_after(self, subject: Subject) -> None:
        """The names are the ports', so that a fault can be placed without knowing the backend."""
        backend = subject.backend
        record, grant = await subject.claimed(), await backend.leases.acquire(["k"], owner="a", ttl=60)
        assert isinstance(grant, Grant)
        identity = Identity(tenant="acme", subject="ada", scope="c", key="none")
        mine: dict[str, Any] = {"tenant": "acme", "id": record.id}
        calls: dict[str, Callable[[], Awaitable[object]]] = {
            "leases.acquire": lambda: backend.leases.acquire(["l"], owner="a", ttl=60),
            "leases.renew": lambda: backend.leases.renew([grant]),
            "leases.release": lambda: backend.leases.release(grant),
            "leases.inspect": lambda: backend.leases.inspect("k"),
            "leases.revoke": lambda: backend.leases.revoke("k", mark_for=1),
            "records.claim": lambda: backend.records.claim(claim_of()),
            "records.start": lambda: backend.records.start(Start(tenant="acme", id="none", owner="a", ttl=1)),
            "records.append": lambda: backend.records.append(Append(**mine, epoch=9, after=0, events=())),
            "records.finish": lambda: backend.records.finish(finish_of(record, epoch=9)),
            "records.stop": lambda: backend.records.stop(Stop(**mine, reason=StopReason.CANCELLED)),
            "records.abandon": lambda: backend.records.abandon(Abandon(**mine, epoch=1, alive_until=0)),
            "records.touch": lambda: backend.records.touch([Vouch(**mine, epoch=1, ttl=1)]),
            "records.due": lambda: backend.records.due(handlers=[], limit=1, unknown_after=1),
            "records.find": lambda: backend.records.find(identity),
            "records.read": lambda: backend.records.read(**mine),
            "records.events": lambda: backend.records.events(**mine, after=0),
            "records.scope_events": lambda: backend.records.scope_events(tenant="acme", scope="c", after=(0, 0)),
            "records.position": lambda: backend.records.position(**mine),
            "records.history": lambda: backend.records.history(tenant="acme", scope="c"),
            "records.turns": lambda: backend.records.turns(tenant="acme", scope="c"),
            "records.scope_epoch": lambda: backend.records.scope_epoch(tenant="acme", scope="c"),
            "records.sweep": lambda: backend.records.sweep(Retention(results=9, tombstones=9, events=9)),
            "records.erase": lambda: backend.records.erase(tenant="acme", scope="c"),
            "replay.get": lambda: backend.replay.get(identity),
            "replay.put": lambda: backend.replay.put(record, ttl=1),
            "replay.drop": lambda: backend.replay.drop(identity),
        }
        for name, call in calls.items():
            with passed() as names:
                await call()
            assert names == [f"{name}.before", f"{name}.after"]

    @pytest.mark.parametrize("limit", [0, -1])
    async def test_a_limit_that_lets_nothing_through_is_refused_before_any_io(
        self, subject: Subject, limit: int
    ) -> None:
        """To one store 0 might mean none, to another all."""
        records = subject.backend.records
        record = await subject.answered()
        looks: tuple[Callable[[], Awaitable[object]], ...] = (
            lambda: records.due(handlers=["chat"], limit=limit, unknown_after=1),
            lambda: records.events(tenant="acme", id=record.id, after=0, limit=limit),
            lambda: records.scope_events(tenant="acme", scope="c", after=(0, 0), limit=limit),
            lambda: records.history(tenant="acme", scope="c", limit=limit),
            lambda: records.turns(tenant="acme", scope="c", limit=limit),
        )
        for look in looks:
            with passed() as names, pytest.raises(ValueError, match=f"limit.*{limit}"):
                await look()
            assert names == []

    @pytest.mark.case("L3")
    async def test_an_acquisition_whose_reply_was_lost_is_granted_to_its_owner(self, subject: Subject) -> None:
        leases = subject.backend.leases
        with reply_lost("leases.acquire.after"), pytest.raises(Lost):
            await leases.acquire(["k", "l"], owner="a", ttl=60)
        grant = await leases.acquire(["k", "l"], owner="a", ttl=60)
        assert isinstance(grant, Grant)
        with reply_lost("leases.release.after"), pytest.raises(Lost):
            await leases.release(grant)
        assert not await leases.release(grant)
        assert await leases.inspect("k") is None

    @pytest.mark.case("O6")
    async def test_a_step_of_the_records_whose_reply_was_lost_is_answered_when_asked_again(
        self, subject: Subject
    ) -> None:
        records = subject.backend.records
        claim = claim_of()
        with reply_lost("records.claim.after"), pytest.raises(Lost):
            await records.claim(claim)
        claimed = await records.claim(claim)
        assert isinstance(claimed, Claimed)
        queued = claim_of()
        with reply_lost("records.claim.after"), pytest.raises(Lost):
            await records.claim(queued)
        enqueued = await records.claim(queued)
        assert isinstance(enqueued, Enqueued)
        assert enqueued.position == 1
        append = Append(tenant="acme", id=claim.id, epoch=1, after=1, events=emitted("text"))
        with reply_lost("records.append.after"), pytest.raises(Lost):
            await records.append(append)
        assert await records.append(append) == Appended(last_seq=2)
        finish = finish_of(claimed.record, after=2)
        with reply_lost("records.finish.after"), pytest.raises(Lost):
            await records.finish(finish)
        ended = await records.finish(finish)
        assert isinstance(ended, Ended)
        assert not ended.here
        start = Start(tenant="acme", id=queued.id, owner="w", ttl=60)
        with reply_lost("records.start.after"), pytest.raises(Lost):
            await records.start(start)
        started = await records.start(start)
        assert isinstance(started, Claimed)
        assert (started.record.epoch, started.record.attempt) == (2, 1)
        stop = Stop(tenant="acme", id=queued.id, reason=StopReason.CANCELLED)
        with reply_lost("records.stop.after"), pytest.raises(Lost):
            await records.stop(stop)
        stopped = await records.stop(stop)
        assert isinstance(stopped, Ended)
        assert not stopped.here
        assert await subject.kinds(claimed.record) == ["started", "text", "succeeded"]
        assert await subject.kinds(started.record) == ["queued", "started", "stopped"]
        assert await records.scope_epoch(tenant="acme", scope="c") == 3
