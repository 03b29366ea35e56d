"""The rows of the memory backend: plain dictionaries, and a store's time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace

from oneturn.core.clock import Times
from oneturn.core.event import Logged, terminal_event
from oneturn.core.identity import Identity
from oneturn.core.record import Record, StoredMessage
from oneturn.core.status import Status, StopReason
from oneturn.core.steps import Emitted

_FIELDS = tuple(field.name for field in fields(Record))


@dataclass(slots=True)
class Scope:
    """A scope's row, and which records it has."""

    epoch: int = 0
    sequence: int = 0
    ids: dict[str, None] = field(default_factory=dict)
    """Of all its records, in the order in which they came."""
    open: dict[str, None] = field(default_factory=dict)
    """Of those that wait or run, in the same order: a few, however long the conversation."""


class MemoryTable:
    """See `oneturn.core.rows.Rows`. The caller holds the lock for as long as a transaction would last."""

    def __init__(self, times: Times) -> None:
        self._times = times
        self.records: dict[str, Record] = {}
        self.by_identity: dict[Identity, str] = {}
        self.scopes: dict[tuple[str, str], Scope] = {}
        self.open: dict[tuple[str, str], Scope] = {}
        """The scopes in which something waits or runs."""
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
        running = self._open(identity, Status.RUNNING)
        return self.seen(running[0]) if running else None

    def queued(self, identity: Identity) -> list[Record]:
        """See `Rows.queued`."""
        queued = sorted(self._open(identity, Status.QUEUED), key=in_line)
        return [self.seen(record) for record in queued]

    def _open(self, identity: Identity, status: Status) -> list[Record]:
        scope = self.open.get((identity.tenant, identity.scope))
        if scope is None:
            return []
        return [record for execution in scope.open if (record := self.records[execution]).status is status]

    def insert(self, record: Record) -> None:
        """See `Rows.insert`."""
        self.by_identity[record.identity] = record.id
        self.events[record.id] = []
        self.scope(record.identity.tenant, record.identity.scope).ids[record.id] = None
        self.put(record)

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
        answered = self._answered(identity.tenant, identity.scope)
        return max(answered, key=_in_history)[0].id if answered else ""

    def drop_payload(self, record: Record) -> None:
        """See `Rows.drop_payload`."""
        for execution in {record.message, record.id}:
            if execution in self.records:
                self.put(replace(self.records[execution], payload=None))

    def answered(self, tenant: str, scope: str, *, before_epoch: int | None = None) -> list[StoredMessage]:
        """Answered messages in the order of their answers."""
        return [
            StoredMessage(
                turn=message.id,
                sequence=message.sequence,
                payload=message.payload,
                answered_by=answer.id,
                answer=answer.body,
            )
            for message, answer in sorted(self._answered(tenant, scope), key=_in_history)
            if before_epoch is None or (answer.epoch or 0) < before_epoch
        ]

    def _answered(self, tenant: str, scope: str) -> list[tuple[Record, Record]]:
        """Each answered message's record, and that of its answer."""
        return [
            (message, self.records[self.answers[message.id]])
            for message in self.of(tenant, scope)
            if message.id in self.answers
        ]

    # -- forgetting ---------------------------------------------------------------------------------------------------

    def empty(self, record: Record) -> None:
        """Leave a tombstone."""
        self.put(replace(record, payload=None, body=b"", claims={}, expired=True))
        self.events[record.id] = []
        self.answers.pop(record.id, None)
        if self.answers.get(record.message) == record.id:
            del self.answers[record.message]

    def delete(self, record: Record) -> None:
        """Leave nothing."""
        self.empty(record)
        del self.records[record.id], self.by_identity[record.identity], self.events[record.id]
        del self.scope(record.identity.tenant, record.identity.scope).ids[record.id]

    # -- looking ------------------------------------------------------------------------------------------------------

    def of(self, tenant: str, scope: str) -> list[Record]:
        """All records of a scope as they are kept: not yet as they are `seen`."""
        found = self.scopes.get((tenant, scope))
        return [self.records[execution] for execution in found.ids] if found else []

    def put(self, record: Record) -> Record:
        """Store a record, and answer it as it is now. All that changes a record ends here, so the open ones are known."""
        self.records[record.id] = record
        name = (record.identity.tenant, record.identity.scope)
        scope = self.scopes[name]
        if not record.status.final:
            scope.open[record.id] = None
            self.open[name] = scope
        elif record.id in scope.open:
            del scope.open[record.id]
            if not scope.open:
                del self.open[name]
        return self.seen(record)

    def seen(self, record: Record) -> Record:
        """A record as it is now."""
        # `replace` by hand: every look ends here, and this takes half its time.
        now = object.__new__(Record)
        for name in _FIELDS:
            object.__setattr__(now, name, getattr(record, name))
        object.__setattr__(now, "remaining", record.alive_until - self.now)
        return now


def in_line(record: Record) -> tuple[int, float]:
    """What records are sorted by: their messages' places, then who came first."""
    return record.sequence, record.created_at


def _in_history(answered: tuple[Record, Record]) -> tuple[int, int]:
    message, answer = answered
    return answer.epoch or 0, message.sequence
