"""What a client sent, as a versioned hash: it tells a retry from a reuse of the key."""

from __future__ import annotations

import hashlib
import json
from typing import Any

VERSION = "1"


def canonical(value: Any) -> bytes:
    """JSON of `value` with sorted members and no space, so that order and layout do not matter.

    Raises ValueError for NaN and infinities (they are not JSON) and TypeError for what JSON cannot hold.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def fingerprint(*, handler: str, sent: Any) -> str:
    """The hash of a handler's name and what the client sent to it, without defaults and without the key."""
    digest = hashlib.sha256(canonical([handler, sent])).hexdigest()
    return f"{VERSION}:{digest}"


def strict_loads(text: str | bytes) -> Any:
    """Parse JSON; duplicate members, NaN and infinities raise ValueError (two readers could read them apart)."""
    return json.loads(text, object_pairs_hook=_no_duplicates, parse_constant=_no_constant)


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the member {twice!r} occurs twice")
    return members


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
