"""The replay cache of one process: the least recently used go first."""

from __future__ import annotations

import threading
from collections import OrderedDict

from oneturn.core.clock import Times
from oneturn.core.failpoint import failpoint
from oneturn.core.identity import Identity
from oneturn.core.record import Record


class MemoryReplays:
    """See `oneturn.core.replay.ReplayCache`."""

    def __init__(self, clock: Times, *, size: int = 4096) -> None:
        self._clock = clock
        self._size = size
        self._kept: OrderedDict[Identity, tuple[float, Record]] = OrderedDict()
        self._lock = threading.Lock()

    async def get(self, identity: Identity) -> Record | None:
        """See the port."""
        await failpoint("replay.get.before")
        with self._lock:
            record = self._get(identity)
        await failpoint("replay.get.after")
        return record

    def _get(self, identity: Identity) -> Record | None:
        until, record = self._kept.get(identity, (0.0, None))
        if record is not None and until <= self._clock.monotonic():
            del self._kept[identity]
            return None
        if record is not None:
            self._kept.move_to_end(identity)
        return record

    async def put(self, record: Record, *, ttl: float) -> None:
        """See the port."""
        await failpoint("replay.put.before")
        with self._lock:
            self._kept[record.identity] = (self._clock.monotonic() + ttl, record)
            self._kept.move_to_end(record.identity)
            if len(self._kept) > self._size:
                self._kept.popitem(last=False)
        await failpoint("replay.put.after")

    async def drop(self, identity: Identity) -> None:
        """See the port."""
        await failpoint("replay.drop.before")
        with self._lock:
            self._kept.pop(identity, None)
        await failpoint("replay.drop.after")
