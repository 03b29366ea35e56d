"""Records in memory: the reference of the port, one lock, no hidden time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from oneturn.core import event as kinds
from oneturn.core.clock import Times
from oneturn.core.event import Logged, encode, fold, stop_body, terminal_event
from oneturn.core.failpoint import failpoint
from oneturn.core.identity import Identity
from oneturn.core.record import Record, StoredMessage
from oneturn.core.rules import may_rerun, started_event
from oneturn.core.status import Status, StopReason
from oneturn.core.steps import (
    Abandon,
    Append,
    Appended,
    Busy,
    Claim,
    Claimed,
    Due,
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
    Retention,
    Start,
    Stop,
    Swept,
    Vouch,
)
from oneturn.core.store import ClaimAnswer

T = TypeVar("T")
ScopeName = tuple[str, str]


@dataclass(slots=True)
class _Scope:
    epoch: int = 0
    sequence: int = 0
    ids: list[str] = field(default_factory=list)


class MemoryRecords:
    """See `oneturn.core.store.RecordStore`."""

    def __init__(self, clock: Times) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._records: dict[str, Record] = {}
        self._by_identity: dict[Identity, str] = {}
        self._scopes: dict[ScopeName, _Scope] = {}
        self._events: dict[str, list[Logged]] = {}
        self._answers: dict[str, str] = {}
        """Message (the id of the record that brought it) → the id of the execution that answered it."""

    async def _step(self, name: str, step: Callable[[], T]) -> T:
        await failpoint(f"records.{name}.before")
        with self._lock:
            answer = step()
        await failpoint(f"records.{name}.after")
        return answer

    # -- admitting and starting ---------------------------------------------------------------------------------------

    async def claim(self, claim: Claim) -> ClaimAnswer:
        """See the port."""
        return await self._step("claim", lambda: self._claim(claim))

    def _claim(self, claim: Claim) -> ClaimAnswer:
        identity = claim.identity
        if (found := self._by_identity.get(identity)) is not None:
            return self._again(self._records[found], claim)
        target = self._regenerable(claim) if claim.regenerate is not None else None
        if claim.regenerate is not None and target is None:
            return NotRegenerable(turn=claim.regenerate)
        return self._admit(claim, target)

    def _admit(self, claim: Claim, target: Record | None) -> ClaimAnswer:
        identity = claim.identity
        busy = self._occupied(identity, dead=claim.dead, alive=claim.alive)
        if isinstance(busy, Lapsed):
            return busy
        queued = self._queued(identity.tenant, identity.scope)
        in_the_way = busy or (queued[0] if queued else None)
        if in_the_way is not None and claim.on_busy == "reject":
            return Busy(record=self._seen(in_the_way))
        if in_the_way is not None and len(queued) >= claim.queue_limit:
            return Full(limit=claim.queue_limit)
        record = self._insert(claim, target)
        if in_the_way is not None:
            record = self._log(record, [Emitted(kind=kinds.QUEUED, data="{}")])
            return Enqueued(record=self._seen(record), position=len(queued) + 1)
        return self._begin(record, owner=claim.owner, ttl=claim.ttl)

    def _again(self, record: Record, claim: Claim) -> ClaimAnswer:
        if record.status is Status.RUNNING and claim.owner and record.owner == claim.owner:
            return self._claimed(record)
        if record.status is Status.QUEUED and record.id == claim.id:
            return Enqueued(record=self._seen(record), position=self._position(record))
        return Existing(record=self._seen(record))

    def _regenerable(self, claim: Claim) -> Record | None:
        target = self._get(claim.identity.tenant, claim.regenerate or "")
        if target is None or target.identity.scope != claim.identity.scope or not target.status.final:
            return None
        message = self._records.get(target.message)
        if message is None or message.payload is None:
            return None
        answered = self._answered(claim.identity.tenant, claim.identity.scope)
        if target.message in self._answers and answered[-1].turn != target.message:
            return None
        return target

    def _insert(self, claim: Claim, target: Record | None) -> Record:
        scope = self._scope(claim.identity.tenant, claim.identity.scope)
        if target is None:
            scope.sequence += 1
        message = target.message if target else claim.id
        record = Record(
            id=claim.id,
            identity=claim.identity,
            handler=claim.handler,
            fingerprint=claim.fingerprint,
            payload=claim.payload,
            claims=dict(claim.claims),
            recovery=claim.recovery,
            run_limit=claim.run_limit,
            message=message,
            replaces=self._answers.get(message, "") if target else "",
            sequence=target.sequence if target else scope.sequence,
            status=Status.QUEUED,
            created_at=self._clock.wall(),
        )
        self._records[record.id] = record
        self._by_identity[record.identity] = record.id
        self._events[record.id] = []
        scope.ids.append(record.id)
        return record

    async def start(self, start: Start) -> Claimed | Busy | Lapsed | Gone:
        """See the port."""
        return await self._step("start", lambda: self._start(start))

    def _start(self, start: Start) -> Claimed | Busy | Lapsed | Gone:
        record = self._get(start.tenant, start.id)
        if record is None:
            return Gone(record=None)
        if record.status is Status.RUNNING and record.owner == start.owner:
            return self._claimed(record)
        if record.status is not Status.QUEUED:
            return Gone(record=self._seen(record))
        busy = self._occupied(record.identity, dead=start.dead, alive=start.alive)
        if isinstance(busy, Lapsed):
            return busy
        first = self._queued(record.identity.tenant, record.identity.scope)[0]
        if busy is not None or first.id != record.id:
            return Busy(record=self._seen(busy or first))
        return self._begin(record, owner=start.owner, ttl=start.ttl)

    def _occupied(self, identity: Identity, *, dead: str | None, alive: str | None) -> Record | Lapsed | None:
        """The running record that makes the scope busy; a dead one is ended here."""
        running = self._running(identity.tenant, identity.scope)
        if running is None or running.alive_until > self._clock.monotonic() or running.id == alive:
            return running
        if running.id != dead:
            return Lapsed(record=self._seen(running))
        self._end_dead(running)
        return None

    def _begin(self, record: Record, *, owner: str, ttl: float) -> Claimed:
        scope = self._scope(record.identity.tenant, record.identity.scope)
        scope.epoch += 1
        record = self._put(
            replace(
                record,
                status=Status.RUNNING,
                owner=owner,
                epoch=scope.epoch,
                attempt=record.attempt + 1,
                alive_until=self._clock.monotonic() + ttl,
                started_at=self._clock.wall(),
            )
        )
        return self._claimed(self._log(record, [started_event(epoch=scope.epoch, attempt=record.attempt)]))

    def _claimed(self, record: Record) -> Claimed:
        message = StoredMessage(turn=record.message, sequence=record.sequence, payload=record.payload)
        return Claimed(record=self._seen(record), unanswered=(message,))

    # -- running ------------------------------------------------------------------------------------------------------

    async def append(self, append: Append) -> Appended | Gone:
        """See the port."""
        return await self._step("append", lambda: self._append(append))

    def _append(self, append: Append) -> Appended | Gone:
        record = self._get(append.tenant, append.id)
        if record is None or record.status is not Status.RUNNING or record.epoch != append.epoch:
            return Gone(record=self._seen(record) if record else None)
        record = self._log(record, append.events[max(record.last_seq - append.after, 0) :])
        return Appended(last_seq=record.last_seq)

    async def finish(self, finish: Finish) -> Ended | Gone:
        """See the port."""
        return await self._step("finish", lambda: self._finish(finish))

    def _finish(self, finish: Finish) -> Ended | Gone:
        record = self._get(finish.tenant, finish.id)
        if record is None:
            return Gone(record=None)
        if record.epoch == finish.epoch and record.status is finish.status and record.body == finish.body:
            return Ended(record=self._seen(record), here=False)
        scope = self._scope(record.identity.tenant, record.identity.scope)
        if record.status is not Status.RUNNING or record.epoch != finish.epoch or scope.epoch != finish.epoch:
            return Gone(record=self._seen(record))
        record = self._log(record, finish.events[max(record.last_seq - finish.after, 0) :])
        if finish.status is Status.SUCCEEDED:
            record = self._answer(record, keep_payload=finish.keep_payload)
        return Ended(record=self._end(record, finish.status, finish.body, finish.reason))

    def _answer(self, record: Record, *, keep_payload: bool) -> Record:
        old = self._answers.get(record.message, "")
        if not old or old == record.replaces:
            self._answers[record.message] = record.id
        if not keep_payload:
            message = self._records.get(record.message)
            if message is not None and message.id != record.id:
                self._put(replace(message, payload=None))
            record = self._put(replace(record, payload=None))
        return record

    async def stop(self, stop: Stop) -> Ended | Gone:
        """See the port."""
        return await self._step("stop", lambda: self._stop(stop))

    def _stop(self, stop: Stop) -> Ended | Gone:
        record = self._get(stop.tenant, stop.id)
        if record is None:
            return Gone(record=None)
        if record.status.final:
            return Ended(record=self._seen(record), here=False)
        self._raise_epoch(record)
        return Ended(record=self._end(record, Status.STOPPED, stop_body(stop.reason), stop.reason))

    async def abandon(self, abandon: Abandon) -> Ended | Requeued | Gone:
        """See the port."""
        return await self._step("abandon", lambda: self._abandon(abandon))

    def _abandon(self, abandon: Abandon) -> Ended | Requeued | Gone:
        record = self._get(abandon.tenant, abandon.id)
        if (
            record is None
            or record.status is not Status.RUNNING
            or record.epoch != abandon.epoch
            or record.alive_until != abandon.alive_until
            or record.alive_until > self._clock.monotonic()
        ):
            return Gone(record=self._seen(record) if record else None)
        after = self._end_dead(record)
        return Ended(record=after) if after.status.final else Requeued(record=after)

    def _end_dead(self, record: Record) -> Record:
        self._raise_epoch(record)
        if may_rerun(record):
            return self._seen(self._put(replace(record, status=Status.QUEUED, owner="", epoch=None)))
        return self._end(record, Status.ABANDONED, b"", None)

    def _raise_epoch(self, record: Record) -> None:
        if record.status is Status.RUNNING:
            self._scope(record.identity.tenant, record.identity.scope).epoch += 1

    def _end(self, record: Record, status: Status, body: bytes, reason: StopReason | None) -> Record:
        seq = record.last_seq + 1
        self._events[record.id].append(terminal_event(seq=seq, status=status, body=body))
        ended = replace(
            record, status=status, body=body, reason=reason, last_seq=seq, ended_at=self._clock.wall(), owner=""
        )
        return self._seen(self._put(ended))

    def _log(self, record: Record, events: Sequence[Emitted]) -> Record:
        for emitted in events:
            record = replace(record, last_seq=record.last_seq + 1)
            self._events[record.id].append(Logged(seq=record.last_seq, kind=emitted.kind, data=emitted.data))
        return self._put(record)

    async def touch(self, vouches: Sequence[Vouch]) -> list[Record | None]:
        """See the port."""
        return await self._step("touch", lambda: [self._touch(vouch) for vouch in vouches])

    def _touch(self, vouch: Vouch) -> Record | None:
        record = self._get(vouch.tenant, vouch.id)
        if record is None:
            nobody = Identity(tenant=vouch.tenant, subject="", scope="", key="")
            return Record(
                id=vouch.id, identity=nobody, handler="", fingerprint="", payload=None, status=Status.ABANDONED
            )
        if record.status is not Status.RUNNING or record.epoch != vouch.epoch:
            return self._seen(record)
        self._put(replace(record, alive_until=self._clock.monotonic() + vouch.ttl))
        return None

    # -- looking ------------------------------------------------------------------------------------------------------

    async def due(self, *, handlers: Sequence[str], limit: int, unknown_after: float) -> Due:
        """See the port."""
        return await self._step("due", lambda: self._due(frozenset(handlers), limit, unknown_after))

    def _due(self, handlers: frozenset[str], limit: int, unknown_after: float) -> Due:
        now, long_ago = self._clock.monotonic(), self._clock.wall() - unknown_after
        startable: list[Record] = []
        lapsed: list[Record] = []
        for tenant, scope in self._scopes:
            running = self._running(tenant, scope)
            if running is not None and running.alive_until <= now:
                lapsed.append(self._seen(running))
            elif running is not None:
                continue
            startable.extend(
                self._seen(first)
                for first in self._queued(tenant, scope)[:1]
                if first.handler in handlers or first.created_at < long_ago
            )
        startable.sort(key=lambda record: record.created_at)
        lapsed.sort(key=lambda record: record.alive_until)
        return Due(startable=tuple(startable[:limit]), lapsed=tuple(lapsed[:limit]))

    async def find(self, identity: Identity) -> Record | None:
        """See the port."""

        def step() -> Record | None:
            found = self._by_identity.get(identity)
            return self._seen(self._records[found]) if found is not None else None

        return await self._step("find", step)

    async def read(self, *, tenant: str, id: str) -> Record | None:  # noqa: A002 - the field's word
        """See the port."""

        def step() -> Record | None:
            record = self._get(tenant, id)
            return self._seen(record) if record else None

        return await self._step("read", step)

    async def events(self, *, tenant: str, id: str, after: int, limit: int = 1000) -> list[Logged]:  # noqa: A002
        """See the port."""

        def step() -> list[Logged]:
            log = self._events.get(id, []) if self._get(tenant, id) else []
            return [logged for logged in log if logged.seq > after][:limit]

        return await self._step("events", step)

    async def scope_events(
        self, *, tenant: str, scope: str, after: tuple[int, int], limit: int = 1000
    ) -> list[tuple[str, int, Logged]]:
        """See the port."""

        def step() -> list[tuple[str, int, Logged]]:
            rows = [
                (record.id, record.epoch, logged)
                for record in self._of(tenant, scope)
                if record.epoch is not None
                for logged in self._events[record.id]
                if (record.epoch, logged.seq) > after
            ]
            return sorted(rows, key=lambda row: (row[1], row[2].seq))[:limit]

        return await self._step("scope_events", step)

    async def position(self, *, tenant: str, id: str) -> int:  # noqa: A002
        """See the port."""

        def step() -> int:
            record = self._get(tenant, id)
            return self._position(record) if record and record.status is Status.QUEUED else 0

        return await self._step("position", step)

    async def history(
        self, *, tenant: str, scope: str, before_epoch: int | None = None, without: str = "", limit: int = 50
    ) -> list[StoredMessage]:
        """See the port."""

        def step() -> list[StoredMessage]:
            answered = self._answered(tenant, scope, before_epoch=before_epoch)
            return [message for message in answered if message.turn != without][-limit:]

        return await self._step("history", step)

    async def turns(
        self, *, tenant: str, scope: str, limit: int = 100, before_sequence: int | None = None
    ) -> list[Record]:
        """See the port."""

        def step() -> list[Record]:
            records = [
                record
                for record in self._of(tenant, scope)
                if before_sequence is None or record.sequence < before_sequence
            ]
            records.sort(key=lambda record: (record.sequence, record.created_at))
            return [self._seen(record) for record in records[-limit:]]

        return await self._step("turns", step)

    async def scope_epoch(self, *, tenant: str, scope: str) -> int:
        """See the port."""
        return await self._step("scope_epoch", lambda: self._scopes.get((tenant, scope), _Scope()).epoch)

    # -- forgetting ---------------------------------------------------------------------------------------------------

    async def sweep(self, retention: Retention) -> Swept:
        """See the port."""
        return await self._step("sweep", lambda: self._sweep(retention))

    def _sweep(self, retention: Retention) -> Swept:
        now, events, results, tombstones = self._clock.wall(), 0, 0, 0
        for record in list(self._records.values()):
            if record.ended_at is None:
                continue
            age = now - record.ended_at
            if age >= retention.tombstones:
                self._delete(record)
                tombstones += 1
            elif age >= retention.results and not record.expired:
                self._empty(record)
                results += 1
            elif age >= retention.events and len(log := self._events[record.id]) > 1:
                *before, last = log
                if [logged.kind for logged in before] != [kinds.SNAPSHOT]:
                    events += len(before) - 1
                    folded = Logged(seq=last.seq - 1, kind=kinds.SNAPSHOT, data=encode(fold(before)))
                    self._events[record.id] = [folded, last]
        return Swept(events=events, results=results, tombstones=tombstones)

    async def erase(self, *, tenant: str, scope: str) -> int:
        """See the port."""

        def step() -> int:
            records = [record for record in self._of(tenant, scope) if record.status.final and not record.expired]
            for record in records:
                self._empty(record)
            return len(records)

        return await self._step("erase", step)

    def _empty(self, record: Record) -> None:
        self._put(replace(record, payload=None, body=b"", claims={}, expired=True))
        self._events[record.id] = []
        self._answers = {m: e for m, e in self._answers.items() if record.id not in (m, e)}

    def _delete(self, record: Record) -> None:
        self._empty(record)
        del self._records[record.id], self._by_identity[record.identity], self._events[record.id]
        self._scope(record.identity.tenant, record.identity.scope).ids.remove(record.id)

    # -- rows ---------------------------------------------------------------------------------------------------------

    def _scope(self, tenant: str, scope: str) -> _Scope:
        return self._scopes.setdefault((tenant, scope), _Scope())

    def _of(self, tenant: str, scope: str) -> list[Record]:
        found = self._scopes.get((tenant, scope))
        return [self._records[id_] for id_ in found.ids] if found else []

    def _get(self, tenant: str, id_: str) -> Record | None:
        record = self._records.get(id_)
        return record if record is not None and record.identity.tenant == tenant else None

    def _put(self, record: Record) -> Record:
        self._records[record.id] = record
        return record

    def _seen(self, record: Record) -> Record:
        return replace(record, remaining=record.alive_until - self._clock.monotonic())

    def _running(self, tenant: str, scope: str) -> Record | None:
        return next((record for record in self._of(tenant, scope) if record.status is Status.RUNNING), None)

    def _queued(self, tenant: str, scope: str) -> list[Record]:
        queued = [record for record in self._of(tenant, scope) if record.status is Status.QUEUED]
        return sorted(queued, key=lambda record: (record.sequence, record.created_at))

    def _position(self, record: Record) -> int:
        ids = [queued.id for queued in self._queued(record.identity.tenant, record.identity.scope)]
        return ids.index(record.id) + 1

    def _answered(self, tenant: str, scope: str, *, before_epoch: int | None = None) -> list[StoredMessage]:
        rows: list[tuple[int, StoredMessage]] = []
        for message in self._of(tenant, scope):
            answer = self._records.get(self._answers.get(message.id, ""))
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
