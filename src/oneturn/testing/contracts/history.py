"""The contract of a conversation's memory: answers, `history`, regeneration, `turns`."""

from __future__ import annotations

import pytest

from oneturn.core.record import Record
from oneturn.core.status import Status
from oneturn.core.steps import Busy, Claimed, Enqueued, NotRegenerable
from oneturn.testing.contracts.ending import stop_of
from oneturn.testing.contracts.subject import Subject, claim_of, start_of


class HistoryContract:
    """Inherit it and provide a fixture `subject`."""

    async def _told(self, subject: Subject, **asked: int | str) -> list[tuple[str, bytes | None]]:
        history = await subject.backend.records.history(tenant="acme", scope="c", **asked)  # type: ignore[arg-type]
        return [(message.turn, message.answer) for message in history]

    async def test_history_is_the_answered_messages_oldest_first(self, subject: Subject) -> None:
        first = await subject.answered(payload=b"1", body=b'"one"')
        await subject.finished(await subject.claimed(), status=Status.FAILED, body=b"{}")
        await subject.backend.records.stop(stop_of((await subject.claimed()).id))
        second = await subject.answered(payload=b"2", body=b'"two"')
        await subject.answered(scope="other")
        await subject.claimed()
        history = await subject.backend.records.history(tenant="acme", scope="c")
        assert [(m.turn, m.sequence, m.payload, m.answered_by, m.answer) for m in history] == [
            (first.id, first.sequence, b"1", first.id, b'"one"'),
            (second.id, second.sequence, b"2", second.id, b'"two"'),
        ]

    async def test_history_is_the_newest_up_to_a_limit(self, subject: Subject) -> None:
        answered = [await subject.answered(body=str(number).encode()) for number in range(5)]
        assert await self._told(subject, limit=2) == [(record.id, record.body) for record in answered[3:]]
        assert await self._told(subject, limit=1, before_epoch=3) == [(answered[1].id, answered[1].body)]

    @pytest.mark.case("T5")
    async def test_history_before_an_epoch_holds_only_answers_below_it(self, subject: Subject) -> None:
        first, second = await subject.answered(body=b"1"), await subject.answered(body=b"2")
        assert await self._told(subject, before_epoch=1) == []
        assert await self._told(subject, before_epoch=2) == [(first.id, b"1")]
        assert await self._told(subject, before_epoch=3) == [(first.id, b"1"), (second.id, b"2")]

    async def test_history_can_leave_one_message_out_without_losing_another_to_the_limit(
        self, subject: Subject
    ) -> None:
        answered = [await subject.answered(body=str(number).encode()) for number in range(3)]
        kept = [(answered[0].id, b"0"), (answered[1].id, b"1")]
        assert await self._told(subject, without=answered[2].id, limit=2) == kept

    async def test_regenerating_keeps_the_messages_place_and_replaces_its_answer(self, subject: Subject) -> None:
        first = await subject.answered(body=b'"one"', payload=b"q")
        again = await subject.claimed(regenerate=first.id, payload=b"q")
        assert (again.sequence, again.message, again.replaces, again.epoch) == (1, first.id, first.id, 2)
        assert await self._told(subject) == [(first.id, b'"one"')]
        await subject.finished(again, body=b'"better"')
        history = await subject.backend.records.history(tenant="acme", scope="c")
        assert [(m.turn, m.answered_by, m.answer) for m in history] == [(first.id, again.id, b'"better"')]
        assert (await subject.answered()).sequence == 2

    async def test_a_replaced_answer_may_be_regenerated_by_either_name(self, subject: Subject) -> None:
        first = await subject.answered()
        again = await subject.answered(regenerate=first.id)
        third = await subject.claimed(regenerate=again.id)
        assert (third.message, third.replaces) == (first.id, again.id)
        await subject.finished(third, body=b'"third"')
        assert await self._told(subject) == [(first.id, b'"third"')]
        fourth = await subject.claimed(regenerate=first.id)
        assert (fourth.message, fourth.replaces) == (first.id, third.id)

    async def test_only_the_newest_answered_message_is_regenerable(self, subject: Subject) -> None:
        first, second = await subject.answered(), await subject.answered()
        refused = NotRegenerable(turn=first.id)
        assert await subject.backend.records.claim(claim_of(regenerate=first.id)) == refused
        assert (await subject.claimed(regenerate=second.id)).message == second.id

    async def test_newest_means_by_the_epoch_of_the_answer(self, subject: Subject) -> None:
        """The older message that was answered last is the one that a reader saw last."""
        failed = await subject.finished(await subject.claimed(), status=Status.FAILED, body=b"{}")
        second = await subject.answered(body=b"2")
        await subject.answered(regenerate=failed.id, body=b"1")
        assert await self._told(subject) == [(second.id, b"2"), (failed.id, b"1")]
        assert isinstance(await subject.backend.records.claim(claim_of(regenerate=second.id)), NotRegenerable)
        assert isinstance(await subject.backend.records.claim(claim_of(regenerate=failed.id)), Claimed)

    @pytest.mark.case("T26")
    async def test_an_unanswered_final_message_is_regenerable_wherever_it_stands(self, subject: Subject) -> None:
        failed = await subject.finished(await subject.claimed(), status=Status.FAILED, body=b"{}")
        await subject.answered()
        again = await subject.claimed(regenerate=failed.id)
        assert (again.message, again.replaces, again.sequence) == (failed.id, "", failed.sequence)
        await subject.finished(again, body=b'"at last"')
        assert (failed.id, b'"at last"') in await self._told(subject)

    async def test_what_is_not_final_not_here_or_unknown_is_not_regenerable(self, subject: Subject) -> None:
        records = subject.backend.records
        elsewhere = await subject.answered(scope="other")
        foreign = await subject.answered(tenant="umbrella")
        running, queued = await subject.claimed(), await subject.enqueued()
        unanswered = [
            await subject.finished(await subject.claimed(**place), status=Status.FAILED, body=b"{}")
            for place in ({"scope": "other"}, {"tenant": "umbrella"})
        ]
        strangers = [record.id for record in (running, queued, elsewhere, foreign, *unanswered)]
        for turn in (*strangers, "nobody"):
            assert await records.claim(claim_of(regenerate=turn)) == NotRegenerable(turn=turn)

    async def test_regenerating_in_a_busy_scope_meets_its_policy(self, subject: Subject) -> None:
        records = subject.backend.records
        first = await subject.answered()
        running = await subject.claimed()
        assert await records.claim(claim_of(regenerate=first.id, on_busy="reject")) == Busy(record=running)
        waiting = await records.claim(claim_of(regenerate=first.id))
        assert isinstance(waiting, Enqueued)
        assert (waiting.record.message, waiting.record.sequence) == (first.id, first.sequence)

    async def test_an_answer_that_changed_meanwhile_is_not_replaced(self, subject: Subject) -> None:
        """Two regenerations of one answer: the first replaces it, the second was asked to replace what is gone."""
        records = subject.backend.records
        first = await subject.answered(body=b'"one"')
        running = await subject.claimed()
        asked: list[Record] = [await subject.enqueued(regenerate=first.id) for _ in range(2)]
        await subject.finished(running, status=Status.FAILED, body=b"{}")
        for record, body in zip(asked, (b'"two"', b'"three"'), strict=True):
            assert isinstance(await records.start(start_of(record)), Claimed)
            await subject.finished(await subject.now(record), body=body)
        assert await self._told(subject) == [(first.id, b'"two"')]
        assert (await subject.now(asked[1])).body == b'"three"'

    async def test_a_failed_regeneration_leaves_the_answer(self, subject: Subject) -> None:
        first = await subject.answered(body=b'"one"')
        again = await subject.claimed(regenerate=first.id)
        await subject.finished(again, status=Status.FAILED, body=b"{}")
        assert await self._told(subject) == [(first.id, b'"one"')]

    async def test_a_message_need_not_be_kept_once_it_is_answered(self, subject: Subject) -> None:
        kept = await subject.finished(await subject.claimed(), status=Status.FAILED, body=b"{}", keep_payload=False)
        assert (await subject.now(kept)).payload is not None
        record = await subject.finished(await subject.claimed(), keep_payload=False)
        after = await subject.now(record)
        assert (record.payload, after.payload, after.body) == (None, None, b'"done"')
        (message,) = await subject.backend.records.history(tenant="acme", scope="c")
        assert (message.payload, message.answer) == (None, b'"done"')

    async def test_turns_are_all_records_of_the_scope_by_sequence_of_any_subject(self, subject: Subject) -> None:
        records = subject.backend.records
        first = await subject.answered()
        subject.elapse(1)
        second = await subject.answered(subject="bob")
        subject.elapse(1)
        again = await subject.answered(regenerate=second.id)
        subject.elapse(1)
        running, waiting = await subject.claimed(), await subject.enqueued()
        await subject.claimed(scope="other")
        every = [first.id, second.id, again.id, running.id, waiting.id]
        assert [record.id for record in await records.turns(tenant="acme", scope="c")] == every
        assert [record.id for record in await records.turns(tenant="acme", scope="c", limit=2)] == every[-2:]
        page = await records.turns(tenant="acme", scope="c", limit=2, before_sequence=running.sequence)
        assert [record.id for record in page] == every[1:3]
        assert await records.turns(tenant="acme", scope="c", before_sequence=1) == []
        assert await records.turns(tenant="acme", scope="nobody's") == []
