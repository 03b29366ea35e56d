"""The rows of the memory backend: plain dictionaries, and a store's time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from oneturn.core.clock import Times
from oneturn.core.event import Logged, terminal_event
from oneturn.core.identity import Identity
from oneturn.core.record import Record, StoredMessage
from oneturn.core.status import Status, StopReason
from oneturn.core.steps import Emitted


@dataclass(slots=True)
class Scope:
    """A scope's row, and which records it has."""

    epoch: int = 0
    sequence: int = 0
    ids: list[str] = field(default_factory=list)


class MemoryTable:
    """See `oneturn.core.rows.Rows`. The caller holds the lock for as long as a transaction would last."""

    def __init__(self, times: Times) -> None:
        self._times = times
        self.records: dict[str, Record] = {}
        self.by_identity: dict[Identity, str] = {}
        self.scopes: dict[tuple[str, str], Scope] = {}
        self.events: dict[str, list[Logged]] = {}
        self.answers: dict[str, str] = {}
        """Message (the id of the record that brought it) → the id of the execution that answered it."""

    @property
    def now(self) -> float:
        """The store's monotonic clock."""
        return self._times.monotonic()

    @property
    def wall(self) -> float:
        """See `Rows.wall`."""
        return self._times.wall()

    # -- scopes -------------------------------------------------------------------------------------------------------

    def scope(self, tenant: str, name: str) -> Scope:
        """The scope's row, made if need be."""
        return self.scopes.setdefault((tenant, name), Scope())

    def lock_scope(self, identity: Identity) -> int:
        """See `Rows.lock_scope`."""
        return self.scope(identity.tenant, identity.scope).epoch

    def lock_scope_of(self, tenant: str, execution: str) -> int | None:
        """See `Rows.lock_scope_of`."""
        record = self.read(tenant, execution)
        return None if record is None else self.lock_scope(record.identity)

    def raise_epoch(self, identity: Identity) -> int:
        """See `Rows.raise_epoch`."""
        scope = self.scope(identity.tenant, identity.scope)
        scope.epoch += 1
        return scope.epoch

    def next_sequence(self, identity: Identity) -> int:
        """See `Rows.next_sequence`."""
        scope = self.scope(identity.tenant, identity.scope)
        scope.sequence += 1
        return scope.sequence

    # -- records ------------------------------------------------------------------------------------------------------

    def find(self, identity: Identity) -> Record | None:
        """See `Rows.find`."""
        found = self.by_identity.get(identity)
        return None if found is None else self.seen(self.records[found])

    def read(self, tenant: str, execution: str) -> Record | None:
        """See `Rows.read`."""
        record = self.records.get(execution)
        return self.seen(record) if record is not None and record.identity.tenant == tenant else None

    def running(self, identity: Identity) -> Record | None:
        """See `Rows.running`."""
        records = self.of(identity.tenant, identity.scope)
        return next((record for record in records if record.status is Status.RUNNING), None)

    def queued(self, identity: Identity) -> list[Record]:
        """See `Rows.queued`."""
        queued = [record for record in self.of(identity.tenant, identity.scope) if record.status is Status.QUEUED]
        return sorted(queued, key=lambda record: (record.sequence, record.created_at))

    def insert(self, record: Record) -> None:
        """See `Rows.insert`."""
        self.records[record.id] = record
        self.by_identity[record.identity] = record.id
        self.events[record.id] = []
        self.scope(record.identity.tenant, record.identity.scope).ids.append(record.id)

    def begin(self, record: Record, *, owner: str, epoch: int, ttl: float) -> Record:
        """See `Rows.begin`."""
        return self.put(
            replace(
                record,
                status=Status.RUNNING,
                owner=owner,
                epoch=epoch,
                attempt=record.attempt + 1,
                alive_until=self.now + ttl,
                started_at=self.wall,
            )
        )

    def requeue(self, record: Record) -> Record:
        """See `Rows.requeue`."""
        return self.put(replace(record, status=Status.QUEUED, owner="", epoch=None))

    def end(self, record: Record, *, status: Status, body: bytes, reason: StopReason | None) -> Record:
        """See `Rows.end`."""
        seq = record.last_seq + 1
        self.events[record.id].append(terminal_event(seq=seq, status=status, body=body))
        ended = replace(record, status=status, body=body, reason=reason, last_seq=seq, ended_at=self.wall, owner="")
        return self.put(ended)

    def touch(self, *, tenant: str, execution: str, epoch: int, ttl: float) -> bool:
        """See `Rows.touch`."""
        record = self.read(tenant, execution)
        if record is None or record.status is not Status.RUNNING or record.epoch != epoch:
            return False
        self.put(replace(record, alive_until=self.now + ttl))
        return True

    # -- events and answers -------------------------------------------------------------------------------------------

    def log(self, record: Record, events: Sequence[Emitted]) -> Record:
        """See `Rows.log`."""
        log = self.events[record.id]
        log.extend(
            Logged(seq=record.last_seq + place, kind=emitted.kind, data=emitted.data)
            for place, emitted in enumerate(events, 1)
        )
        return self.put(replace(record, last_seq=record.last_seq + len(events)))

    def answer_of(self, message: str) -> str:
        """See `Rows.answer_of`."""
        return self.answers.get(message, "")

    def answer(self, record: Record) -> None:
        """See `Rows.answer`."""
        self.answers[record.message] = record.id

    def newest_answered(self, identity: Identity) -> str:
        """See `Rows.newest_answered`."""
        answered = self.answered(identity.tenant, identity.scope)
        return answered[-1].turn if answered else ""

    def drop_payload(self, record: Record) -> None:
        """See `Rows.drop_payload`."""
        for execution in {record.message, record.id}:
            if execution in self.records:
                self.put(replace(self.records[execution], payload=None))

    def answered(self, tenant: str, scope: str, *, before_epoch: int | None = None) -> list[StoredMessage]:
        """Answered messages in the order of their answers."""
        rows: list[tuple[int, StoredMessage]] = []
        for message in self.of(tenant, scope):
            answer = self.records.get(self.answers.get(message.id, ""))
            if answer is not None and (before_epoch is None or (answer.epoch or 0) < before_epoch):
                stored = StoredMessage(
                    turn=message.id,
                    sequence=message.sequence,
                    payload=message.payload,
                    answered_by=answer.id,
                    answer=answer.body,
                )
                rows.append((answer.epoch or 0, stored))
        rows.sort(key=lambda row: (row[0], row[1].sequence))
        return [stored for _, stored in rows]

    # -- forgetting ---------------------------------------------------------------------------------------------------

    def empty(self, record: Record) -> None:
        """Leave a tombstone."""
        self.put(replace(record, payload=None, body=b"", claims={}, expired=True))
        self.events[record.id] = []
        for message in [m for m, execution in self.answers.items() if record.id in (m, execution)]:
            del self.answers[message]

    def delete(self, record: Record) -> None:
        """Leave nothing."""
        self.empty(record)
        del self.records[record.id], self.by_identity[record.identity], self.events[record.id]
        self.scope(record.identity.tenant, record.identity.scope).ids.remove(record.id)

    # -- looking ------------------------------------------------------------------------------------------------------

    def of(self, tenant: str, scope: str) -> list[Record]:
        """All records of a scope."""
        found = self.scopes.get((tenant, scope))
        return [self.seen(self.records[execution]) for execution in found.ids] if found else []

    def put(self, record: Record) -> Record:
        """Store a record, and answer it as it is now."""
        self.records[record.id] = record
        return self.seen(record)

    def seen(self, record: Record) -> Record:
        """A record as it is now."""
        return replace(record, remaining=record.alive_until - self.now)
