"""Signals on SQLite: at once within the process, by polling a small table between processes."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Future

from oneturn.backends.memory.signals import MemorySignals
from oneturn.backends.sqlite.lane import Lane
from oneturn.backends.sqlite.leases import SQL
from oneturn.backends.sqlite.times import BootTimes
from oneturn.core.signals import Wake
from oneturn.core.store import Execute

logger = logging.getLogger(__name__)

POLL = 0.025
"""Seconds between two looks at what other processes said; one PRAGMA while nothing was."""

KEEP = 10_000
"""How many signals are kept for processes that have not looked yet."""


class SqliteSignals:
    """See `oneturn.core.signals.Signals`."""

    def __init__(self, lane: Lane, connect: Callable[[], sqlite3.Connection], times: BootTimes, process: str) -> None:
        self._lane = lane
        self._connect = connect
        self._times = times
        self._process = process
        self._here = MemorySignals()
        self._pending: dict[str, None] = {}
        """Topics that no step has picked up."""
        self._telling: dict[str, None] = {}
        """Topics whose step is not committed yet: it may be run again, and must find them again."""
        self._change = threading.Lock()
        self._stop = threading.Event()
        self._listening: Future[None] = Future()
        self._ended: Future[None] = Future()
        self._thread = threading.Thread(target=self._poll, name="oneturn-signals", daemon=True)

    async def open(self) -> None:
        """Begin to listen: what other processes say from now on is heard."""
        self._thread.start()
        await asyncio.shield(asyncio.wrap_future(self._listening))

    async def close(self) -> None:
        """Listen no more, and wait for the thread."""
        self._stop.set()
        await asyncio.shield(asyncio.wrap_future(self._ended))

    def publish(self, topic: str) -> None:
        """See the port."""
        self._here.publish(topic)
        with self._change:
            first = not self._pending
            self._pending[topic] = None
        if first:
            # Topics that follow before this step runs travel with it.
            self._lane.post(self._tell, then=self._told)

    def subscribe(self, topic: str, wake: Wake) -> Callable[[], None]:
        """See the port."""
        return self._here.subscribe(topic, wake)

    def _tell(self, run: Execute) -> None:
        with self._change:
            self._telling |= self._pending
            self._pending = {}
            topics = list(self._telling)
        now = self._times.wall()
        for topic in topics:
            run(SQL["tell"], (self._process, topic, now))
        newest = run(SQL["newest_signal"], ())[0][0]
        run(SQL["prune_signals"], (newest - KEEP,))

    def _told(self, error: BaseException | None) -> None:
        # Hints: what could not be told is not tried again. `_tell` may not have run at all, so both are emptied.
        with self._change:
            self._telling = {}
            if error is not None:
                self._pending = {}

    # -- in the thread ------------------------------------------------------------------------------------------------

    def _poll(self) -> None:
        try:
            connection = self._connect()
        except BaseException as error:  # noqa: BLE001 - handed to whoever opens
            self._ended.set_result(None)
            self._listening.set_exception(error)
            return
        try:
            seen = int(connection.execute(SQL["newest_signal"]).fetchone()[0])
            version = None
            self._listening.set_result(None)
            while not self._stop.wait(POLL):
                try:
                    now = connection.execute("PRAGMA data_version").fetchone()[0]
                    if now != version:
                        version, seen = now, self._hear(connection, seen)
                except sqlite3.Error:
                    continue  # a hint was lost; every wait looks at the store anyway
        except BaseException as error:
            if not self._listening.done():
                self._listening.set_exception(error)
            else:
                logger.exception("signals of other processes are heard no more; waits fall back to polling")
        finally:
            connection.close()
            self._ended.set_result(None)

    def _hear(self, connection: sqlite3.Connection, seen: int) -> int:
        rows = connection.execute(SQL["told"], (seen, self._process)).fetchall()
        for topic in dict.fromkeys(topic for _, topic in rows):
            self._here.publish(topic)
        return int(rows[-1][0]) if rows else seen
