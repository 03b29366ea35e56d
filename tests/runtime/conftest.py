"""One process on the reference backend, with a clock that only the test moves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from oneturn import Settings
from oneturn.backends.memory import memory_backend
from oneturn.core.failpoint import install
from oneturn.testing.clock import ManualClock
from oneturn.testing.harness import Harness


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def harness(clock: ManualClock) -> AsyncIterator[Harness]:
    """Leak check included: nothing of a finished test is left on the loop or in the store."""
    before = asyncio.all_tasks()
    settings = Settings(records="memory://", grace=0, hard_deadline=5)
    async with Harness(memory_backend(clock=clock), clock=clock, settings=settings) as one:
        yield one
    assert asyncio.all_tasks() - {asyncio.current_task()} <= before


@pytest.fixture(autouse=True)
def _no_failpoints_left() -> Iterator[None]:
    yield
    assert install(None) is None, "a test left a failpoint hook behind"
