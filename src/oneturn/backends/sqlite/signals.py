"""Signals on SQLite: at once within the process, by polling a small table between processes."""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Callable

from oneturn.backends.memory.signals import MemorySignals
from oneturn.backends.sqlite.lane import Lane
from oneturn.backends.sqlite.leases import SQL
from oneturn.backends.sqlite.times import BootTimes
from oneturn.core.signals import Wake
from oneturn.core.store import Execute

logger = logging.getLogger(__name__)

POLL = 0.025
"""Seconds between two looks at what other processes said; one PRAGMA while nothing was."""

KEEP = 1000
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
        self._change = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._poll, name="oneturn-signals", daemon=True)

    def start(self) -> None:
        """Begin to listen to other processes."""
        self._thread.start()

    def close(self) -> None:
        """Listen no more."""
        self._stop.set()

    def publish(self, topic: str) -> None:
        """See the port."""
        self._here.publish(topic)
        with self._change:
            first = not self._pending
            self._pending[topic] = None
        if first:
            self._lane.submit(self._tell)

    def subscribe(self, topic: str, wake: Wake) -> Callable[[], None]:
        """See the port."""
        return self._here.subscribe(topic, wake)

    def _tell(self, run: Execute) -> None:
        with self._change:
            topics, self._pending = list(self._pending), {}
        now = self._times.monotonic()
        for topic in topics:
            run(SQL["tell"], (self._process, topic, now))
        newest = run(SQL["newest_signal"], ())[0][0]
        run(SQL["prune_signals"], (newest - KEEP,))

    def _poll(self) -> None:
        try:
            connection = self._connect()
        except sqlite3.Error:
            logger.warning("signals of other processes cannot be read; waits fall back to polling", exc_info=True)
            return
        try:
            seen = connection.execute(SQL["newest_signal"]).fetchone()[0]
            version = None
            while not self._stop.wait(POLL):
                try:
                    now = connection.execute("PRAGMA data_version").fetchone()[0]
                    if now != version:
                        version, seen = now, self._hear(connection, seen)
                except sqlite3.Error:
                    continue  # a hint was lost; every wait looks at the store anyway
        finally:
            connection.close()

    def _hear(self, connection: sqlite3.Connection, seen: int) -> int:
        rows = connection.execute(SQL["told"], (seen, self._process)).fetchall()
        for topic in dict.fromkeys(topic for _, topic in rows):
            self._here.publish(topic)
        return int(rows[-1][0]) if rows else seen
