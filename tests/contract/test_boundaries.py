"""Every call of a port has a place before and behind it where a test may crash it, on every backend."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlite_subject import opened
from standing_times import StandingTimes

from oneturn.backends.memory import memory_backend
from oneturn.testing.contracts import BoundariesContract, Subject


class TestMemory(BoundariesContract):
    @pytest.fixture
    def subject(self) -> Subject:
        times = StandingTimes()
        return Subject(backend=memory_backend(clock=times), elapse=times.elapse)


class TestSqlite(BoundariesContract):
    @pytest.fixture
    async def subject(self, tmp_path: Path) -> AsyncIterator[Subject]:
        async with opened(tmp_path / "r.db", StandingTimes()) as one:
            yield one
