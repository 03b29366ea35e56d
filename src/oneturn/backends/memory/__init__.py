"""The memory backend: the reference of every port, for one process and for tests."""

from __future__ import annotations

from oneturn.backends.memory.leases import MemoryLeases
from oneturn.backends.memory.records import MemoryRecords
from oneturn.backends.memory.replay import MemoryReplays
from oneturn.backends.memory.signals import MemorySignals
from oneturn.backends.times import SystemTimes
from oneturn.core.backend import Backend, Capability
from oneturn.core.clock import Times
from oneturn.core.errors import ConfigurationError

__all__ = ["MemoryLeases", "MemoryRecords", "MemoryReplays", "MemorySignals", "connect", "memory_backend"]


def memory_backend(*, clock: Times) -> Backend:
    """A fresh, empty backend on this clock."""

    async def close() -> None:
        return

    return Backend(
        name="memory",
        capabilities=frozenset({Capability.ATOMIC_MULTI_KEY}),
        leases=MemoryLeases(clock),
        records=MemoryRecords(clock),
        signals=MemorySignals(),
        replay=MemoryReplays(clock),
        transactional=None,
        close=close,
    )


async def connect(url: str) -> Backend:
    """`memory://`: a fresh backend that this process alone sees and that ends with it."""
    if url.rstrip("/") != "memory:":
        raise ConfigurationError(f"{url!r}: the memory backend takes no address, write memory://")
    return memory_backend(clock=SystemTimes())
