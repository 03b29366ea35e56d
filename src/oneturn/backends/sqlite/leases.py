"""Leases on SQLite: a file of their own, so that nobody's long transaction stops a renewal."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from oneturn.backends.leases import SteppedLeases
from oneturn.backends.sqlite.lane import Lane
from oneturn.backends.sqlite.statements import statements
from oneturn.backends.sqlite.times import BootTimes
from oneturn.core.granting import Entry, Keys
from oneturn.core.store import Execute

SQL = statements("leases")

T = TypeVar("T")


class SqliteKeys:
    """See `oneturn.core.granting.Keys`. Made within a transaction that holds the file's write lock."""

    def __init__(self, run: Execute, times: BootTimes) -> None:
        self._run = run
        self._boot = times.boot()
        self.now = times.monotonic()

    def live(self, key: str) -> Entry | None:
        """See `Keys.live`; another boot's clock says nothing here, so what it granted has lapsed."""
        for owner, until, boot, token, revoked_from in self._run(SQL["get"], (key,)):
            if boot == self._boot and until > self.now:
                return Entry(owner=owner, until=until, token=token, revoked_from=revoked_from)
        return None

    def put(self, key: str, entry: Entry) -> None:
        """See `Keys.put`."""
        values = (key, entry.owner, entry.until, self._boot, entry.token, entry.revoked_from)
        self._run(SQL["put"], values)

    def drop(self, key: str) -> None:
        """See `Keys.drop`."""
        self._run(SQL["drop"], (key,))

    def next_token(self) -> int:
        """See `Keys.next_token`."""
        return int(self._run(SQL["next_token"], ())[0][0])


class SqliteLeases(SteppedLeases):
    """See `oneturn.core.lease.LeaseStore`."""

    def __init__(self, lane: Lane, times: BootTimes) -> None:
        self._lane = lane
        self._times = times

    async def _step(self, name: str, step: Callable[[Keys], T], *, first: bool = False) -> T:
        return await self._lane.run(f"leases.{name}", lambda run: step(SqliteKeys(run, self._times)), first=first)

    async def prune(self) -> None:
        """Forget what crashed holders left behind: released keys are gone, lapsed ones stay until somebody asks."""
        await self._lane.run(
            "leases.prune", lambda run: run(SQL["prune"], (self._times.boot(), self._times.monotonic()))
        )
