"""The contract of what is forgotten: folding, expiry, tombstones, erasure."""

from __future__ import annotations

import asyncio
import json

import pytest

from oneturn.core.steps import Claimed, Existing, NotRegenerable, Retention, Swept
from oneturn.testing.contracts.subject import Subject, claim_of, emitted, finish_of

DAY = 86_400.0
KEEP = Retention(events=DAY, results=7 * DAY, tombstones=30 * DAY)


class RetentionContract:
    """Inherit it and provide a fixture `subject`."""

    @pytest.mark.case("T15")
    async def test_old_events_are_folded_into_one_snapshot_before_the_terminal_one(self, subject: Subject) -> None:
        records = subject.backend.records
        record = await subject.claimed()
        await records.finish(finish_of(record, events=emitted("text", "text", "step")))
        subject.elapse(DAY + 1)
        assert (await records.sweep(KEEP)).events == 3
        events = await records.events(tenant="acme", id=record.id, after=0)
        assert [(event.seq, event.kind) for event in events] == [(4, "snapshot"), (5, "succeeded")]
        assert json.loads(events[0].data) == {"text": "xx", "steps": [{"name": "n"}], "data": {}}
        assert (await records.sweep(KEEP)).events == 0
        assert [event.seq for event in await records.events(tenant="acme", id=record.id, after=4)] == [5]

    async def test_a_result_expires_and_its_key_is_remembered_as_long_as_the_tombstone(self, subject: Subject) -> None:
        records = subject.backend.records
        claim = claim_of()
        record = await subject.claimed(key=claim.identity.key)
        await records.finish(finish_of(record))
        running = await subject.claimed(ttl=100 * DAY)
        subject.elapse(8 * DAY)
        assert (await records.sweep(KEEP)).results == 1
        answer = await records.claim(claim)
        assert isinstance(answer, Existing)
        assert (answer.record.expired, answer.record.body, answer.record.payload) == (True, b"", None)
        assert await records.history(tenant="acme", scope="c") == []
        subject.elapse(30 * DAY)
        assert (await records.sweep(KEEP)).tombstones == 1
        assert await records.find(claim.identity) is None
        assert await records.read(tenant="acme", id=running.id) is not None
        assert await records.scope_epoch(tenant="acme", scope="c") == 2

    async def test_erasing_a_conversation_leaves_tombstones_without_content(self, subject: Subject) -> None:
        records = subject.backend.records
        record = await subject.claimed(claims={"role": "dean"})
        await records.finish(finish_of(record, events=emitted("text")))
        other = await subject.claimed(scope="other")
        await records.finish(finish_of(other))
        running = await subject.claimed()
        assert await records.erase(tenant="acme", scope="c") == 1
        after = await records.read(tenant="acme", id=record.id)
        assert after is not None
        assert (after.payload, after.body, dict(after.claims), after.expired) == (None, b"", {}, True)
        assert await records.events(tenant="acme", id=record.id, after=0) == []
        assert await records.history(tenant="acme", scope="c") == []
        assert len(await records.history(tenant="acme", scope="other")) == 1
        assert (await subject.kinds(running)) == ["started"]

    async def test_only_what_ended_long_enough_ago_is_swept(self, subject: Subject) -> None:
        """To the second, and never what waits or runs."""
        records = subject.backend.records
        ended, running = await subject.answered(), await subject.claimed(ttl=1)
        waiting = await subject.enqueued()
        for seconds, swept in (
            (DAY - 1, Swept(events=0, results=0, tombstones=0)),
            (2, Swept(events=0, results=0, tombstones=0)),
            (6 * DAY - 2, Swept(events=0, results=0, tombstones=0)),
            (2, Swept(events=0, results=1, tombstones=0)),
            (23 * DAY - 2, Swept(events=0, results=0, tombstones=0)),
            (2, Swept(events=0, results=0, tombstones=1)),
        ):
            subject.elapse(seconds)
            found = await records.sweep(KEEP)
            assert (found.results, found.tombstones) == (swept.results, swept.tombstones)
        assert await records.read(tenant="acme", id=ended.id) is None
        assert await subject.kinds(running) == ["started"]
        assert await subject.kinds(waiting) == ["queued"]

    async def test_one_sweep_does_all_there_is_to_do(self, subject: Subject) -> None:
        """However much it is, and whatever stage each has reached."""
        records = subject.backend.records
        for seconds in (23 * DAY, 6 * DAY, DAY + 1):
            claims = [claim_of(scope=f"c{number}") for number in range(130)]
            answers = await asyncio.gather(*(records.claim(claim) for claim in claims))
            await asyncio.gather(
                *(
                    records.finish(finish_of(answer.record, events=emitted("text")))
                    for answer in answers
                    if isinstance(answer, Claimed)
                )
            )
            subject.elapse(seconds)
        assert await records.sweep(KEEP) == Swept(events=130, results=130, tombstones=130)
        assert await records.sweep(KEEP) == Swept(events=0, results=0, tombstones=0)
        for number in range(130):
            found = await records.turns(tenant="acme", scope=f"c{number}")
            assert [record.expired for record in found] == [True, False]

    async def test_sweeping_twice_changes_nothing_more(self, subject: Subject) -> None:
        records = subject.backend.records
        await subject.finished(await subject.claimed(), events=emitted("text", "step"))
        for seconds in (DAY + 1, 7 * DAY, 30 * DAY):
            subject.elapse(seconds)
            await records.sweep(KEEP)
            assert await records.sweep(KEEP) == Swept(events=0, results=0, tombstones=0)

    @pytest.mark.case("T15")
    async def test_a_cursor_of_any_age_finds_the_end_of_a_folded_log(self, subject: Subject) -> None:
        records = subject.backend.records
        record = await subject.finished(await subject.claimed(), events=emitted("text", "text"))
        subject.elapse(DAY + 1)
        await records.sweep(KEEP)
        for after in range(record.last_seq):
            events = await records.events(tenant="acme", id=record.id, after=after)
            assert (events[-1].seq, events[-1].kind) == (record.last_seq, "succeeded")
        rows = await records.scope_events(tenant="acme", scope="c", after=(0, 0))
        assert [(row[2].seq, row[2].kind) for row in rows] == [(3, "snapshot"), (4, "succeeded")]

    @pytest.mark.case("O13")
    async def test_an_expired_key_is_never_executed_again_nor_regenerated(self, subject: Subject) -> None:
        records = subject.backend.records
        record = await subject.answered(key="k")
        subject.elapse(8 * DAY)
        await records.sweep(KEEP)
        answer = await records.claim(claim_of(key="k"))
        assert isinstance(answer, Existing)
        assert (answer.record.id, answer.record.expired, answer.record.fingerprint) == (record.id, True, "1:f")
        assert await records.claim(claim_of(regenerate=record.id)) == NotRegenerable(turn=record.id)

    async def test_the_epochs_and_places_of_a_scope_outlive_its_records(self, subject: Subject) -> None:
        """Numbers are never reissued."""
        await subject.answered()
        subject.elapse(31 * DAY)
        await subject.backend.records.sweep(KEEP)
        assert await subject.backend.records.turns(tenant="acme", scope="c") == []
        after = await subject.claimed()
        assert (after.epoch, after.sequence) == (2, 2)

    async def test_a_key_whose_tombstone_is_gone_is_new(self, subject: Subject) -> None:
        record = await subject.answered(key="k")
        subject.elapse(31 * DAY)
        await subject.backend.records.sweep(KEEP)
        assert await subject.backend.records.events(tenant="acme", id=record.id, after=0) == []
        assert (await subject.claimed(key="k")).id != record.id

    async def test_erasing_twice_finds_nothing_more(self, subject: Subject) -> None:
        records = subject.backend.records
        await subject.answered()
        assert [await records.erase(tenant="acme", scope="c") for _ in range(2)] == [1, 0]
        assert await records.erase(tenant="acme", scope="never") == 0

    async def test_erasing_an_answered_message_erases_its_regenerated_answers(self, subject: Subject) -> None:
        records = subject.backend.records
        first = await subject.answered(body=b'"one"')
        again = await subject.answered(body=b'"two"', regenerate=first.id)
        assert await records.erase(tenant="acme", scope="c") == 2
        for record in (first, again):
            after = await subject.now(record)
            assert (after.payload, after.body, after.expired) == (None, b"", True)
        assert await records.history(tenant="acme", scope="c") == []
        assert (await subject.answered(body=b'"after"')).sequence == 2

    async def test_a_replaced_answers_expiry_leaves_the_answer_that_replaced_it(self, subject: Subject) -> None:
        records = subject.backend.records
        first = await subject.answered(body=b'"one"')
        subject.elapse(6 * DAY)
        again = await subject.answered(body=b'"two"', regenerate=first.id)
        subject.elapse(2 * DAY)
        await records.sweep(KEEP)
        assert (await subject.now(first)).expired
        after = await subject.now(again)
        assert (after.expired, after.body) == (False, b'"two"')
