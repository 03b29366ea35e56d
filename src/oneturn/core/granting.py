"""What each step of a lease store decides, on keys that its transaction has locked; for stores that decide in Python."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from oneturn.core.lease import Grant, Held, Holding, Renewal


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A key whose time has not passed: held by `owner`, or, with owner "", marked as revoked from somebody."""

    owner: str
    until: float
    token: int
    revoked_from: str = ""


class Keys(Protocol):
    """A store's keys in an open transaction. Each method is a look or a change, none decides."""

    @property
    def now(self) -> float:
        """The store's clock, read once the lock is held."""
        ...

    def live(self, key: str) -> Entry | None:
        """The key's entry; None if there is none, or its time has passed."""
        ...

    def put(self, key: str, entry: Entry) -> None:
        """Store an entry instead of whatever was there."""
        ...

    def drop(self, key: str) -> None:
        """Forget the key."""
        ...

    def next_token(self) -> int:
        """A fencing token greater than all before it."""
        ...


def acquire(keys: Keys, names: Sequence[str], *, owner: str, ttl: float) -> Grant | Held:
    """See `LeaseStore.acquire`."""
    found = {name: keys.live(name) for name in names}
    for name, entry in found.items():
        if entry is not None and (entry.revoked_from == owner or entry.owner not in ("", owner)):
            return Held(key=name, remaining=entry.until - keys.now)
    ours = [entry.token for entry in found.values() if entry is not None and entry.owner == owner]
    # Keys that this owner took one by one have several tokens: the greatest, so that no key's token ever falls.
    token = max(ours) if len(ours) == len(names) else keys.next_token()
    for name in names:
        keys.put(name, Entry(owner=owner, until=keys.now + ttl, token=token))
    return Grant(keys=tuple(names), owner=owner, ttl=ttl, fencing_token=token)


def renew(keys: Keys, grant: Grant) -> Renewal:
    """See `LeaseStore.renew`, for one grant."""
    found = {name: keys.live(name) for name in grant.keys}
    entries = list(found.values())
    if any(entry is not None and entry.revoked_from == grant.owner for entry in entries):
        return Renewal.REVOKED
    if any(entry is not None and entry.owner not in ("", grant.owner) for entry in entries):
        return Renewal.FOREIGN
    # What is left is ours, or free (which a mark against somebody else is, too).
    ours = {name: entry for name, entry in found.items() if entry is not None and entry.owner == grant.owner}
    if len(ours) < len(found):
        return Renewal.ABSENT
    for name, entry in ours.items():
        keys.put(name, replace(entry, until=keys.now + grant.ttl))
    return Renewal.KEPT


def release(keys: Keys, grant: Grant) -> bool:
    """See `LeaseStore.release`."""
    ours = [name for name in grant.keys if (entry := keys.live(name)) is not None and entry.owner == grant.owner]
    for name in ours:
        keys.drop(name)
    return len(ours) == len(grant.keys)


def inspect(keys: Keys, name: str) -> Holding | None:
    """See `LeaseStore.inspect`."""
    entry = keys.live(name)
    if entry is None or not entry.owner:
        return None
    return Holding(key=name, owner=entry.owner, remaining=entry.until - keys.now, fencing_token=entry.token)


def revoke(keys: Keys, name: str, *, mark_for: float) -> bool:
    """See `LeaseStore.revoke`."""
    entry = keys.live(name)
    if entry is None or not entry.owner:
        return False
    keys.put(name, Entry(owner="", until=keys.now + mark_for, token=0, revoked_from=entry.owner))
    return True
