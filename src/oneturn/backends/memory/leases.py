"""Leases in memory: the reference of the port."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

from oneturn.core import granting
from oneturn.core.clock import Times
from oneturn.core.failpoint import failpoint
from oneturn.core.granting import Entry
from oneturn.core.lease import Grant, Held, Holding, Renewal, refuse_bad_mark, refuse_bad_request

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


class MemoryLeases:
    """See `oneturn.core.lease.LeaseStore`."""

    def __init__(self, times: Times) -> None:
        self._times = times
        self._keys = MemoryKeys()
        self._lock = threading.Lock()

    async def _step(self, name: str, step: Callable[[MemoryKeys], T]) -> T:
        await failpoint(f"leases.{name}.before")
        with self._lock:
            self._keys.now = self._times.monotonic()
            answer = step(self._keys)
        await failpoint(f"leases.{name}.after")
        return answer

    async def acquire(self, keys: Sequence[str], *, owner: str, ttl: float) -> Grant | Held:
        """See the port."""
        refuse_bad_request(keys, ttl=ttl)
        return await self._step("acquire", lambda held: granting.acquire(held, keys, owner=owner, ttl=ttl))

    async def renew(self, grants: Sequence[Grant]) -> list[Renewal]:
        """See the port."""
        return await self._step("renew", lambda held: [granting.renew(held, grant) for grant in grants])

    async def release(self, grant: Grant) -> bool:
        """See the port."""
        return await self._step("release", lambda held: granting.release(held, grant))

    async def inspect(self, key: str) -> Holding | None:
        """See the port."""
        return await self._step("inspect", lambda held: granting.inspect(held, key))

    async def revoke(self, key: str, *, mark_for: float) -> bool:
        """See the port."""
        refuse_bad_mark(mark_for)
        return await self._step("revoke", lambda held: granting.revoke(held, key, mark_for=mark_for))
