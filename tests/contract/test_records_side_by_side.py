"""Records in memory and on SQLite are asked the same and answer the same, and what they answer keeps the port's promises."""

from __future__ import annotations

import itertools
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from side_by_side import QUICK, SideBySide, comparable

from oneturn.core.backend import Backend
from oneturn.core.event import Logged
from oneturn.core.identity import Identity
from oneturn.core.record import Record
from oneturn.core.status import Status, StopReason
from oneturn.core.steps import Abandon, Append, Claim, Claimed, Enqueued, Finish, Retention, Start, Stop, Vouch
from oneturn.testing.contracts.subject import emitted

SCOPES = tuple(itertools.product(("t", "u"), ("c", "d")))
FINAL = [status for status in Status if status.final]
KEEP = Retention(events=100.0, results=400.0, tombstones=2000.0)

owners = st.sampled_from("abc")
ttls = st.sampled_from((5.0, 20.0003))
shifts = st.sampled_from((0, 0, 0, 0, -1, 1))
"""Mostly the epoch that is true."""


class Records(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.both = SideBySide()
        self.ids: list[tuple[str, str]] = []
        """Tenant and id of all that was ever stored."""
        self.final: dict[str, Record] = {}
        self.epochs: dict[tuple[str, str], int] = {}
        self.number = itertools.count()

    def teardown(self) -> None:
        self.both.close()

    def _any(self, data: st.DataObject, *, strange: bool = True) -> tuple[str, str]:
        """Mostly what is recent."""
        known = self.ids[-6:] + ([("t", "nobody")] if strange or not self.ids else [])
        tenant, record_id = data.draw(st.sampled_from(known))
        return data.draw(st.sampled_from((tenant,) * 7 + ("u",))), record_id

    def _now(self, tenant: str, record_id: str) -> Record | None:
        return self.both.ask(lambda backend: backend.records.read(tenant=tenant, id=record_id))

    def _claimed(self, answer: Any) -> None:
        if isinstance(answer, Claimed | Enqueued):
            name = (answer.record.identity.tenant, answer.record.id)
            if name not in self.ids:
                self.ids.append(name)

    # -- steps --------------------------------------------------------------------------------------------------------

    @rule(
        data=st.data(),
        place=st.sampled_from(SCOPES),
        key=st.sampled_from((None, None, "k", "l")),
        owner=owners,
        ttl=ttls,
        on_busy=st.sampled_from(("enqueue", "enqueue", "reject")),
        recovery=st.sampled_from(("abandon", "rerun")),
        queue_limit=st.sampled_from((0, 2, 8)),
        called=st.sampled_from(("", "", "dead", "alive", "regenerate", "regenerate")),
    )
    def claim(self, data: st.DataObject, place: tuple[str, str], key: str | None, called: str, **more: Any) -> None:
        number = next(self.number)
        name = Identity(tenant=place[0], subject="s", scope=place[1], key=key or f"own{number}")
        more |= {called: self._any(data)[1]} if called else {}
        claim = Claim(
            id=f"id{number}", identity=name, handler="chat", fingerprint="1:f", payload=str(number).encode(), **more
        )
        first = self.both.ask(lambda backend: backend.records.claim(claim))
        self._claimed(first)
        if isinstance(first, Claimed | Enqueued):
            again = self.both.ask(lambda backend: backend.records.claim(claim))
            assert type(again) is type(first), "repeating a step answers what is true"

    @rule(data=st.data(), owner=owners, ttl=ttls, dead=st.booleans())
    def start(self, data: st.DataObject, owner: str, ttl: float, dead: bool) -> None:
        tenant, record_id = self._any(data)
        called = self._any(data)[1] if dead else None
        step = Start(tenant=tenant, id=record_id, owner=owner, ttl=ttl, dead=called)
        self.both.ask(lambda backend: backend.records.start(step))

    @rule(limit=st.sampled_from((1, 2)), ttl=ttls, owner=owners)
    def start_what_is_due(self, limit: int, ttl: float, owner: str) -> None:
        due = self.both.ask(lambda backend: backend.records.due(handlers=["chat"], limit=limit, unknown_after=300.0))
        assert len(due.startable) <= limit >= len(due.lapsed)
        assert all(record.status is Status.QUEUED for record in due.startable)
        assert all(record.status is Status.RUNNING and record.remaining <= 0 for record in due.lapsed)
        for record in due.startable:
            step = Start(tenant=record.identity.tenant, id=record.id, owner=owner, ttl=ttl)
            self.both.ask(lambda backend, step=step: backend.records.start(step))  # type: ignore[misc]

    @rule(data=st.data(), shift=shifts, back=st.integers(0, 2), count=st.integers(0, 3))
    def append(self, data: st.DataObject, shift: int, back: int, count: int) -> None:
        tenant, record_id = self._any(data)
        now = self._now(tenant, record_id)
        epoch, last = (now.epoch or 0, now.last_seq) if now else (1, 1)
        step = Append(
            tenant=tenant,
            id=record_id,
            epoch=epoch + shift,
            after=max(last - back, 1),
            events=emitted(*["text", "step", "data"][:count]),
        )
        first, again = [self.both.ask(lambda backend: backend.records.append(step)) for _ in range(2)]
        assert comparable(first)[0] == comparable(again)[0]

    @rule(
        data=st.data(),
        shift=shifts,
        status=st.sampled_from([Status.SUCCEEDED] * 4 + FINAL),
        count=st.integers(0, 2),
        keep_payload=st.booleans(),
    )
    def finish(self, data: st.DataObject, shift: int, status: Status, count: int, keep_payload: bool) -> None:
        tenant, record_id = self._any(data)
        now = self._now(tenant, record_id)
        epoch, last = (now.epoch or 0, now.last_seq) if now else (1, 1)
        step = Finish(
            tenant=tenant,
            id=record_id,
            epoch=epoch + shift,
            status=status,
            body=b'{"n":%d}' % next(self.number),
            after=last,
            events=emitted(*["text", "step"][:count]),
            keep_payload=keep_payload,
        )
        first, again = [self.both.ask(lambda backend: backend.records.finish(step)) for _ in range(2)]
        assert comparable(first)[0] == comparable(again)[0]

    @rule(data=st.data(), reason=st.sampled_from(list(StopReason)))
    def stop(self, data: st.DataObject, reason: StopReason) -> None:
        tenant, record_id = self._any(data)
        self.both.ask(lambda backend: backend.records.stop(Stop(tenant=tenant, id=record_id, reason=reason)))

    @rule(data=st.data(), shift=shifts)
    def abandon(self, data: st.DataObject, shift: int) -> None:
        tenant, record_id = self._any(data)
        now = self._now(tenant, record_id)
        epoch, until = (now.epoch or 0, now.alive_until) if now else (1, 0.0)
        step = Abandon(tenant=tenant, id=record_id, epoch=epoch + shift, alive_until=until)
        self.both.ask(lambda backend: backend.records.abandon(step))

    @rule(data=st.data(), epoch=st.integers(1, 4), ttl=ttls)
    def touch(self, data: st.DataObject, epoch: int, ttl: float) -> None:
        some = [self._any(data) for _ in range(2)]
        vouches = [Vouch(tenant=tenant, id=record_id, epoch=epoch, ttl=ttl) for tenant, record_id in some]
        assert len(self.both.ask(lambda backend: backend.records.touch(vouches))) == 2

    @rule(seconds=st.sampled_from((1.0, 6.0, 25.0, 25.0, 150.0)))
    def time_passes(self, seconds: float) -> None:
        self.both.times.elapse(seconds)

    @rule(long=st.sampled_from((0.0, 0.0, 400.0, 2000.0)))
    def sweep(self, long: float) -> None:
        self.both.times.elapse(long)
        self.both.ask(lambda backend: backend.records.sweep(KEEP))

    @rule(place=st.sampled_from(SCOPES))
    def erase(self, place: tuple[str, str]) -> None:
        self.both.ask(lambda backend: backend.records.erase(tenant=place[0], scope=place[1]))

    @rule(
        data=st.data(),
        place=st.sampled_from(SCOPES),
        below=st.sampled_from((None, 1, 2, 3)),
        limit=st.sampled_from((1, 2, 50)),
        after=st.tuples(st.integers(0, 3), st.integers(0, 3)),
    )
    def look(
        self, data: st.DataObject, place: tuple[str, str], below: int | None, limit: int, after: tuple[int, int]
    ) -> None:
        (tenant, scope), without = place, self._any(data)[1]

        async def look(backend: Backend) -> object:
            records = backend.records
            return [
                await records.history(tenant=tenant, scope=scope, before_epoch=below, without=without, limit=limit),
                await records.turns(tenant=tenant, scope=scope, before_sequence=below, limit=limit),
                await records.scope_events(tenant=tenant, scope=scope, after=after, limit=limit),
                await records.events(tenant=tenant, id=without, after=after[0], limit=limit),
                await records.position(tenant=tenant, id=without),
            ]

        self.both.ask(look)

    # -- what holds after every step ----------------------------------------------------------------------------------

    @invariant()
    def scopes_are_as_the_port_promises(self) -> None:
        for tenant, scope in SCOPES:

            async def look(backend: Backend, tenant: str = tenant, scope: str = scope) -> tuple[list[Record], int]:
                records = backend.records
                turns = await records.turns(tenant=tenant, scope=scope)
                return turns, await records.scope_epoch(tenant=tenant, scope=scope)

            turns, epoch = self.both.ask(look)
            assert sum(record.status is Status.RUNNING for record in turns) <= 1
            assert all(record.attempt <= (3 if record.recovery == "rerun" else 1) for record in turns)
            epochs = [record.epoch for record in turns if record.epoch is not None]
            assert len(set(epochs)) == len(epochs)
            assert max(epochs, default=0) <= epoch >= self.epochs.get((tenant, scope), 0)
            self.epochs[tenant, scope] = epoch
            for record in turns:
                self._final_is_final(record)

    def _final_is_final(self, record: Record) -> None:
        before = self.final.get(record.id)
        if before is not None:
            outcome = (before.status, before.reason, before.epoch, before.last_seq, before.ended_at)
            assert outcome == (record.status, record.reason, record.epoch, record.last_seq, record.ended_at)
            assert record.body == before.body or record.expired
        if record.status.final:
            self.final[record.id] = record

    @invariant()
    def logs_are_as_the_port_promises(self) -> None:
        for tenant, record_id in self.ids[-6:]:

            async def look(
                backend: Backend, tenant: str = tenant, record_id: str = record_id
            ) -> tuple[Record | None, list[Logged]]:
                records = backend.records
                record = await records.read(tenant=tenant, id=record_id)
                return record, await records.events(tenant=tenant, id=record_id, after=0)

            record, events = self.both.ask(look)
            if record is None or record.expired:
                assert events == []
                continue
            numbers = [event.seq for event in events]
            assert numbers == list(range(numbers[0], record.last_seq + 1))
            assert numbers[0] == 1 or events[0].kind == "snapshot"
            assert [event.terminal for event in events] == [False] * (len(events) - 1) + [record.status.final]
            assert not record.status.final or events[-1].kind == record.status.value


TestRecords = Records.TestCase
TestRecords.settings = QUICK
