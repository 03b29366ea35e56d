"""The right to execute, as the lock service sees it: keys, owner, TTL; and the port behind which it lives."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """Proof that `owner` held `keys` for `ttl` seconds when the store answered, and not a moment longer."""

    keys: tuple[str, ...]
    owner: str
    ttl: float
    fencing_token: int
    """Grows with every new acquisition of any of the keys, as long as the store keeps its data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Nothing was taken: somebody else holds `key` for `remaining` seconds at the most, unless they renew."""

    key: str
    remaining: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """What the store knows of a key that is held."""

    key: str
    owner: str
    remaining: float
    fencing_token: int


class Renewal(StrEnum):
    """What the store says of one grant that asked to be renewed."""

    KEPT = "kept"
    """All keys were ours and last a full TTL from now."""
    ABSENT = "absent"
    """At least one key is gone (lapsed, or the store lost its data) and none is somebody else's; none was extended."""
    FOREIGN = "foreign"
    """At least one key is somebody else's; none was extended."""
    REVOKED = "revoked"
    """At least one key was taken away from this owner on purpose; none was extended."""


def refuse_bad_request(keys: Sequence[str], *, ttl: float) -> None:
    """ValueError, before any I/O, for what no store can grant."""
    if not keys or len(set(keys)) != len(keys) or not all(keys):
        raise ValueError(f"keys must be one or more different, non-empty names, not {list(keys)!r}")
    if not (math.isfinite(ttl) and ttl > 0):
        raise ValueError(f"ttl must be a positive, finite number of seconds, not {ttl!r}")


def refuse_bad_mark(mark_for: float) -> None:
    """ValueError, before any I/O, for a mark that would never pass, or never be."""
    if not (math.isfinite(mark_for) and mark_for > 0):
        raise ValueError(f"mark_for must be a positive, finite number of seconds, not {mark_for!r}")


class LeaseStore(Protocol):
    """Where leases live. Each call is one atomic step, timed by the store's own clock, never by the caller's.

    - A key is free, held by one owner until its TTL has passed, or free with a mark "revoked from owner X".
    - A key whose TTL has passed is free, whether or not anybody has looked at it since.
    - Every call may raise `BackendUnavailable`: then it may or may not have happened, and may still happen.
      Repeating it with the same owner is always safe.
    - Every call may be made from any event loop of the process.
    """

    async def acquire(self, keys: Sequence[str], *, owner: str, ttl: float) -> Grant | Held:
        """Take every key, or none.

        - Keys already held by `owner` count as free: asking again as the same owner answers the same token, with a full
          TTL from now (this is how a lost reply is made good).
        - A key revoked from `owner` is refused to that owner (`Held`) until the mark has passed; to others it is free.
        - `ttl` is honoured to the millisecond.
        - ValueError, before any I/O, if `keys` is empty or holds duplicates, or `ttl` is not a positive finite number.
        """
        ...

    async def renew(self, grants: Sequence[Grant]) -> list[Renewal]:
        """Restart the TTL of each grant, all of its keys or none; one answer per grant, in order, in one round trip.

        Never takes a key that is free: that is `acquire`.
        """
        ...

    async def release(self, grant: Grant) -> bool:
        """Free those of its keys that are still this owner's; True if all were. A stranger's key is not touched."""
        ...

    async def inspect(self, key: str) -> Holding | None:
        """Who holds it now; None if nobody."""
        ...

    async def revoke(self, key: str, *, mark_for: float) -> bool:
        """Take the key away from whoever holds it and mark it revoked from that owner for `mark_for` seconds.

        True if somebody held it. The holder learns it at its next renewal (`REVOKED`).
        ValueError, before any I/O, if `mark_for` is not a positive finite number.
        """
        ...
