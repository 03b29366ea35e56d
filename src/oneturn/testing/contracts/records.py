"""The contract of `RecordStore`, all of it: one class per noun, joined."""

from __future__ import annotations

from oneturn.testing.contracts.claiming import ClaimingContract
from oneturn.testing.contracts.ending import EndingContract
from oneturn.testing.contracts.history import HistoryContract
from oneturn.testing.contracts.logs import LoggingContract
from oneturn.testing.contracts.loops import RecordLoopsContract
from oneturn.testing.contracts.queueing import QueueingContract
from oneturn.testing.contracts.recovery import RecoveryContract
from oneturn.testing.contracts.retention import RetentionContract
from oneturn.testing.contracts.tenants import TenantsContract


class RecordStoreContract(
    ClaimingContract,
    QueueingContract,
    LoggingContract,
    EndingContract,
    RecoveryContract,
    HistoryContract,
    RetentionContract,
    TenantsContract,
    RecordLoopsContract,
):
    """Inherit it and provide a fixture `subject`."""
