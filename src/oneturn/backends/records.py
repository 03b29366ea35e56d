"""The steps of a record store that decides in Python: the same for every store, whatever runs them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from oneturn.core import transitions
from oneturn.core.identity import Identity
from oneturn.core.record import Record
from oneturn.core.rows import Rows
from oneturn.core.steps import (
    Abandon,
    Append,
    Appended,
    Busy,
    Claim,
    Claimed,
    Ended,
    Finish,
    Gone,
    Lapsed,
    Requeued,
    Start,
    Stop,
    Vouch,
)
from oneturn.core.store import ClaimAnswer

R = TypeVar("R", bound=Rows)
T = TypeVar("T")


class SteppedRecords(ABC, Generic[R]):
    """The half of `oneturn.core.store.RecordStore` that needs no more than `Rows`; a store adds its looks and its sweeping."""

    @abstractmethod
    async def _write(self, name: str, step: Callable[[R], T], *, first: bool = False) -> T:
        """Run a step in one transaction that may write, between its failpoints; `first`: before all that waits."""

    @abstractmethod
    async def _read(self, name: str, step: Callable[[R], T]) -> T:
        """Run a step that only looks, in one transaction, between its failpoints."""

    async def claim(self, claim: Claim) -> ClaimAnswer:
        """See the port."""
        return await self._write("claim", lambda rows: transitions.claim(rows, claim))

    async def start(self, start: Start) -> Claimed | Busy | Lapsed | Gone:
        """See the port."""
        return await self._write("start", lambda rows: transitions.start(rows, start))

    async def append(self, append: Append) -> Appended | Gone:
        """See the port."""
        return await self._write("append", lambda rows: transitions.append(rows, append))

    async def finish(self, finish: Finish) -> Ended | Gone:
        """See the port."""
        return await self._write("finish", lambda rows: transitions.finish(rows, finish))

    async def stop(self, stop: Stop) -> Ended | Gone:
        """See the port."""
        return await self._write("stop", lambda rows: transitions.stop(rows, stop))

    async def abandon(self, abandon: Abandon) -> Ended | Requeued | Gone:
        """See the port."""
        return await self._write("abandon", lambda rows: transitions.abandon(rows, abandon))

    async def touch(self, vouches: Sequence[Vouch]) -> list[Record | None]:
        """See the port."""
        return await self._write(
            "touch", lambda rows: [transitions.touch(rows, vouch) for vouch in vouches], first=True
        )

    async def find(self, identity: Identity) -> Record | None:
        """See the port."""
        return await self._read("find", lambda rows: rows.find(identity))

    async def read(self, *, tenant: str, id: str) -> Record | None:  # noqa: A002 - the field's word
        """See the port."""
        return await self._read("read", lambda rows: rows.read(tenant, id))

    async def position(self, *, tenant: str, id: str) -> int:  # noqa: A002
        """See the port."""
        return await self._read("position", lambda rows: transitions.position(rows, tenant=tenant, execution=id))
