"""The SQLite backend: durable, for several processes of one host; the embedded default."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

from oneturn.backends.memory.replay import MemoryReplays
from oneturn.backends.sqlite.database import Synchronous, locate, migrate, migrations
from oneturn.backends.sqlite.database import connect as open_file
from oneturn.backends.sqlite.lane import Lane
from oneturn.backends.sqlite.leases import SqliteLeases
from oneturn.backends.sqlite.records import SqliteRecords, SqliteTransactional
from oneturn.backends.sqlite.signals import SqliteSignals
from oneturn.backends.sqlite.times import BootTimes, SystemBootTimes
from oneturn.core.backend import Backend, Capability
from oneturn.core.ids import SystemIds

__all__ = ["connect", "migrations", "sqlite_backend"]


async def connect(url: str) -> Backend:
    """Open `sqlite:///file.db` (a `+driver` and a query are ignored), migrating it if need be."""
    return await sqlite_backend(locate(url).records, times=SystemBootTimes())


async def sqlite_backend(path: Path, *, times: BootTimes) -> Backend:
    """Open the two files of a backend: three threads with a connection each, and one that listens."""
    beside = path.with_name(f"{path.name}-leases")

    def opener(file: Path, schema: str, synchronous: Synchronous) -> Callable[[], sqlite3.Connection]:
        def opened() -> sqlite3.Connection:
            connection = open_file(file, synchronous=synchronous)
            try:
                migrate(connection, schema=schema)
            except BaseException:
                connection.close()
                raise
            return connection

        return opened

    writer = Lane(opener(path, "records", "FULL"), name="records", writes=True)
    reader = Lane(opener(path, "records", "FULL"), name="reads", writes=False)
    lane = Lane(opener(beside, "leases", "NORMAL"), name="leases", writes=True)
    leases = SqliteLeases(lane, times)
    signals = SqliteSignals(lane, opener(beside, "leases", "NORMAL"), times, process=SystemIds().new())
    parts: tuple[tuple[Callable[[], Awaitable[None]], Callable[[], Awaitable[None]]], ...] = (
        (writer.open, writer.close),
        (reader.open, reader.close),
        (lane.open, lane.close),
        (signals.open, signals.close),
    )
    async with AsyncExitStack() as opening:
        for start, end in parts:
            await start()
            opening.push_async_callback(end)
        await leases.prune()
        closing = opening.pop_all()
    return Backend(
        name="sqlite",
        capabilities=frozenset(
            {
                Capability.DURABLE,
                Capability.CROSS_PROCESS,
                Capability.ATOMIC_MULTI_KEY,
                Capability.TRANSACTIONAL,
            }
        ),
        leases=leases,
        records=SqliteRecords(writer, reader, times),
        signals=signals,
        replay=MemoryReplays(times),
        transactional=SqliteTransactional(times),
        close=closing.aclose,
    )
