"""Leases on SQLite: a file of their own, so that nobody's long transaction stops a renewal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from oneturn.backends.sqlite.lane import Lane
from oneturn.backends.sqlite.statements import statements
from oneturn.backends.sqlite.times import BootTimes
from oneturn.core.lease import Grant, Held, Holding, Renewal, refuse_bad_request
from oneturn.core.store import Execute

SQL = statements("leases")


@dataclass(frozen=True, slots=True)
class _Key:
    owner: str
    until: float
    token: int
    revoked_from: str


class SqliteLeases:
    """See `oneturn.core.lease.LeaseStore`."""

    def __init__(self, lane: Lane, times: BootTimes) -> None:
        self._lane = lane
        self._times = times

    async def acquire(self, keys: Sequence[str], *, owner: str, ttl: float) -> Grant | Held:
        """See the port."""
        refuse_bad_request(keys, ttl=ttl)
        return await self._lane.run("leases.acquire", lambda run: self._acquire(run, tuple(keys), owner, ttl))

    def _acquire(self, run: Execute, keys: tuple[str, ...], owner: str, ttl: float) -> Grant | Held:
        now = self._times.monotonic()
        found = {key: self._live(run, key, now) for key in keys}
        for key, entry in found.items():
            if entry is not None and (entry.revoked_from == owner or (entry.owner and entry.owner != owner)):
                return Held(key=key, remaining=entry.until - now)
        ours = [entry.token for entry in found.values() if entry is not None and entry.owner == owner]
        token = ours[0] if len(ours) == len(keys) else int(run(SQL["next_token"], ())[0][0])
        for key in keys:
            run(SQL["put"], (key, owner, now + ttl, self._times.boot(), token, ""))
        return Grant(keys=keys, owner=owner, ttl=ttl, fencing_token=token)

    async def renew(self, grants: Sequence[Grant]) -> list[Renewal]:
        """See the port."""
        return await self._lane.run(
            "leases.renew", lambda run: [self._renew(run, grant) for grant in grants], first=True
        )

    def _renew(self, run: Execute, grant: Grant) -> Renewal:
        now = self._times.monotonic()
        found = [self._live(run, key, now) for key in grant.keys]
        if any(entry is not None and entry.revoked_from == grant.owner for entry in found):
            return Renewal.REVOKED
        if any(entry is not None and entry.owner not in ("", grant.owner) for entry in found):
            return Renewal.FOREIGN
        if any(entry is None or entry.owner != grant.owner for entry in found):
            return Renewal.ABSENT
        for key in grant.keys:
            run(SQL["extend"], (now + grant.ttl, self._times.boot(), key))
        return Renewal.KEPT

    async def release(self, grant: Grant) -> bool:
        """See the port."""
        return await self._lane.run("leases.release", lambda run: self._release(run, grant))

    def _release(self, run: Execute, grant: Grant) -> bool:
        now = self._times.monotonic()
        ours = [
            key for key in grant.keys if (entry := self._live(run, key, now)) is not None and entry.owner == grant.owner
        ]
        for key in ours:
            run(SQL["drop"], (key,))
        return len(ours) == len(grant.keys)

    async def inspect(self, key: str) -> Holding | None:
        """See the port."""
        return await self._lane.run("leases.inspect", lambda run: self._inspect(run, key))

    def _inspect(self, run: Execute, key: str) -> Holding | None:
        now = self._times.monotonic()
        entry = self._live(run, key, now)
        if entry is None or not entry.owner:
            return None
        return Holding(key=key, owner=entry.owner, remaining=entry.until - now, fencing_token=entry.token)

    async def revoke(self, key: str, *, mark_for: float) -> bool:
        """See the port."""
        return await self._lane.run("leases.revoke", lambda run: self._revoke(run, key, mark_for))

    def _revoke(self, run: Execute, key: str, mark_for: float) -> bool:
        now = self._times.monotonic()
        entry = self._live(run, key, now)
        if entry is None or not entry.owner:
            return False
        run(SQL["put"], (key, "", now + mark_for, self._times.boot(), 0, entry.owner))
        return True

    def _live(self, run: Execute, key: str, now: float) -> _Key | None:
        for owner, until, boot, token, revoked_from in run(SQL["get"], (key,)):
            if boot == self._times.boot() and until > now:
                return _Key(owner, until, token, revoked_from)
            run(SQL["drop"], (key,))
        return None
