"""What each step decides, on rows that its transaction has locked."""

from __future__ import annotations

from dataclasses import replace

from oneturn.backends.sqlite.table import Table
from oneturn.core import event as kinds
from oneturn.core.event import stop_body
from oneturn.core.identity import Identity
from oneturn.core.record import Record, StoredMessage
from oneturn.core.rules import may_rerun, started_event
from oneturn.core.status import Status
from oneturn.core.steps import (
    Abandon,
    Append,
    Appended,
    Busy,
    Claim,
    Claimed,
    Emitted,
    Ended,
    Enqueued,
    Existing,
    Finish,
    Full,
    Gone,
    Lapsed,
    NotRegenerable,
    Requeued,
    Start,
    Stop,
    Vouch,
)
from oneturn.core.store import ClaimAnswer, EnqueueAnswer


def claim(table: Table, asked: Claim) -> ClaimAnswer:
    """See `RecordStore.claim`."""
    table.lock_scope(asked.identity)
    known = _known(table, asked)
    if isinstance(known, Existing | NotRegenerable | Claimed | Enqueued):
        return known
    busy = _occupied(table, asked.identity, dead=asked.dead, alive=asked.alive)
    if isinstance(busy, Lapsed):
        return busy
    placed = _place(table, asked, busy)
    if isinstance(placed, Busy | Full):
        return placed
    record = _insert(table, asked, known)
    if placed:
        return Enqueued(record=table.log(record, [Emitted(kind=kinds.QUEUED, data="{}")]), position=placed)
    return _begin(table, record, owner=asked.owner, ttl=asked.ttl)


def enqueue(table: Table, asked: Claim) -> EnqueueAnswer:
    """See `TransactionalRecords.enqueue_in`."""
    table.lock_scope(asked.identity)
    known = _known(table, asked)
    if isinstance(known, Claimed):
        return Existing(record=known.record)
    if isinstance(known, Existing | NotRegenerable | Enqueued):
        return known
    running = table.running(asked.identity)
    placed = _place(table, asked, running if running is not None and running.remaining > 0 else None)
    if isinstance(placed, Busy | Full):
        return placed
    record = table.log(_insert(table, asked, known), [Emitted(kind=kinds.QUEUED, data="{}")])
    return Enqueued(record=record, position=placed or 1)


def _known(table: Table, asked: Claim) -> Existing | Claimed | Enqueued | NotRegenerable | Record | None:
    """What there is already; a record alone is the turn to be asked again."""
    record = table.find(asked.identity)
    if record is not None:
        if record.status is Status.RUNNING and asked.owner and record.owner == asked.owner:
            return _claimed(record)
        if record.status is Status.QUEUED and record.id == asked.id:
            return Enqueued(record=record, position=_position(table, record))
        return Existing(record=record)
    if asked.regenerate is None:
        return None
    return _regenerable(table, asked) or NotRegenerable(turn=asked.regenerate)


def _regenerable(table: Table, asked: Claim) -> Record | None:
    target = table.read(asked.identity.tenant, asked.regenerate or "")
    if target is None or target.identity.scope != asked.identity.scope or not target.status.final or target.expired:
        return None
    if table.answer_of(target.message) and table.newest_answered(asked.identity) != target.message:
        return None
    return target


def _occupied(table: Table, identity: Identity, *, dead: str | None, alive: str | None) -> Record | Lapsed | None:
    """The running record that makes the scope busy; a dead one is ended here."""
    running = table.running(identity)
    if running is None or running.remaining > 0 or running.id == alive:
        return running
    if running.id != dead:
        return Lapsed(record=running)
    _end_dead(table, running)
    return None


def _place(table: Table, asked: Claim, running: Record | None) -> int | Busy | Full:
    """The place in the queue; 0: none is needed."""
    queued = table.queued(asked.identity)
    in_the_way = running or next(iter(queued), None)
    if in_the_way is None:
        return 0
    if asked.on_busy == "reject":
        return Busy(record=in_the_way)
    if len(queued) >= asked.queue_limit:
        return Full(limit=asked.queue_limit)
    return len(queued) + 1


def _insert(table: Table, asked: Claim, target: Record | None) -> Record:
    sequence = target.sequence if target else table.next_sequence(asked.identity)
    record = Record(
        id=asked.id,
        identity=asked.identity,
        handler=asked.handler,
        fingerprint=asked.fingerprint,
        payload=asked.payload,
        claims=dict(asked.claims),
        recovery=asked.recovery,
        run_limit=asked.run_limit,
        message=target.message if target else asked.id,
        replaces=table.answer_of(target.message) if target else "",
        sequence=sequence,
        status=Status.QUEUED,
        created_at=table.wall,
    )
    table.insert(record)
    return record


def start(table: Table, asked: Start) -> Claimed | Busy | Lapsed | Gone:
    """See `RecordStore.start`."""
    table.lock_scope_of(asked.tenant, asked.id)
    record = table.read(asked.tenant, asked.id)
    if record is not None and record.status is Status.RUNNING and record.owner == asked.owner:
        return _claimed(record)
    if record is None or record.status is not Status.QUEUED:
        return Gone(record=record)
    busy = _occupied(table, record.identity, dead=asked.dead, alive=asked.alive)
    if isinstance(busy, Lapsed):
        return busy
    first = table.queued(record.identity)[0]
    if busy is not None or first.id != record.id:
        return Busy(record=busy or first)
    return _begin(table, record, owner=asked.owner, ttl=asked.ttl)


def _begin(table: Table, record: Record, *, owner: str, ttl: float) -> Claimed:
    epoch = table.raise_epoch(record.identity)
    record = table.begin(record, owner=owner, epoch=epoch, ttl=ttl)
    return _claimed(table.log(record, [started_event(epoch=epoch, attempt=record.attempt)]))


def _claimed(record: Record) -> Claimed:
    message = StoredMessage(turn=record.message, sequence=record.sequence, payload=record.payload)
    return Claimed(record=record, unanswered=(message,))


def append(table: Table, asked: Append) -> Appended | Gone:
    """See `RecordStore.append`."""
    record = table.read(asked.tenant, asked.id)
    if record is None or record.status is not Status.RUNNING or record.epoch != asked.epoch:
        return Gone(record=record)
    # Numbers were fixed when the batch was made: what is logged already is skipped.
    record = table.log(record, asked.events[max(record.last_seq - asked.after, 0) :])
    return Appended(last_seq=record.last_seq)


def check(table: Table, *, tenant: str, execution: str, epoch: int) -> Gone | None:
    """See `TransactionalRecords.check_in`."""
    current = table.lock_scope_of(tenant, execution)
    record = table.read(tenant, execution)
    if record is None or record.status is not Status.RUNNING or record.epoch != epoch or current != epoch:
        return Gone(record=record)
    return None


def finish(table: Table, asked: Finish) -> Ended | Gone:
    """See `RecordStore.finish`."""
    gone = check(table, tenant=asked.tenant, execution=asked.id, epoch=asked.epoch)
    record = table.read(asked.tenant, asked.id)
    if gone is not None or record is None:
        same = (
            record is not None
            and record.epoch == asked.epoch
            and record.status is asked.status
            and record.body == asked.body
        )
        return Ended(record=record, here=False) if record is not None and same else Gone(record=record)
    record = table.log(record, asked.events[max(record.last_seq - asked.after, 0) :])
    if asked.status is Status.SUCCEEDED:
        old = table.answer_of(record.message)
        if not old or old == record.replaces:
            table.answer(record)
        if not asked.keep_payload:
            table.drop_payload(record)
            record = replace(record, payload=None)
    return Ended(record=table.end(record, status=asked.status, body=asked.body, reason=asked.reason))


def stop(table: Table, asked: Stop) -> Ended | Gone:
    """See `RecordStore.stop`."""
    table.lock_scope_of(asked.tenant, asked.id)
    record = table.read(asked.tenant, asked.id)
    if record is None:
        return Gone(record=None)
    if record.status.final:
        return Ended(record=record, here=False)
    if record.status is Status.RUNNING:
        table.raise_epoch(record.identity)
    return Ended(record=table.end(record, status=Status.STOPPED, body=stop_body(asked.reason), reason=asked.reason))


def abandon(table: Table, asked: Abandon) -> Ended | Requeued | Gone:
    """See `RecordStore.abandon`."""
    table.lock_scope_of(asked.tenant, asked.id)
    record = table.read(asked.tenant, asked.id)
    if (
        record is None
        or record.status is not Status.RUNNING
        or record.epoch != asked.epoch
        or record.alive_until != asked.alive_until
        or record.remaining > 0
    ):
        return Gone(record=record)
    after = _end_dead(table, record)
    return Ended(record=after) if after.status.final else Requeued(record=after)


def _end_dead(table: Table, record: Record) -> Record:
    table.raise_epoch(record.identity)
    if may_rerun(record):
        return table.requeue(record)
    return table.end(record, status=Status.ABANDONED, body=b"", reason=None)


def touch(table: Table, asked: Vouch) -> Record | None:
    """See `RecordStore.touch`."""
    if table.touch(tenant=asked.tenant, execution=asked.id, epoch=asked.epoch, ttl=asked.ttl):
        return None
    nobody = Identity(tenant=asked.tenant, subject="", scope="", key="")
    unknown = Record(id=asked.id, identity=nobody, handler="", fingerprint="", payload=None, status=Status.ABANDONED)
    return table.read(asked.tenant, asked.id) or unknown


def _position(table: Table, record: Record) -> int:
    return [queued.id for queued in table.queued(record.identity)].index(record.id) + 1


def position(table: Table, *, tenant: str, execution: str) -> int:
    """See `RecordStore.position`."""
    record = table.read(tenant, execution)
    return _position(table, record) if record is not None and record.status is Status.QUEUED else 0
