"""One contract suite per port: a backend proves itself by inheriting them. Plain pytest classes with an async `subject`."""

from oneturn.testing.contracts.boundaries import BoundariesContract
from oneturn.testing.contracts.leases import LeaseStoreContract
from oneturn.testing.contracts.records import RecordStoreContract
from oneturn.testing.contracts.sharing import CrossProcessContract, DurableContract
from oneturn.testing.contracts.small import ReplayCacheContract, SignalsContract
from oneturn.testing.contracts.subject import Subject, claim_of
from oneturn.testing.contracts.transactional import TransactionalRecordsContract

__all__ = [
    "BoundariesContract",
    "CrossProcessContract",
    "DurableContract",
    "LeaseStoreContract",
    "RecordStoreContract",
    "ReplayCacheContract",
    "SignalsContract",
    "Subject",
    "TransactionalRecordsContract",
    "claim_of",
]
