"""Leases in memory: the reference of the port."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from oneturn.backends.leases import SteppedLeases
from oneturn.core.clock import Times
from oneturn.core.failpoint import failpoint
from oneturn.core.granting import Entry, Keys

T = TypeVar("T")


class MemoryKeys:
    """See `oneturn.core.granting.Keys`. The caller holds the lock for as long as a transaction would last."""

    def __init__(self) -> None:
        self.now = 0.0
        """Set once for each step: a key must not lapse between two looks of one decision."""
        self._entries: dict[str, Entry] = {}
        self._token = 0

    def live(self, key: str) -> Entry | None:
        """See `Keys.live`."""
        entry = self._entries.get(key)
        if entry is not None and entry.until <= self.now:
            del self._entries[key]
            return None
        return entry

    def put(self, key: str, entry: Entry) -> None:
        """See `Keys.put`."""
        self._entries[key] = entry

    def drop(self, key: str) -> None:
        """See `Keys.drop`."""
        del self._entries[key]

    def next_token(self) -> int:
        """See `Keys.next_token`."""
        self._token += 1
        return self._token


class MemoryLeases(SteppedLeases):
    """See `oneturn.core.lease.LeaseStore`."""

    def __init__(self, times: Times) -> None:
        self._times = times
        self._keys = MemoryKeys()
        self._lock = threading.Lock()

    async def _step(
        self,
        name: str,
        step: Callable[[Keys], T],
        *,
        first: bool = False,  # noqa: ARG002 - nobody waits in a line here
    ) -> T:
        await failpoint(f"leases.{name}.before")
        with self._lock:
            self._keys.now = self._times.monotonic()
            answer = step(self._keys)
        await failpoint(f"leases.{name}.after")
        return answer
