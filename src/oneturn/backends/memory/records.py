"""Records in memory: the reference of the port, one lock, no hidden time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

from oneturn.backends.memory.table import MemoryTable, in_line
from oneturn.backends.records import SteppedRecords
from oneturn.core import event as kinds
from oneturn.core.clock import Times
from oneturn.core.event import Logged, encode, fold
from oneturn.core.failpoint import failpoint
from oneturn.core.identity import Identity
from oneturn.core.record import Record, StoredMessage
from oneturn.core.steps import Due, Retention, Swept
from oneturn.core.store import refuse_bad_limit

T = TypeVar("T")


class MemoryRecords(SteppedRecords[MemoryTable]):
    """See `oneturn.core.store.RecordStore`."""

    def __init__(self, times: Times) -> None:
        self.table = MemoryTable(times)
        self._lock = threading.Lock()

    async def _write(
        self,
        name: str,
        step: Callable[[MemoryTable], T],
        *,
        first: bool = False,  # noqa: ARG002 - nobody waits in a line here
    ) -> T:
        await failpoint(f"records.{name}.before")
        with self._lock:
            answer = step(self.table)
        await failpoint(f"records.{name}.after")
        return answer

    async def _read(self, name: str, step: Callable[[MemoryTable], T]) -> T:
        return await self._write(name, step)

    async def due(self, *, handlers: Sequence[str], limit: int, unknown_after: float) -> Due:
        """See the port."""
        refuse_bad_limit(limit)

        def step(table: MemoryTable) -> Due:
            long_ago = table.wall - unknown_after
            startable: list[Record] = []
            lapsed: list[Record] = []
            for tenant, scope in table.open:
                name = Identity(tenant=tenant, subject="", scope=scope, key="")
                running = table.running(name)
                if running is not None and running.remaining > 0:
                    continue
                lapsed.extend([running] if running is not None else [])
                startable.extend(
                    first
                    for first in table.queued(name)[:1]
                    if first.handler in handlers or first.created_at < long_ago
                )
            startable.sort(key=lambda record: record.created_at)
            lapsed.sort(key=lambda record: record.alive_until)
            return Due(startable=tuple(startable[:limit]), lapsed=tuple(lapsed[:limit]))

        return await self._read("due", step)

    async def events(self, *, tenant: str, id: str, after: int, limit: int = 1000) -> list[Logged]:  # noqa: A002
        """See the port."""
        refuse_bad_limit(limit)

        def step(table: MemoryTable) -> list[Logged]:
            log = table.events[id] if table.read(tenant, id) else []
            return [logged for logged in log if logged.seq > after][:limit]

        return await self._read("events", step)

    async def scope_events(
        self, *, tenant: str, scope: str, after: tuple[int, int], limit: int = 1000
    ) -> list[tuple[str, int, Logged]]:
        """See the port."""
        refuse_bad_limit(limit)

        def step(table: MemoryTable) -> list[tuple[str, int, Logged]]:
            rows = [
                (record.id, record.epoch, logged)
                for record in table.of(tenant, scope)
                if record.epoch is not None
                for logged in table.events[record.id]
                if (record.epoch, logged.seq) > after
            ]
            return sorted(rows, key=lambda row: (row[1], row[2].seq))[:limit]

        return await self._read("scope_events", step)

    async def history(
        self, *, tenant: str, scope: str, before_epoch: int | None = None, without: str = "", limit: int = 50
    ) -> list[StoredMessage]:
        """See the port."""
        refuse_bad_limit(limit)

        def step(table: MemoryTable) -> list[StoredMessage]:
            answered = table.answered(tenant, scope, before_epoch=before_epoch)
            return [message for message in answered if message.turn != without][-limit:]

        return await self._read("history", step)

    async def turns(
        self, *, tenant: str, scope: str, limit: int = 100, before_sequence: int | None = None
    ) -> list[Record]:
        """See the port."""
        refuse_bad_limit(limit)

        def step(table: MemoryTable) -> list[Record]:
            records = [
                record
                for record in table.of(tenant, scope)
                if before_sequence is None or record.sequence < before_sequence
            ]
            newest = sorted(records, key=in_line)[-limit:]
            return [table.seen(record) for record in newest]

        return await self._read("turns", step)

    async def scope_epoch(self, *, tenant: str, scope: str) -> int:
        """See the port."""

        def step(table: MemoryTable) -> int:
            found = table.scopes.get((tenant, scope))
            return found.epoch if found else 0

        return await self._read("scope_epoch", step)

    async def sweep(self, retention: Retention) -> Swept:
        """See the port."""
        return await self._write("sweep", lambda table: _sweep(table, retention))

    async def erase(self, *, tenant: str, scope: str) -> int:
        """See the port."""

        def step(table: MemoryTable) -> int:
            records = [record for record in table.of(tenant, scope) if record.status.final and not record.expired]
            for record in records:
                table.empty(record)
            return len(records)

        return await self._write("erase", step)


def _sweep(table: MemoryTable, retention: Retention) -> Swept:
    events = results = tombstones = 0
    for record in list(table.records.values()):
        if record.ended_at is None:
            continue
        age = table.wall - record.ended_at
        if age >= retention.tombstones:
            table.delete(record)
            tombstones += 1
        elif age >= retention.results and not record.expired:
            table.empty(record)
            results += 1
        elif age >= retention.events and not record.expired:
            events += _fold(table, record)
    return Swept(events=events, results=results, tombstones=tombstones)


def _fold(table: MemoryTable, record: Record) -> int:
    *before, last = table.events[record.id]
    if not before or [logged.kind for logged in before] == [kinds.SNAPSHOT]:
        return 0
    folded = Logged(seq=last.seq - 1, kind=kinds.SNAPSHOT, data=encode(fold(before)))
    table.events[record.id] = [folded, last]
    return len(before) - 1
