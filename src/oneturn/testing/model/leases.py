"""What the lock service decides: each step is a pure function of the keys that it names."""

from __future__ import annotations

from typing import Final, NamedTuple

from oneturn.testing.model.switches import Switch

KEPT, ABSENT, FOREIGN, REVOKED = "kept", "absent", "foreign", "revoked"
GRANTED, HELD = "granted", "held"
NOBODY: Final = ""


class Key(NamedTuple):
    """A key that is held, or (owner "") marked as revoked from somebody. Owners are compared for equality only."""

    owner: str
    until: float
    revoked_from: str = NOBODY


Keys = tuple[Key | None, ...]
"""By number; None: free. What has lapsed is free already."""


def acquire(keys: Keys, wanted: tuple[int, ...], *, owner: str, until: float) -> tuple[Keys, int | None]:
    """All or none. Answers the number of the key that refuses, or None: granted."""
    for number in wanted:
        key = keys[number]
        if key is not None and (key.revoked_from == owner or key.owner not in (NOBODY, owner)):
            return keys, number
    return _put(keys, wanted, Key(owner, until)), None


def renew(
    keys: Keys, wanted: tuple[int, ...], *, owner: str, until: float, wrong: Switch | None = None
) -> tuple[Keys, str]:
    """All or none, and never a key that is free."""
    found = [keys[number] for number in wanted]
    ours = tuple(number for number in wanted if (key := keys[number]) is not None and key.owner == owner)
    if wrong is Switch.PARTIAL_RENEWAL and ours:
        return _put(keys, ours, Key(owner, until)), KEPT
    if any(key is not None and key.revoked_from == owner for key in found):
        return keys, REVOKED
    if any(key is not None and key.owner not in (NOBODY, owner) for key in found):
        return keys, FOREIGN
    if len(ours) < len(wanted):
        return keys, ABSENT
    return _put(keys, wanted, Key(owner, until)), KEPT


def release(keys: Keys, wanted: tuple[int, ...], *, owner: str, wrong: Switch | None = None) -> tuple[Keys, bool]:
    """Free what is this owner's. Answers whether all of it was."""
    ours = tuple(number for number in wanted if (key := keys[number]) is not None and key.owner == owner)
    freed = wanted if wrong is Switch.RELEASE_ANYBODY else ours
    return _put(keys, freed, None), len(ours) == len(wanted)


def lapse(keys: Keys, *, now: float) -> Keys:
    """Free what has lapsed."""
    return tuple(key if key is not None and key.until > now else None for key in keys)


def _put(keys: Keys, numbers: tuple[int, ...], key: Key | None) -> Keys:
    return tuple(key if number in numbers else old for number, old in enumerate(keys))
