"""What each step decides, on rows that its transaction has locked: the same for every store, whatever holds its rows."""

from __future__ import annotations

from dataclasses import replace

from oneturn.core import event as kinds
from oneturn.core.event import encode, stop_body
from oneturn.core.identity import Identity
from oneturn.core.record import Record, StoredMessage
from oneturn.core.rows import Rows
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

MAX_ATTEMPTS = 3


def claim(rows: Rows, asked: Claim) -> ClaimAnswer:
    """See `RecordStore.claim`."""
    rows.lock_scope(asked.identity)
    known = _known(rows, asked)
    if isinstance(known, Existing | NotRegenerable | Claimed | Enqueued):
        return known
    busy = _occupied(rows, asked.identity, dead=asked.dead, alive=asked.alive)
    if isinstance(busy, Lapsed):
        return busy
    must_wait = _must_wait(rows, asked, busy)
    if isinstance(must_wait, Busy | Full):
        return must_wait
    record = _insert(rows, asked, known)
    if must_wait:
        return _enqueued(rows, record)
    return _begin(rows, record, owner=asked.owner, ttl=asked.ttl)


def enqueue(rows: Rows, asked: Claim) -> EnqueueAnswer:
    """See `TransactionalRecords.enqueue_in`."""
    rows.lock_scope(asked.identity)
    known = _known(rows, asked)
    if isinstance(known, Claimed):
        return Existing(record=known.record)
    if isinstance(known, Existing | NotRegenerable | Enqueued):
        return known
    running = rows.running(asked.identity)
    must_wait = _must_wait(rows, asked, running if running is not None and running.remaining > 0 else None)
    if isinstance(must_wait, Busy | Full):
        return must_wait
    return _enqueued(rows, _insert(rows, asked, known))


def _enqueued(rows: Rows, record: Record) -> Enqueued:
    record = rows.log(record, [Emitted(kind=kinds.QUEUED, data="{}")])
    # Asked of the queue: a message that is asked again has its old place, before what came after it.
    return Enqueued(record=record, position=_position(rows, record))


def _known(rows: Rows, asked: Claim) -> Existing | Claimed | Enqueued | NotRegenerable | Record | None:
    """What there is already; a record alone is the turn to be asked again."""
    record = rows.find(asked.identity)
    if record is not None:
        if record.status is Status.RUNNING and asked.owner and record.owner == asked.owner:
            return _claimed(record)
        if record.status is Status.QUEUED and record.id == asked.id:
            return Enqueued(record=record, position=_position(rows, record))
        return Existing(record=record)
    if asked.regenerate is None:
        return None
    return _regenerable(rows, asked) or NotRegenerable(turn=asked.regenerate)


def _regenerable(rows: Rows, asked: Claim) -> Record | None:
    target = rows.read(asked.identity.tenant, asked.regenerate or "")
    if target is None or target.identity.scope != asked.identity.scope or not target.status.final or target.expired:
        return None
    if rows.answer_of(target.message) and rows.newest_answered(asked.identity) != target.message:
        return None
    return target


def _occupied(rows: Rows, identity: Identity, *, dead: str | None, alive: str | None) -> Record | Lapsed | None:
    """The running record that makes the scope busy; a dead one is ended here."""
    running = rows.running(identity)
    if running is None or running.remaining > 0 or running.id == alive:
        return running
    if running.id != dead:
        return Lapsed(record=running)
    _end_dead(rows, running)
    return None


def _must_wait(rows: Rows, asked: Claim, running: Record | None) -> bool | Busy | Full:
    """Whether it has to queue; or that it may not."""
    queued = rows.queued(asked.identity)
    in_the_way = running or next(iter(queued), None)
    if in_the_way is None:
        return False
    if asked.on_busy == "reject":
        return Busy(record=in_the_way)
    if len(queued) >= asked.queue_limit:
        return Full(limit=asked.queue_limit)
    return True


def _insert(rows: Rows, asked: Claim, target: Record | None) -> Record:
    sequence = target.sequence if target else rows.next_sequence(asked.identity)
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
        replaces=rows.answer_of(target.message) if target else "",
        sequence=sequence,
        status=Status.QUEUED,
        created_at=rows.wall,
    )
    rows.insert(record)
    return record


def start(rows: Rows, asked: Start) -> Claimed | Busy | Lapsed | Gone:
    """See `RecordStore.start`."""
    rows.lock_scope_of(asked.tenant, asked.id)
    record = rows.read(asked.tenant, asked.id)
    if record is not None and record.status is Status.RUNNING and record.owner == asked.owner:
        return _claimed(record)
    if record is None or record.status is not Status.QUEUED:
        return Gone(record=record)
    busy = _occupied(rows, record.identity, dead=asked.dead, alive=asked.alive)
    if isinstance(busy, Lapsed):
        return busy
    first = rows.queued(record.identity)[0]
    if busy is not None or first.id != record.id:
        return Busy(record=busy or first)
    return _begin(rows, record, owner=asked.owner, ttl=asked.ttl)


def _begin(rows: Rows, record: Record, *, owner: str, ttl: float) -> Claimed:
    epoch = rows.raise_epoch(record.identity)
    record = rows.begin(record, owner=owner, epoch=epoch, ttl=ttl)
    kind = kinds.STARTED if record.attempt == 1 else kinds.RESTARTED
    data = encode({"epoch": epoch, "attempt": record.attempt})
    return _claimed(rows.log(record, [Emitted(kind=kind, data=data)]))


def _claimed(record: Record) -> Claimed:
    message = StoredMessage(turn=record.message, sequence=record.sequence, payload=record.payload)
    return Claimed(record=record, unanswered=(message,))


def append(rows: Rows, asked: Append) -> Appended | Gone:
    """See `RecordStore.append`."""
    record = rows.read(asked.tenant, asked.id)
    if record is None or record.status is not Status.RUNNING or record.epoch != asked.epoch:
        return Gone(record=record)
    # Numbers were fixed when the batch was made: what is logged already is skipped.
    record = rows.log(record, asked.events[max(record.last_seq - asked.after, 0) :])
    return Appended(last_seq=record.last_seq)


def check(rows: Rows, *, tenant: str, execution: str, epoch: int) -> Gone | None:
    """See `TransactionalRecords.check_in`."""
    current = rows.lock_scope_of(tenant, execution)
    record = rows.read(tenant, execution)
    if record is None or record.status is not Status.RUNNING or record.epoch != epoch or current != epoch:
        return Gone(record=record)
    return None


def finish(rows: Rows, asked: Finish) -> Ended | Gone:
    """See `RecordStore.finish`."""
    gone = check(rows, tenant=asked.tenant, execution=asked.id, epoch=asked.epoch)
    record = rows.read(asked.tenant, asked.id)
    if gone is not None or record is None:
        same = (
            record is not None
            and record.epoch == asked.epoch
            and record.status is asked.status
            and record.body == asked.body
        )
        return Ended(record=record, here=False) if record is not None and same else Gone(record=record)
    record = rows.log(record, asked.events[max(record.last_seq - asked.after, 0) :])
    if asked.status is Status.SUCCEEDED:
        old = rows.answer_of(record.message)
        if not old or old == record.replaces:
            rows.answer(record)
        if not asked.keep_payload:
            rows.drop_payload(record)
            record = replace(record, payload=None)
    return Ended(record=rows.end(record, status=asked.status, body=asked.body, reason=asked.reason))


def stop(rows: Rows, asked: Stop) -> Ended | Gone:
    """See `RecordStore.stop`."""
    rows.lock_scope_of(asked.tenant, asked.id)
    record = rows.read(asked.tenant, asked.id)
    if record is None:
        return Gone(record=None)
    if record.status.final:
        return Ended(record=record, here=False)
    if record.status is Status.RUNNING:
        rows.raise_epoch(record.identity)
    return Ended(record=rows.end(record, status=Status.STOPPED, body=stop_body(asked.reason), reason=asked.reason))


def abandon(rows: Rows, asked: Abandon) -> Ended | Requeued | Gone:
    """See `RecordStore.abandon`."""
    rows.lock_scope_of(asked.tenant, asked.id)
    record = rows.read(asked.tenant, asked.id)
    if (
        record is None
        or record.status is not Status.RUNNING
        or record.epoch != asked.epoch
        or record.alive_until != asked.alive_until
        or record.remaining > 0
    ):
        return Gone(record=record)
    after = _end_dead(rows, record)
    return Ended(record=after) if after.status.final else Requeued(record=after)


def _end_dead(rows: Rows, record: Record) -> Record:
    rows.raise_epoch(record.identity)
    if record.recovery == "rerun" and record.attempt < MAX_ATTEMPTS:
        return rows.requeue(record)
    return rows.end(record, status=Status.ABANDONED, body=b"", reason=None)


def touch(rows: Rows, asked: Vouch) -> Record | None:
    """See `RecordStore.touch`."""
    if rows.touch(tenant=asked.tenant, execution=asked.id, epoch=asked.epoch, ttl=asked.ttl):
        return None
    nobody = Identity(tenant=asked.tenant, subject="", scope="", key="")
    unknown = Record(id=asked.id, identity=nobody, handler="", fingerprint="", payload=None, status=Status.ABANDONED)
    return rows.read(asked.tenant, asked.id) or unknown


def _position(rows: Rows, record: Record) -> int:
    return [queued.id for queued in rows.queued(record.identity)].index(record.id) + 1


def position(rows: Rows, *, tenant: str, execution: str) -> int:
    """See `RecordStore.position`."""
    record = rows.read(tenant, execution)
    return _position(rows, record) if record is not None and record.status is Status.QUEUED else 0
