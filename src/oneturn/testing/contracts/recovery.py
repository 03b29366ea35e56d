"""The contract of recovery: `RecordStore.touch`, `abandon` and the lapsed half of `due`."""

from __future__ import annotations

from typing import Any

import pytest

from oneturn.core.record import Record
from oneturn.core.status import Status
from oneturn.core.steps import Abandon, Claimed, Ended, Gone, Requeued, Vouch
from oneturn.testing.contracts.ending import stop_of
from oneturn.testing.contracts.subject import Subject, append_of, finish_of, start_of


def abandon_of(record: Record, **changes: Any) -> Abandon:
    """What a process that read this record makes of it."""
    values: dict[str, Any] = {
        "tenant": record.identity.tenant,
        "id": record.id,
        "epoch": record.epoch,
        "alive_until": record.alive_until,
    }
    return Abandon(**{**values, **changes})


def vouch_of(record: Record, **changes: Any) -> Vouch:
    """What a process that runs this record says of it."""
    values: dict[str, Any] = {
        "tenant": record.identity.tenant,
        "id": record.id,
        "epoch": record.epoch,
        "ttl": 10.0,
    }
    return Vouch(**{**values, **changes})


class RecoveryContract:
    """Inherit it and provide a fixture `subject`."""

    async def test_a_record_counts_as_alive_for_its_ttl_to_the_millisecond(self, subject: Subject) -> None:
        record = await subject.claimed(ttl=10)
        subject.elapse(9.999)
        assert (await subject.now(record)).remaining > 0
        assert await self._lapsed(subject) == []
        subject.elapse(0.002)
        assert (await subject.now(record)).remaining < 0
        assert await self._lapsed(subject) == [record.id]

    async def _lapsed(self, subject: Subject, limit: int = 10) -> list[str]:
        due = await subject.backend.records.due(handlers=[], limit=limit, unknown_after=1e9)
        return [record.id for record in due.lapsed]

    async def test_due_names_what_lapsed_oldest_first_up_to_a_limit(self, subject: Subject) -> None:
        late, early, _ = [await subject.claimed(scope=f"c{ttl}", ttl=ttl) for ttl in (20, 10, 600)]
        await subject.answered(scope="ended", ttl=1)
        subject.elapse(30)
        assert await self._lapsed(subject) == [early.id, late.id]
        assert await self._lapsed(subject, limit=1) == [early.id]

    @pytest.mark.case("T21")
    async def test_a_touched_record_is_alive_for_a_full_ttl_from_now(self, subject: Subject) -> None:
        record, records = await subject.claimed(ttl=10), subject.backend.records
        for _ in range(5):
            subject.elapse(9)
            assert await records.touch([vouch_of(record)]) == [None]
            now = await subject.now(record)
            assert round(now.remaining, 3) == 10
            assert now.alive_until != record.alive_until
        assert await records.touch([]) == []

    async def test_a_lapsed_record_that_still_runs_may_be_vouched_for_again(self, subject: Subject) -> None:
        record = await subject.claimed(ttl=10)
        subject.elapse(60)
        assert await subject.backend.records.touch([vouch_of(record)]) == [None]
        assert round((await subject.now(record)).remaining, 3) == 10

    async def test_a_touch_answers_each_vouch_in_order(self, subject: Subject) -> None:
        records = subject.backend.records
        first, second = await subject.claimed(scope="a"), await subject.claimed(scope="b")
        queued = await subject.enqueued(scope="b")
        ended = await subject.finished(first)
        answers = await records.touch(
            [
                vouch_of(first),
                vouch_of(second),
                vouch_of(second, id="nobody"),
                vouch_of(second, epoch=7),
                vouch_of(queued, epoch=1),
            ]
        )
        assert [answer and (answer.id, answer.status) for answer in answers] == [
            (first.id, Status.SUCCEEDED),
            None,
            ("nobody", Status.ABANDONED),
            (second.id, Status.RUNNING),
            (queued.id, Status.QUEUED),
        ]
        assert answers[0] == ended

    @pytest.mark.row("Q18")
    async def test_only_what_nobody_vouched_for_is_abandoned(self, subject: Subject) -> None:
        record, records = await subject.claimed(ttl=10), subject.backend.records
        assert isinstance(await records.abandon(abandon_of(record)), Gone)
        subject.elapse(9)
        assert await records.touch([vouch_of(record)]) == [None]
        subject.elapse(11)
        assert isinstance(await records.abandon(abandon_of(record)), Gone), "it was vouched for since it was read"
        seen = await subject.now(record)
        assert isinstance(await records.abandon(abandon_of(seen, epoch=2)), Gone)
        assert isinstance(await records.abandon(abandon_of(seen, alive_until=seen.alive_until - 1)), Gone)
        ended = await records.abandon(abandon_of(seen))
        assert isinstance(ended, Ended)
        assert (ended.record.status, ended.record.body, ended.record.owner) == (Status.ABANDONED, b"", "")
        assert await subject.kinds(record) == ["started", "abandoned"]
        assert await records.scope_epoch(tenant="acme", scope="c") == 2
        assert await records.abandon(abandon_of(seen)) == Gone(record=ended.record)
        assert await records.abandon(abandon_of(seen, id="nobody")) == Gone(record=None)

    @pytest.mark.case("T20")
    async def test_the_abandoned_executor_that_wakes_is_refused_everything(self, subject: Subject) -> None:
        record, records = await subject.claimed(ttl=10), subject.backend.records
        subject.elapse(11)
        ended = await records.abandon(abandon_of(record))
        assert isinstance(ended, Ended)
        assert await records.append(append_of(record, "text")) == Gone(record=ended.record)
        assert await records.finish(finish_of(record)) == Gone(record=ended.record)
        assert await records.touch([vouch_of(record)]) == [ended.record]
        assert await records.history(tenant="acme", scope="c") == []

    @pytest.mark.case("T22")
    async def test_a_rerun_is_queued_again_twice_and_then_abandoned(self, subject: Subject) -> None:
        records = subject.backend.records
        record = await subject.claimed(ttl=10, recovery="rerun")
        outcomes = []
        for attempt in range(1, 4):
            subject.elapse(11)
            seen = await subject.now(record)
            assert seen.attempt == attempt
            answer = await records.abandon(abandon_of(seen))
            outcomes.append(type(answer))
            if isinstance(answer, Requeued):
                assert (answer.record.status, answer.record.epoch, answer.record.owner) == (Status.QUEUED, None, "")
                assert isinstance(await records.start(start_of(record, ttl=10)), Claimed)
        assert outcomes == [Requeued, Requeued, Ended]
        events = await records.events(tenant="acme", id=record.id, after=0)
        assert [(event.kind, event.data) for event in events] == [
            ("started", '{"epoch":1,"attempt":1}'),
            ("restarted", '{"epoch":3,"attempt":2}'),
            ("restarted", '{"epoch":5,"attempt":3}'),
            ("abandoned", "{}"),
        ]
        assert await records.scope_epoch(tenant="acme", scope="c") == 6

    async def test_a_requeued_record_keeps_its_old_place(self, subject: Subject) -> None:
        records = subject.backend.records
        record = await subject.claimed(ttl=10, recovery="rerun")
        behind = await subject.enqueued()
        subject.elapse(11)
        assert isinstance(await records.abandon(abandon_of(record)), Requeued)
        assert await subject.kinds(record) == ["started"]
        assert [await records.position(tenant="acme", id=one.id) for one in (record, behind)] == [1, 2]
        due = await records.due(handlers=["chat"], limit=10, unknown_after=300)
        assert [one.id for one in due.startable] == [record.id]
        assert due.lapsed == ()

    async def test_a_stopped_rerun_is_not_started_again(self, subject: Subject) -> None:
        record, records = await subject.claimed(ttl=10, recovery="rerun"), subject.backend.records
        await records.stop(stop_of(record.id))
        subject.elapse(11)
        assert isinstance(await records.abandon(abandon_of(record)), Gone)
        assert isinstance(await records.start(start_of(record)), Gone)
