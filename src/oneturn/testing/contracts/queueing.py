"""The contract of what waits: `RecordStore.start`, `position` and the startable half of `due`."""

from __future__ import annotations

import asyncio

import pytest

from oneturn.core.status import Status, StopReason
from oneturn.core.steps import Busy, Claimed, Due, Ended, Enqueued, Gone, Lapsed, Start, Stop
from oneturn.testing.contracts.subject import Subject, claim_of, start_of


class QueueingContract:
    """Inherit it and provide a fixture `subject`."""

    async def test_queued_records_start_in_the_order_in_which_they_came(self, subject: Subject) -> None:
        records = subject.backend.records
        running = await subject.claimed()
        waiting = [await subject.enqueued() for _ in range(4)]
        for first, *rest in [waiting[place:] for place in range(4)]:
            await subject.finished(running)
            for later in rest:
                assert await records.start(start_of(later)) == Busy(record=await subject.now(first))
            started = await records.start(start_of(first))
            assert isinstance(started, Claimed)
            running = started.record
            assert running.sequence == first.sequence

    async def test_a_started_record_runs_under_a_raised_epoch(self, subject: Subject) -> None:
        running, waiting = await subject.claimed(), await subject.enqueued(payload=b'{"text":"second"}')
        await subject.finished(running)
        subject.elapse(5)
        answer = await subject.backend.records.start(start_of(waiting, owner="w", ttl=30.0))
        assert isinstance(answer, Claimed)
        record = answer.record
        assert (record.status, record.epoch, record.attempt, record.owner) == (Status.RUNNING, 2, 1, "w")
        assert round(record.remaining, 3) == 30
        assert answer.unanswered[-1].payload == b'{"text":"second"}'
        events = await subject.backend.records.events(tenant="acme", id=record.id, after=0)
        assert [(event.kind, event.data) for event in events] == [
            ("queued", "{}"),
            ("started", '{"epoch":2,"attempt":1}'),
        ]

    async def test_of_many_who_start_a_record_one_does_and_may_ask_again(self, subject: Subject) -> None:
        records = subject.backend.records
        running, waiting = await subject.claimed(), await subject.enqueued()
        await subject.finished(running)
        starts = [start_of(waiting) for _ in range(20)]
        answers = await asyncio.gather(*(records.start(start) for start in starts))
        assert [type(answer) for answer in answers].count(Claimed) == 1
        assert [type(answer) for answer in answers].count(Gone) == 19
        winner = next(place for place, answer in enumerate(answers) if isinstance(answer, Claimed))
        assert await records.start(starts[winner]) == answers[winner]
        assert await subject.kinds(waiting) == ["queued", "started"]

    async def test_nothing_starts_while_another_runs(self, subject: Subject) -> None:
        running, waiting = await subject.claimed(), await subject.enqueued()
        assert await subject.backend.records.start(start_of(waiting)) == Busy(record=running)
        assert await subject.backend.records.start(start_of(waiting, dead=running.id)) == Busy(record=running)

    async def test_a_start_meets_a_lapsed_record_as_a_claim_does(self, subject: Subject) -> None:
        records = subject.backend.records
        dead, waiting = await subject.claimed(ttl=10), await subject.enqueued()
        subject.elapse(11)
        lapsed = await records.start(start_of(waiting))
        assert isinstance(lapsed, Lapsed)
        assert lapsed.record.id == dead.id
        assert isinstance(await records.start(start_of(waiting, alive=dead.id)), Busy)
        started = await records.start(start_of(waiting, dead=dead.id))
        assert isinstance(started, Claimed)
        assert started.record.epoch == 3
        assert await subject.kinds(dead) == ["started", "abandoned"]

    async def test_a_rerun_called_dead_by_a_start_keeps_its_place_before_it(self, subject: Subject) -> None:
        dead, waiting = await subject.claimed(ttl=10, recovery="rerun"), await subject.enqueued()
        subject.elapse(11)
        answer = await subject.backend.records.start(start_of(waiting, dead=dead.id))
        assert isinstance(answer, Busy)
        assert (answer.record.id, answer.record.status) == (dead.id, Status.QUEUED)
        started = await subject.backend.records.start(start_of(dead))
        assert isinstance(started, Claimed)
        assert (started.record.attempt, started.record.epoch) == (2, 3)

    async def test_what_is_unknown_or_final_does_not_start(self, subject: Subject) -> None:
        records = subject.backend.records
        nobody = Start(tenant="acme", id="nobody", owner="w", ttl=60)
        assert await records.start(nobody) == Gone(record=None)
        final = await subject.answered()
        assert await records.start(start_of(final)) == Gone(record=final)

    @pytest.mark.case("T11")
    async def test_a_stop_and_a_start_exclude_each_other(self, subject: Subject) -> None:
        """Whoever comes first: a record that was stopped in the queue is never started after that."""
        records = subject.backend.records
        for _ in range(10):
            running, waiting = await subject.claimed(), await subject.enqueued()
            await subject.finished(running)
            stop = Stop(tenant="acme", id=waiting.id, reason=StopReason.CANCELLED)
            started, stopped = await asyncio.gather(records.start(start_of(waiting)), records.stop(stop))
            assert isinstance(stopped, Ended)
            expected = ["queued", "started", "stopped"] if isinstance(started, Claimed) else ["queued", "stopped"]
            assert await subject.kinds(waiting) == expected
            assert isinstance(await records.start(start_of(waiting)), Gone)

    @pytest.mark.case("T10")
    async def test_a_stopped_queued_record_makes_room_and_ends_with_its_reason(self, subject: Subject) -> None:
        records = subject.backend.records
        await subject.claimed()
        first, second = [await subject.enqueued() for _ in range(2)]
        ended = await records.stop(Stop(tenant="acme", id=first.id, reason=StopReason.CANCELLED))
        assert isinstance(ended, Ended)
        assert (ended.here, ended.record.status, ended.record.epoch) == (True, Status.STOPPED, None)
        assert await records.scope_epoch(tenant="acme", scope="c") == 1
        assert await records.position(tenant="acme", id=second.id) == 1
        await subject.enqueued(queue_limit=2)

    async def test_a_position_counts_the_queued_of_the_scope_from_one(self, subject: Subject) -> None:
        records = subject.backend.records
        running = await subject.claimed()
        waiting = [await subject.enqueued() for _ in range(3)]
        await subject.claimed(scope="other")
        elsewhere = await subject.enqueued(scope="other")
        assert [await records.position(tenant="acme", id=record.id) for record in waiting] == [1, 2, 3]
        assert await records.position(tenant="acme", id=elsewhere.id) == 1
        assert await records.position(tenant="acme", id=running.id) == 0
        assert await records.position(tenant="acme", id="nobody") == 0

    async def test_a_message_that_is_asked_again_is_told_its_old_place(self, subject: Subject) -> None:
        """Its sequence is its message's: it waits before what came after it, and the answer says so."""
        records = subject.backend.records
        first = await subject.answered()
        await subject.claimed()
        later = await subject.enqueued()
        again = await records.claim(claim_of(regenerate=first.id))
        assert isinstance(again, Enqueued)
        assert again.position == await records.position(tenant="acme", id=again.record.id) == 1
        assert await records.position(tenant="acme", id=later.id) == 2

    async def test_startable_is_the_oldest_queued_of_a_scope_that_nothing_alive_holds_up(
        self, subject: Subject
    ) -> None:
        records = subject.backend.records
        ended, first = await subject.claimed(scope="z, free"), await subject.enqueued(scope="z, free")
        await subject.enqueued(scope="z, free")
        await subject.finished(ended)
        subject.elapse(1)
        await subject.claimed(scope="a, lapsed", ttl=10)
        behind_dead = await subject.enqueued(scope="a, lapsed")
        await subject.claimed(scope="alive", ttl=600)
        await subject.enqueued(scope="alive")
        await subject.answered(scope="idle")
        assert [record.id for record in (await self._due(subject)).startable] == [first.id]
        subject.elapse(11)
        assert [record.id for record in (await self._due(subject)).startable] == [first.id, behind_dead.id]
        due = await records.due(handlers=["chat"], limit=1, unknown_after=300)
        assert [record.id for record in due.startable] == [first.id]

    async def _due(self, subject: Subject) -> Due:
        return await subject.backend.records.due(handlers=["chat"], limit=10, unknown_after=300)

    async def test_an_unknown_handlers_record_is_left_to_others_for_a_while(self, subject: Subject) -> None:
        records = subject.backend.records
        ended = await subject.claimed()
        waiting = await subject.enqueued(handler="rare")
        await subject.finished(ended)
        for handlers, known in (([], False), (["chat"], False), (["chat", "rare"], True)):
            due = await records.due(handlers=handlers, limit=10, unknown_after=300)
            assert [record.id for record in due.startable] == [waiting.id] * known
        subject.elapse(299)
        assert (await self._due(subject)).startable == ()
        subject.elapse(2)
        assert [record.id for record in (await self._due(subject)).startable] == [waiting.id]

    async def test_a_message_that_cannot_be_refused_by_a_queue_limit_is_not(self, subject: Subject) -> None:
        """The limit is about waiting: an idle conversation with no room to wait still takes a message."""
        answer = await subject.backend.records.claim(claim_of(queue_limit=0))
        assert isinstance(answer, Claimed)
