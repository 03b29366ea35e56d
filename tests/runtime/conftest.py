"""One process on the reference backend, with a clock that only the test moves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from oneturn import Settings
from oneturn.backends.memory import memory_backend
from oneturn.core.failpoint import install
from oneturn.runtime.clock import SystemClock
from oneturn.testing.clock import ManualClock
from oneturn.testing.harness import Harness
from oneturn.wiring import connect


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def harness(clock: ManualClock) -> AsyncIterator[Harness]:
    """The reference backend and moved time. Leak check included: nothing of a finished test is left on the loop."""
    before = asyncio.all_tasks()
    settings = Settings(records="memory://", grace=0, hard_deadline=5)
    async with Harness(memory_backend(clock=clock), clock=clock, settings=settings) as one:
        yield one
    assert asyncio.all_tasks() - {asyncio.current_task()} <= before


@pytest.fixture(params=["memory", "sqlite"])
async def anywhere(request: pytest.FixtureRequest, tmp_path: Path, clock: ManualClock) -> AsyncIterator[Harness]:
    """Every embedded backend; nothing here needs time to be moved."""
    before = asyncio.all_tasks()
    settings = Settings(records=f"sqlite:///{tmp_path / 'records.db'}", grace=0, hard_deadline=5)
    if request.param == "memory":
        backend = memory_backend(clock=clock)
        async with Harness(backend, clock=clock, settings=settings) as one:
            yield one
    else:
        backend = await connect(settings.records, setting="records")
        async with Harness(backend, clock=SystemClock(), settings=settings) as one:
            yield one
    await backend.close()
    assert asyncio.all_tasks() - {asyncio.current_task()} <= before


@pytest.fixture(autouse=True)
def _no_failpoints_left() -> Iterator[None]:
    yield
    assert install(None) is None, "a test left a failpoint hook behind"
