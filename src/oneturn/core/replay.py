"""The replay cache: short-lived copies of final records that were read back from the record store."""

from __future__ import annotations

from typing import Protocol

from oneturn.core.identity import Identity
from oneturn.core.record import Record


class ReplayCache(Protocol):
    """Saves the record store a read. It may forget anything at any time; it never invents."""

    async def get(self, identity: Identity) -> Record | None:
        """The final record of this name, if it is still here."""
        ...

    async def put(self, record: Record, *, ttl: float) -> None:
        """Keep a final record for `ttl` seconds."""
        ...

    async def drop(self, identity: Identity) -> None:
        """Forget it (its content was erased)."""
        ...
