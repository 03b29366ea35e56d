"""The memory backend keeps the contracts of the ports."""

from __future__ import annotations

from dataclasses import replace

import pytest
from standing_times import StandingTimes

from oneturn.backends.memory import MemoryRecords, memory_backend
from oneturn.core.backend import Capability
from oneturn.core.status import StopReason
from oneturn.core.steps import Stop
from oneturn.testing.contracts import (
    LeaseStoreContract,
    RecordStoreContract,
    ReplayCacheContract,
    SignalsContract,
    Subject,
)
from oneturn.testing.contracts.subject import start_of


@pytest.fixture
def subject() -> Subject:
    times = StandingTimes()
    return Subject(backend=memory_backend(clock=times), elapse=times.elapse)


class TestLeases(LeaseStoreContract):
    pass


class TestRecords(RecordStoreContract):
    pass


class TestSignals(SignalsContract):
    pass


class TestReplays(ReplayCacheContract):
    pass


async def test_it_declares_what_it_can_keep(subject: Subject) -> None:
    assert subject.backend.capabilities == {Capability.ATOMIC_MULTI_KEY}
    assert subject.backend.transactional is None


async def test_only_what_waits_or_runs_is_looked_through(subject: Subject) -> None:
    """However many records there are, the looks of a live service cost what is live."""
    records = subject.backend.records
    assert isinstance(records, MemoryRecords)
    running = await subject.claimed(scope="c")
    queued, dropped = await subject.enqueued(scope="c"), await subject.enqueued(scope="c")
    await subject.answered(scope="quiet")
    assert {scope: list(found.open) for (_, scope), found in records.table.open.items()} == {
        "c": [running.id, queued.id, dropped.id]
    }
    await records.stop(Stop(tenant="acme", id=dropped.id, reason=StopReason.CANCELLED))
    await subject.finished(running)
    assert list(records.table.open["acme", "c"].open) == [queued.id]
    await records.start(start_of(queued))
    await subject.finished(await subject.now(queued))
    assert records.table.open == {}


async def test_a_record_is_seen_whole_with_the_time_it_has_left(subject: Subject) -> None:
    records = subject.backend.records
    assert isinstance(records, MemoryRecords)
    record = await subject.claimed(claims={"role": "dean"}, ttl=60.0)
    subject.elapse(10.0)
    seen = records.table.seen(record)
    assert seen == replace(record, remaining=50.0)
    assert record.remaining == 60.0
