"""The contract of `RecordStore`: claiming, queueing, logging, ending, recovering."""

from __future__ import annotations

import asyncio

import pytest

from oneturn.core.event import stop_body
from oneturn.core.identity import Identity
from oneturn.core.status import Status, StopReason
from oneturn.core.steps import (
    Abandon,
    Append,
    Appended,
    Busy,
    Claimed,
    Ended,
    Enqueued,
    Existing,
    Full,
    Gone,
    Lapsed,
    NotRegenerable,
    Requeued,
    Start,
    Stop,
    Vouch,
)
from oneturn.testing.contracts.subject import Subject, claim_of, emitted, finish_of


class RecordStoreContract:
    """Inherit it and provide a fixture `subject`."""

    # -- claiming -----------------------------------------------------------------------------------------------------

    async def test_a_claim_starts_with_a_raised_epoch_and_a_started_event(self, subject: Subject) -> None:
        record = await subject.claimed()
        assert (record.status, record.epoch, record.attempt, record.sequence) == (Status.RUNNING, 1, 1, 1)
        assert round(record.remaining, 3) == 60
        assert await subject.kinds(record) == ["started"]

    @pytest.mark.row("Q3", "Q17")
    async def test_one_record_per_identity_whoever_claims(self, subject: Subject) -> None:
        answers = await asyncio.gather(*(subject.backend.records.claim(claim_of(key="k")) for _ in range(50)))
        claimed = [answer for answer in answers if isinstance(answer, Claimed)]
        existing = [answer for answer in answers if isinstance(answer, Existing)]
        assert (len(claimed), len(existing)) == (1, 49)
        assert {answer.record.id for answer in existing} == {claimed[0].record.id}

    async def test_the_same_owner_claiming_again_is_answered_the_same(self, subject: Subject) -> None:
        claim = claim_of()
        first = await subject.backend.records.claim(claim)
        again = await subject.backend.records.claim(claim)
        assert isinstance(first, Claimed)
        assert isinstance(again, Claimed)
        assert (first.record.epoch, first.record.id) == (again.record.epoch, again.record.id)
        assert await subject.kinds(first.record) == ["started"]
        queued = claim_of()
        assert [type(await subject.backend.records.claim(queued)) for _ in range(2)] == [Enqueued, Enqueued]
        assert len(await subject.backend.records.turns(tenant="acme", scope="c")) == 2

    @pytest.mark.row("Q4")
    async def test_a_busy_scope_meets_its_policy_and_other_scopes_do_not(self, subject: Subject) -> None:
        running = await subject.claimed()
        refused = await subject.backend.records.claim(claim_of(on_busy="reject"))
        assert isinstance(refused, Busy)
        assert refused.record.id == running.id
        queued = await subject.enqueued()
        assert (queued.status, queued.epoch, queued.sequence) == (Status.QUEUED, None, 2)
        assert await subject.kinds(queued) == ["queued"]
        assert (await subject.claimed(scope="other")).epoch == 1

    @pytest.mark.case("T8")
    async def test_the_queue_limit_holds_exactly(self, subject: Subject) -> None:
        await subject.claimed()
        answers = await asyncio.gather(*(subject.backend.records.claim(claim_of(queue_limit=5)) for _ in range(50)))
        assert sum(isinstance(answer, Enqueued) for answer in answers) == 5
        assert all(isinstance(answer, Enqueued | Full) for answer in answers)
        positions = sorted(answer.position for answer in answers if isinstance(answer, Enqueued))
        assert positions == [1, 2, 3, 4, 5]

    async def test_epochs_are_unique_and_grow(self, subject: Subject) -> None:
        epochs = []
        for _ in range(4):
            record = await subject.claimed()
            epochs.append(record.epoch)
            await subject.backend.records.finish(finish_of(record))
        assert epochs == [1, 2, 3, 4]

    @pytest.mark.row("Q18")
    async def test_a_lapsed_record_is_ended_only_when_called_dead(self, subject: Subject) -> None:
        dead = await subject.claimed(ttl=10)
        subject.elapse(11)
        lapsed = await subject.backend.records.claim(claim_of())
        assert isinstance(lapsed, Lapsed)
        assert (lapsed.record.id, lapsed.record.remaining < 0) == (dead.id, True)
        assert isinstance(await subject.backend.records.claim(claim_of(alive=dead.id, on_busy="reject")), Busy)
        after = await subject.claimed(dead=dead.id)
        assert after.epoch == 3
        assert await subject.kinds(dead) == ["started", "abandoned"]

    async def test_calling_a_live_record_dead_changes_nothing(self, subject: Subject) -> None:
        live = await subject.claimed()
        assert isinstance(await subject.backend.records.claim(claim_of(dead=live.id, on_busy="reject")), Busy)
        assert isinstance(await subject.backend.records.finish(finish_of(live)), Ended)

    # -- starting -----------------------------------------------------------------------------------------------------

    @pytest.mark.case("T11")
    async def test_queued_records_start_in_order_once_and_never_after_a_stop(self, subject: Subject) -> None:
        records = subject.backend.records
        running = await subject.claimed()
        first, second, third = [await subject.enqueued() for _ in range(3)]

        def start(record_id: str, owner: str = "w") -> Start:
            return Start(tenant="acme", id=record_id, owner=owner, ttl=60)

        assert isinstance(await records.start(start(first.id)), Busy)
        await records.finish(finish_of(running))
        blocked = await records.start(start(second.id))
        assert isinstance(blocked, Busy)
        assert blocked.record.id == first.id
        await records.stop(Stop(tenant="acme", id=first.id, reason=StopReason.CANCELLED))
        assert isinstance(await records.start(start(first.id)), Gone)
        answers = await asyncio.gather(*(records.start(start(second.id, f"w{n}")) for n in range(10)))
        assert [type(answer) for answer in answers].count(Claimed) == 1
        assert await subject.kinds(first) == ["queued", "stopped"]
        assert await subject.kinds(second) == ["queued", "started"]
        assert await records.position(tenant="acme", id=third.id) == 1
        assert isinstance(await records.start(start("nobody")), Gone)

    async def test_a_new_message_goes_behind_those_that_wait(self, subject: Subject) -> None:
        running = await subject.claimed()
        waiting = await subject.enqueued()
        await subject.backend.records.finish(finish_of(running))
        busy = await subject.backend.records.claim(claim_of(on_busy="reject"))
        assert isinstance(busy, Busy)
        assert busy.record.id == waiting.id
        assert (await subject.enqueued()).sequence == 3

    async def test_due_names_the_oldest_startable_of_each_scope_and_what_lapsed(self, subject: Subject) -> None:
        records = subject.backend.records
        ended = await subject.claimed(scope="a")
        first = await subject.enqueued(scope="a")
        await subject.enqueued(scope="a")
        await records.finish(finish_of(ended))
        await subject.claimed(scope="b", ttl=10)
        behind_dead = await subject.enqueued(scope="b")
        held_up_by = await subject.claimed(scope="d", ttl=600)
        await subject.enqueued(scope="d")
        await records.finish(finish_of(await subject.claimed(scope="x")))
        subject.elapse(11)
        due = await records.due(handlers=["chat"], limit=10, unknown_after=300)
        assert [record.id for record in due.startable] == [first.id, behind_dead.id]
        assert [record.identity.scope for record in due.lapsed] == ["b"]
        assert held_up_by.id not in {record.id for record in due.lapsed}
        assert (await records.due(handlers=["other"], limit=10, unknown_after=300)).startable == ()
        subject.elapse(300)
        late = await records.due(handlers=[], limit=10, unknown_after=300)
        assert {record.id for record in late.startable} >= {first.id, behind_dead.id}

    # -- logging ------------------------------------------------------------------------------------------------------

    async def test_events_are_numbered_without_gaps_and_logged_once(self, subject: Subject) -> None:
        record, records = await subject.claimed(), subject.backend.records
        append = Append(tenant="acme", id=record.id, epoch=1, after=1, events=emitted("text", "step"))
        for _ in range(2):
            assert await records.append(append) == Appended(last_seq=3)
        overlapping = Append(tenant="acme", id=record.id, epoch=1, after=2, events=emitted("step", "data"))
        assert await records.append(overlapping) == Appended(last_seq=4)
        assert await subject.kinds(record) == ["started", "text", "step", "data"]
        assert [event.seq for event in await records.events(tenant="acme", id=record.id, after=2, limit=1)] == [3]

    async def test_a_stale_epoch_logs_and_finishes_nothing(self, subject: Subject) -> None:
        record, records = await subject.claimed(), subject.backend.records
        assert isinstance(
            await records.append(Append(tenant="acme", id=record.id, epoch=9, after=1, events=emitted("text"))), Gone
        )
        assert isinstance(await records.finish(finish_of(record, epoch=9)), Gone)
        assert await subject.kinds(record) == ["started"]

    # -- ending -------------------------------------------------------------------------------------------------------

    @pytest.mark.case("O6", "T24")
    async def test_a_finish_is_final_idempotent_and_carries_pending_events(self, subject: Subject) -> None:
        record, records = await subject.claimed(), subject.backend.records
        finish = finish_of(record, events=emitted("text", "data"))
        first, again = await records.finish(finish), await records.finish(finish)
        assert isinstance(first, Ended)
        assert isinstance(again, Ended)
        assert (first.here, again.here) == (True, False)
        assert isinstance(await records.finish(finish_of(record, body=b'"other"')), Gone)
        stopped = await records.stop(Stop(tenant="acme", id=record.id, reason=StopReason.CANCELLED))
        assert isinstance(stopped, Ended)
        assert (stopped.here, stopped.record.status, stopped.record.body) == (False, Status.SUCCEEDED, b'"done"')
        events = await records.events(tenant="acme", id=record.id, after=0)
        assert [event.kind for event in events] == ["started", "text", "data", "succeeded"]
        assert events[-1].data == '{"result":"done"}'

    @pytest.mark.row("Q14")
    @pytest.mark.case("T24")
    async def test_a_stop_from_outside_takes_the_epoch_away(self, subject: Subject) -> None:
        record, records = await subject.claimed(), subject.backend.records
        ended = await records.stop(Stop(tenant="acme", id=record.id, reason=StopReason.REVOKED))
        assert isinstance(ended, Ended)
        assert (ended.record.status, ended.record.reason) == (Status.STOPPED, StopReason.REVOKED)
        assert ended.record.body == stop_body(StopReason.REVOKED)
        assert await records.scope_epoch(tenant="acme", scope="c") == 2
        assert isinstance(await records.finish(finish_of(record)), Gone)
        append = Append(tenant="acme", id=record.id, epoch=1, after=1, events=emitted("text"))
        assert isinstance(await records.append(append), Gone)
        assert await subject.kinds(record) == ["started", "stopped"]
        assert await records.stop(Stop(tenant="acme", id="nobody", reason=StopReason.CANCELLED)) == Gone(record=None)

    # -- recovering ---------------------------------------------------------------------------------------------------

    @pytest.mark.row("Q18")
    async def test_only_what_nobody_vouched_for_is_abandoned(self, subject: Subject) -> None:
        record, records = await subject.claimed(ttl=10), subject.backend.records
        abandon = Abandon(tenant="acme", id=record.id, epoch=1, alive_until=record.alive_until)
        assert isinstance(await records.abandon(abandon), Gone)
        subject.elapse(9)
        assert await records.touch([Vouch(tenant="acme", id=record.id, epoch=1, ttl=10)]) == [None]
        subject.elapse(9)
        assert isinstance(await records.abandon(abandon), Gone)
        subject.elapse(2)
        assert isinstance(await records.abandon(abandon), Gone)
        seen = await records.read(tenant="acme", id=record.id)
        assert seen is not None
        ended = await records.abandon(Abandon(tenant="acme", id=record.id, epoch=1, alive_until=seen.alive_until))
        assert isinstance(ended, Ended)
        assert ended.record.status is Status.ABANDONED
        assert await subject.kinds(record) == ["started", "abandoned"]
        (told,) = await records.touch([Vouch(tenant="acme", id=record.id, epoch=1, ttl=10)])
        assert told is not None
        assert told.status is Status.ABANDONED

    async def test_a_rerun_is_queued_again_twice_and_then_abandoned(self, subject: Subject) -> None:
        records = subject.backend.records
        record = await subject.claimed(ttl=10, recovery="rerun")
        outcomes = []
        for attempt in range(1, 4):
            subject.elapse(11)
            seen = await records.read(tenant="acme", id=record.id)
            assert seen is not None
            assert seen.attempt == attempt
            answer = await records.abandon(
                Abandon(tenant="acme", id=record.id, epoch=seen.epoch or 0, alive_until=seen.alive_until)
            )
            outcomes.append(type(answer))
            if isinstance(answer, Requeued):
                assert answer.record.status is Status.QUEUED
                await records.start(Start(tenant="acme", id=record.id, owner=f"w{attempt}", ttl=10))
        assert outcomes == [Requeued, Requeued, Ended]
        assert await subject.kinds(record) == ["started", "restarted", "restarted", "abandoned"]

    async def test_a_touch_answers_each_vouch_in_order(self, subject: Subject) -> None:
        records = subject.backend.records
        first, second = await subject.claimed(scope="a"), await subject.claimed(scope="b")
        await records.finish(finish_of(first))
        answers = await records.touch(
            [
                Vouch(tenant="acme", id=first.id, epoch=1, ttl=5),
                Vouch(tenant="acme", id=second.id, epoch=1, ttl=5),
                Vouch(tenant="acme", id="nobody", epoch=1, ttl=5),
                Vouch(tenant="acme", id=second.id, epoch=7, ttl=5),
            ]
        )
        states = [answer and answer.status for answer in answers]
        assert states == [Status.SUCCEEDED, None, Status.ABANDONED, Status.RUNNING]

    # -- looking ------------------------------------------------------------------------------------------------------

    @pytest.mark.case("O4", "T28")
    async def test_nothing_of_a_tenant_is_reachable_with_anothers_name(self, subject: Subject) -> None:
        record, records = await subject.claimed(), subject.backend.records
        assert await records.read(tenant="umbrella", id=record.id) is None
        assert (
            await records.find(Identity(tenant="umbrella", subject="ada", scope="c", key=record.identity.key)) is None
        )
        assert await records.events(tenant="umbrella", id=record.id, after=0) == []
        assert await records.scope_events(tenant="umbrella", scope="c", after=(0, 0)) == []
        assert await records.turns(tenant="umbrella", scope="c") == []
        assert await records.stop(Stop(tenant="umbrella", id=record.id, reason=StopReason.CANCELLED)) == Gone(
            record=None
        )
        assert await records.finish(finish_of(record, tenant="umbrella")) == Gone(record=None)
        append = Append(tenant="umbrella", id=record.id, epoch=1, after=1, events=emitted("text"))
        assert await records.append(append) == Gone(record=None)
        assert await records.erase(tenant="umbrella", scope="c") == 0
        (told,) = await records.touch([Vouch(tenant="umbrella", id=record.id, epoch=1, ttl=5)])
        assert told is not None
        assert told.payload is None
        assert await records.scope_epoch(tenant="umbrella", scope="c") == 0
        assert (await subject.claimed(tenant="umbrella", key=record.identity.key)).epoch == 1

    async def test_a_scopes_events_come_by_epoch_and_number_after_a_cursor(self, subject: Subject) -> None:
        records = subject.backend.records
        first = await subject.claimed()
        await records.finish(finish_of(first, events=emitted("text")))
        second = await subject.claimed()
        await subject.enqueued()
        rows = await records.scope_events(tenant="acme", scope="c", after=(1, 1))
        assert [(row[0], row[1], row[2].seq) for row in rows] == [
            (first.id, 1, 2),
            (first.id, 1, 3),
            (second.id, 2, 1),
        ]

    async def test_regenerating_replaces_the_newest_answer_only(self, subject: Subject) -> None:
        records = subject.backend.records
        first = await subject.claimed()
        await records.finish(finish_of(first, body=b'"one"'))
        again = await subject.claimed(regenerate=first.id)
        assert (again.sequence, again.message, again.replaces) == (first.sequence, first.id, first.id)
        await records.finish(finish_of(again, body=b'"better"'))
        second = await subject.claimed()
        await records.finish(finish_of(second, body=b'"two"'))
        history = await records.history(tenant="acme", scope="c")
        assert [(message.turn, message.answer) for message in history] == [
            (first.id, b'"better"'),
            (second.id, b'"two"'),
        ]
        assert isinstance(await records.claim(claim_of(regenerate=first.id)), NotRegenerable)
        assert isinstance(await records.claim(claim_of(regenerate="nobody")), NotRegenerable)
        below = await records.history(tenant="acme", scope="c", before_epoch=second.epoch, without=first.id)
        assert below == []
