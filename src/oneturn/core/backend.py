"""A backend: the ports it implements and the capabilities it declares; what it lacks is refused at start-up."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum

from oneturn.core.lease import LeaseStore
from oneturn.core.replay import ReplayCache
from oneturn.core.signals import Signals
from oneturn.core.store import RecordStore, TransactionalRecords


class Capability(StrEnum):
    """What a backend can promise."""

    DURABLE = "durable"
    """What was answered survives a crash of the process and of the machine."""
    CROSS_PROCESS = "cross-process"
    """Several processes of one host share it."""
    CROSS_HOST = "cross-host"
    """Processes of several hosts share it."""
    ATOMIC_MULTI_KEY = "atomic multi-key"
    """Several keys are taken, renewed and released in one step."""
    TRANSACTIONAL = "transactional"
    """`turn.fence` and `gate.ask(session=…)` work: an application's rows can share the records' database."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """Open ports of one URL. `close` waits for what is under way and frees threads, files and sockets."""

    name: str
    capabilities: frozenset[Capability]
    leases: LeaseStore
    records: RecordStore
    signals: Signals
    replay: ReplayCache
    transactional: TransactionalRecords | None
    close: Callable[[], Awaitable[None]]


Connect = Callable[[str], Awaitable[Backend]]
"""What an entry point of the group `oneturn.backends` names: open the URL, migrate if need be, answer the ports."""
