"""The steps of a lease store that decides in Python: the same for every store, whatever runs them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TypeVar

from oneturn.core import granting
from oneturn.core.granting import Keys
from oneturn.core.lease import Grant, Held, Holding, Renewal, refuse_bad_mark, refuse_bad_request

T = TypeVar("T")


class SteppedLeases(ABC):
    """`oneturn.core.lease.LeaseStore`, except for what runs a step."""

    @abstractmethod
    async def _step(self, name: str, step: Callable[[Keys], T], *, first: bool = False) -> T:
        """Run a step in one transaction, between its failpoints; `first`: before all that waits."""

    async def acquire(self, keys: Sequence[str], *, owner: str, ttl: float) -> Grant | Held:
        """See the port."""
        refuse_bad_request(keys, ttl=ttl)
        return await self._step("acquire", lambda held: granting.acquire(held, keys, owner=owner, ttl=ttl))

    async def renew(self, grants: Sequence[Grant]) -> list[Renewal]:
        """See the port."""
        return await self._step("renew", lambda held: [granting.renew(held, grant) for grant in grants], first=True)

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
