"""The memory backend keeps the contracts of the ports."""

from __future__ import annotations

import pytest
from standing_times import StandingTimes

from oneturn.backends.memory import memory_backend
from oneturn.testing.contracts import (
    LeaseStoreContract,
    RecordStoreContract,
    ReplayCacheContract,
    RetentionContract,
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


class TestRetention(RetentionContract):
    pass


class TestSignals(SignalsContract):
    pass


class TestReplays(ReplayCacheContract):
    pass
