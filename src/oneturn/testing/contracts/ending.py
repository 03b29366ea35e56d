"""The contract of ends: `RecordStore.finish` and `stop`; final states are final."""

from __future__ import annotations

import asyncio

import pytest

from oneturn.core.event import failure_body, stop_body
from oneturn.core.status import Status, StopReason
from oneturn.core.steps import Append, Ended, Existing, Finish, Gone, Stop
from oneturn.testing.contracts.subject import Subject, append_of, claim_of, emitted, finish_of, timeless


def stop_of(record_id: str, *, tenant: str = "acme", reason: StopReason = StopReason.CANCELLED) -> Stop:
    """A stop from outside."""
    return Stop(tenant=tenant, id=record_id, reason=reason)


class EndingContract:
    """Inherit it and provide a fixture `subject`."""

    @pytest.mark.case("O6", "T24")
    async def test_a_finish_is_final_idempotent_and_carries_pending_events(self, subject: Subject) -> None:
        record, records = await subject.claimed(), subject.backend.records
        finish = finish_of(record, events=emitted("text", "data"))
        first, again = await records.finish(finish), await records.finish(finish)
        assert isinstance(first, Ended)
        assert isinstance(again, Ended)
        assert (first.here, again.here) == (True, False)
        assert first.record == again.record == await subject.now(record)
        events = await records.events(tenant="acme", id=record.id, after=0)
        assert [event.kind for event in events] == ["started", "text", "data", "succeeded"]
        assert events[-1].data == '{"result":"done"}'

    async def test_a_finish_skips_the_events_that_are_logged_already(self, subject: Subject) -> None:
        record = await subject.claimed()
        await subject.backend.records.append(append_of(record, "text", "step"))
        ended = await subject.finished(record, events=emitted("text", "step", "data"))
        assert await subject.kinds(record) == ["started", "text", "step", "data", "succeeded"]
        assert ended.last_seq == 5

    @pytest.mark.case("T24")
    async def test_a_final_record_takes_no_other_end(self, subject: Subject) -> None:
        record, records = await subject.claimed(), subject.backend.records
        final = await subject.finished(record)
        others = (
            finish_of(record, body=b'"other"'),
            finish_of(record, status=Status.FAILED),
            finish_of(record, epoch=2),
            finish_of(record, epoch=0),
        )
        for other in others:
            assert await records.finish(other) == Gone(record=final)
        assert await records.stop(stop_of(record.id)) == Ended(record=final, here=False)
        assert await subject.now(record) == final
        assert await subject.kinds(record) == ["started", "succeeded"]

    @pytest.mark.case("T26")
    @pytest.mark.parametrize(
        ("status", "body", "reason"),
        [
            (Status.SUCCEEDED, b"[]", None),
            (Status.FAILED, failure_body(code="failed", message="no"), None),
            (Status.STOPPED, stop_body(StopReason.RUN_LIMIT), StopReason.RUN_LIMIT),
            (Status.ABANDONED, b"", None),
        ],
    )
    async def test_every_final_status_is_told_by_one_terminal_event_and_frees_the_scope(
        self, subject: Subject, status: Status, body: bytes, reason: StopReason | None
    ) -> None:
        record = await subject.claimed()
        subject.elapse(2)
        ended = await subject.finished(record, status=status, body=body, reason=reason, events=emitted("text"))
        assert (ended.status, ended.body, ended.reason, ended.owner) == (status, body, reason, "")
        assert ended.ended_at is not None
        assert ended.started_at is not None
        assert round(ended.ended_at - ended.started_at, 3) == 2
        assert await subject.kinds(record) == ["started", "text", status.value]
        history = await subject.backend.records.history(tenant="acme", scope="c")
        assert [message.turn for message in history] == [record.id] * (status is Status.SUCCEEDED)
        assert (await subject.claimed()).epoch == 2

    @pytest.mark.case("O14")
    @pytest.mark.parametrize("body", [b"[]", b"null", b"false", b"0", b'""', '"会话🔒"'.encode()])
    async def test_a_result_is_kept_byte_for_byte(self, subject: Subject, body: bytes) -> None:
        record = await subject.answered(body=body)
        assert (await subject.now(record)).body == body
        (message,) = await subject.backend.records.history(tenant="acme", scope="c")
        assert message.answer == body

    async def test_only_the_running_epoch_finishes(self, subject: Subject) -> None:
        records = subject.backend.records
        record = await subject.claimed()
        for epoch in (0, 2):
            assert await records.finish(finish_of(record, epoch=epoch)) == Gone(record=record)
        queued = await subject.enqueued()
        answer = await records.finish(finish_of(queued, epoch=1))
        assert timeless(answer) == timeless(Gone(record=queued))
        nobody = Finish(tenant="acme", id="nobody", epoch=1, status=Status.SUCCEEDED, body=b"1", after=0)
        assert await records.finish(nobody) == Gone(record=None)
        assert await subject.kinds(record) == ["started"]

    @pytest.mark.row("Q14")
    @pytest.mark.case("T24")
    async def test_a_stop_from_outside_takes_the_epoch_away(self, subject: Subject) -> None:
        record, records = await subject.claimed(), subject.backend.records
        ended = await records.stop(stop_of(record.id, reason=StopReason.REVOKED))
        assert isinstance(ended, Ended)
        assert ended.here
        assert (ended.record.status, ended.record.reason) == (Status.STOPPED, StopReason.REVOKED)
        assert ended.record.body == stop_body(StopReason.REVOKED)
        assert await records.scope_epoch(tenant="acme", scope="c") == 2
        assert await records.finish(finish_of(record)) == Gone(record=ended.record)
        assert await records.append(append_of(record, "text")) == Gone(record=ended.record)
        assert await subject.kinds(record) == ["started", "stopped"]
        assert (await subject.claimed()).epoch == 3

    async def test_the_first_reason_to_stop_wins(self, subject: Subject) -> None:
        record, records = await subject.claimed(), subject.backend.records
        answers = [await records.stop(stop_of(record.id, reason=reason)) for reason in StopReason]
        assert [isinstance(answer, Ended) and answer.here for answer in answers] == [True] + [False] * 5
        assert (await subject.now(record)).reason is StopReason.SUPERSEDED
        assert await records.scope_epoch(tenant="acme", scope="c") == 2

    async def test_nobody_unknown_can_be_stopped(self, subject: Subject) -> None:
        assert await subject.backend.records.stop(stop_of("nobody")) == Gone(record=None)

    async def test_a_finish_and_a_stop_that_race_end_it_once(self, subject: Subject) -> None:
        records = subject.backend.records
        for _ in range(10):
            record = await subject.claimed()
            finished, stopped = await asyncio.gather(
                records.finish(finish_of(record)), records.stop(stop_of(record.id))
            )
            assert isinstance(stopped, Ended)
            assert isinstance(finished, Ended) is not stopped.here
            assert await subject.kinds(record) == ["started", (await subject.now(record)).status.value]

    async def test_epochs_of_a_scope_are_unique_and_grow(self, subject: Subject) -> None:
        """By one at each start, by one at each end from outside; never by an end from within."""
        records, epochs = subject.backend.records, list[int | None]()
        for end in ("finish", "stop", "finish", "lapse", "finish"):
            record = await subject.claimed(ttl=10)
            epochs.append(record.epoch)
            match end:
                case "finish":
                    await subject.finished(record)
                case "stop":
                    await records.stop(stop_of(record.id))
                case _:
                    subject.elapse(11)
                    after = await subject.claimed(dead=record.id)
                    epochs.append(after.epoch)
                    await subject.finished(after)
        assert epochs == [1, 2, 4, 5, 7, 8]
        assert await records.scope_epoch(tenant="acme", scope="c") == 8
        assert await records.scope_epoch(tenant="acme", scope="never") == 0

    @pytest.mark.row("Q10")
    async def test_an_ended_key_is_answered_from_its_record(self, subject: Subject) -> None:
        record = await subject.answered(key="k", body=b'"once"')
        answer = await subject.backend.records.claim(claim_of(key="k"))
        assert answer == Existing(record=record)

    async def test_nothing_follows_the_terminal_event(self, subject: Subject) -> None:
        record, records = await subject.claimed(), subject.backend.records
        ended = await subject.finished(record)
        late = Append(tenant="acme", id=record.id, epoch=1, after=ended.last_seq, events=emitted("text"))
        assert isinstance(await records.append(late), Gone)
        events = await records.events(tenant="acme", id=record.id, after=0)
        assert [event.terminal for event in events] == [False, True]
