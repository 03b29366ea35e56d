"""Records on SQLite: a writer's lane for what changes, a reader's lane for what is looked at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from oneturn.backends.records import SteppedRecords
from oneturn.backends.sqlite import retention as retain
from oneturn.backends.sqlite.lane import Lane
from oneturn.backends.sqlite.table import SQL, Table
from oneturn.backends.sqlite.times import BootTimes
from oneturn.core import transitions
from oneturn.core.event import Logged
from oneturn.core.record import Record, StoredMessage
from oneturn.core.steps import Claim, Due, Ended, Finish, Gone, Retention, Swept
from oneturn.core.store import EnqueueAnswer, Execute, refuse_bad_limit

T = TypeVar("T")


class SqliteRecords(SteppedRecords[Table]):
    """See `oneturn.core.store.RecordStore`."""

    def __init__(self, writer: Lane, reader: Lane, times: BootTimes) -> None:
        self._writer = writer
        self._reader = reader
        self._times = times

    async def _write(self, name: str, step: Callable[[Table], T], *, first: bool = False) -> T:
        return await self._writer.run(f"records.{name}", lambda run: step(Table(run, self._times)), first=first)

    async def _read(self, name: str, step: Callable[[Table], T]) -> T:
        return await self._reader.run(f"records.{name}", lambda run: step(Table(run, self._times)))

    async def due(self, *, handlers: Sequence[str], limit: int, unknown_after: float) -> Due:
        """See the port."""
        refuse_bad_limit(limit)

        def step(table: Table) -> Due:
            startable = table.startable(handlers=handlers, long_ago=table.wall - unknown_after, limit=limit)
            return Due(startable=tuple(startable), lapsed=tuple(table.lapsed(limit=limit)))

        return await self._read("due", step)

    async def events(self, *, tenant: str, id: str, after: int, limit: int = 1000) -> list[Logged]:  # noqa: A002
        """See the port."""
        refuse_bad_limit(limit)
        return await self._read("events", lambda table: table.events_of(tenant, id, after=after, limit=limit))

    async def scope_events(
        self, *, tenant: str, scope: str, after: tuple[int, int], limit: int = 1000
    ) -> list[tuple[str, int, Logged]]:
        """See the port."""
        refuse_bad_limit(limit)
        return await self._read(
            "scope_events", lambda table: table.scope_events(tenant, scope, after=after, limit=limit)
        )

    async def history(
        self, *, tenant: str, scope: str, before_epoch: int | None = None, without: str = "", limit: int = 50
    ) -> list[StoredMessage]:
        """See the port."""
        refuse_bad_limit(limit)
        below = 2**62 if before_epoch is None else before_epoch
        return await self._read(
            "history",
            lambda table: table.history(tenant, scope, before_epoch=below, without=without, limit=limit),
        )

    async def turns(
        self, *, tenant: str, scope: str, limit: int = 100, before_sequence: int | None = None
    ) -> list[Record]:
        """See the port."""
        refuse_bad_limit(limit)
        below = 2**62 if before_sequence is None else before_sequence
        return await self._read("turns", lambda table: table.many(SQL["turns"], (tenant, scope, below, limit))[::-1])

    async def scope_epoch(self, *, tenant: str, scope: str) -> int:
        """See the port."""
        rows = await self._reader.run("records.scope_epoch", lambda run: run(SQL["epoch"], (tenant, scope)))
        return int(rows[0][0]) if rows else 0

    async def sweep(self, retention: Retention) -> Swept:
        """See the port. A transaction per hundred records, so that nobody waits for a great clean-up."""
        total, more = Swept(events=0, results=0, tombstones=0), True
        while more:
            part, more = await self._writer.run(
                "records.sweep", lambda run: retain.sweep(run, Table(run, self._times), retention)
            )
            total = Swept(
                events=total.events + part.events,
                results=total.results + part.results,
                tombstones=total.tombstones + part.tombstones,
            )
        return total

    async def erase(self, *, tenant: str, scope: str) -> int:
        """See the port."""
        return await self._writer.run(
            "records.erase", lambda run: retain.erase(run, Table(run, self._times), tenant=tenant, scope=scope)
        )


class SqliteTransactional:
    """See `oneturn.core.store.TransactionalRecords`."""

    def __init__(self, times: BootTimes) -> None:
        self._times = times

    def check_in(self, run: Execute, *, tenant: str, id: str, epoch: int) -> Gone | None:  # noqa: A002
        """See the port."""
        return transitions.check(Table(run, self._times), tenant=tenant, execution=id, epoch=epoch)

    def finish_in(self, run: Execute, finish: Finish) -> Ended | Gone:
        """See the port."""
        return transitions.finish(Table(run, self._times), finish)

    def enqueue_in(self, run: Execute, claim: Claim) -> EnqueueAnswer:
        """See the port."""
        return transitions.enqueue(Table(run, self._times), claim)
