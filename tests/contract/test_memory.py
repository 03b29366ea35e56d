"""The memory backend keeps the contracts of the ports."""

from __future__ import annotations

import pytest
from standing_times import StandingTimes

from oneturn.backends.memory import memory_backend
from oneturn.core.backend import Capability
from oneturn.testing.contracts import (
    LeaseStoreContract,
    RecordStoreContract,
    ReplayCacheContract,
    SignalsContract,
    Subject,
)


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
