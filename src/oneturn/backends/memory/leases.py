"""Leases in memory: the reference of the port."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence
from dataclasses import dataclass

from oneturn.core.clock import Times
from oneturn.core.failpoint import failpoint
from oneturn.core.lease import Grant, Held, Holding, Renewal, refuse_bad_request


@dataclass(slots=True)
class _Key:
    owner: str
    until: float
    token: int
    revoked_from: str = ""
    """Not held: a mark that lasts until `until`."""


class MemoryLeases:
    """See `oneturn.core.lease.LeaseStore`."""

    def __init__(self, clock: Times) -> None:
        self._clock = clock
        self._keys: dict[str, _Key] = {}
        self._tokens = itertools.count(1)
        self._lock = threading.Lock()

    async def acquire(self, keys: Sequence[str], *, owner: str, ttl: float) -> Grant | Held:
        """See the port."""
        refuse_bad_request(keys, ttl=ttl)
        await failpoint("leases.acquire.before")
        with self._lock:
            answer = self._acquire(tuple(keys), owner, ttl)
        await failpoint("leases.acquire.after")
        return answer

    def _acquire(self, keys: tuple[str, ...], owner: str, ttl: float) -> Grant | Held:
        now = self._clock.monotonic()
        found = {key: self._live(key, now) for key in keys}
        for key, entry in found.items():
            if entry is not None and (entry.revoked_from == owner or (entry.owner and entry.owner != owner)):
                return Held(key=key, remaining=entry.until - now)
        ours = [entry.token for entry in found.values() if entry is not None and entry.owner == owner]
        token = ours[0] if len(ours) == len(keys) else next(self._tokens)
        for key in keys:
            self._keys[key] = _Key(owner=owner, until=now + ttl, token=token)
        return Grant(keys=keys, owner=owner, ttl=ttl, fencing_token=token)

    async def renew(self, grants: Sequence[Grant]) -> list[Renewal]:
        """See the port."""
        await failpoint("leases.renew.before")
        with self._lock:
            answers = [self._renew(grant) for grant in grants]
        await failpoint("leases.renew.after")
        return answers

    def _renew(self, grant: Grant) -> Renewal:
        now = self._clock.monotonic()
        found = [self._live(key, now) for key in grant.keys]
        if any(entry is not None and entry.revoked_from == grant.owner for entry in found):
            return Renewal.REVOKED
        if any(entry is not None and entry.owner not in ("", grant.owner) for entry in found):
            return Renewal.FOREIGN
        if any(entry is None or entry.owner != grant.owner for entry in found):
            return Renewal.ABSENT
        for entry in found:
            assert entry is not None  # noqa: S101 - seen above
            entry.until = now + grant.ttl
        return Renewal.KEPT

    async def release(self, grant: Grant) -> bool:
        """See the port."""
        await failpoint("leases.release.before")
        with self._lock:
            now = self._clock.monotonic()
            ours = [key for key in grant.keys if (entry := self._live(key, now)) and entry.owner == grant.owner]
            for key in ours:
                del self._keys[key]
        await failpoint("leases.release.after")
        return len(ours) == len(grant.keys)

    async def inspect(self, key: str) -> Holding | None:
        """See the port."""
        await failpoint("leases.inspect.before")
        with self._lock:
            now = self._clock.monotonic()
            entry = self._live(key, now)
        if entry is None or not entry.owner:
            return None
        return Holding(key=key, owner=entry.owner, remaining=entry.until - now, fencing_token=entry.token)

    async def revoke(self, key: str, *, mark_for: float) -> bool:
        """See the port."""
        await failpoint("leases.revoke.before")
        with self._lock:
            now = self._clock.monotonic()
            entry = self._live(key, now)
            held = entry is not None and bool(entry.owner)
            if entry is not None and held:
                self._keys[key] = _Key(owner="", until=now + mark_for, token=0, revoked_from=entry.owner)
        await failpoint("leases.revoke.after")
        return held

    def _live(self, key: str, now: float) -> _Key | None:
        entry = self._keys.get(key)
        if entry is not None and entry.until <= now:
            del self._keys[key]
            return None
        return entry
