"""One contract suite per port: a backend proves itself by inheriting them. Plain pytest classes with an async `subject`."""

from oneturn.testing.contracts.leases import LeaseStoreContract
from oneturn.testing.contracts.records import RecordStoreContract
from oneturn.testing.contracts.retention import RetentionContract
from oneturn.testing.contracts.small import ReplayCacheContract, SignalsContract
from oneturn.testing.contracts.subject import Subject, claim_of
from oneturn.testing.contracts.transactional import TransactionalRecordsContract

__all__ = [
    "LeaseStoreContract",
    "RecordStoreContract",
    "ReplayCacheContract",
    "RetentionContract",
    "SignalsContract",
    "Subject",
    "TransactionalRecordsContract",
    "claim_of",
]
