"""The contract of `RecordStore.claim`: every answer, in its order."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from oneturn.core.status import Status
from oneturn.core.steps import Busy, Claimed, Enqueued, Existing, Full, Lapsed, NotRegenerable
from oneturn.testing.contracts.subject import Subject, claim_of, timeless


class ClaimingContract:
    """Inherit it and provide a fixture `subject`."""

    async def test_a_claim_starts_with_a_raised_epoch_and_a_started_event(self, subject: Subject) -> None:
        record = await subject.claimed(claims={"role": "dean"}, run_limit=7.5, recovery="rerun", owner="me")
        assert (record.status, record.epoch, record.attempt, record.sequence) == (Status.RUNNING, 1, 1, 1)
        assert (dict(record.claims), record.run_limit, record.recovery) == ({"role": "dean"}, 7.5, "rerun")
        assert (record.owner, record.message, record.replaces) == ("me", record.id, "")
        assert round(record.remaining, 3) == 60
        (event,) = await subject.backend.records.events(tenant="acme", id=record.id, after=0)
        assert (event.seq, event.kind, event.data) == (1, "started", '{"epoch":1,"attempt":1}')
        assert await subject.now(record) == record

    async def test_a_claim_ends_its_unanswered_messages_with_the_one_to_answer(self, subject: Subject) -> None:
        answer = await subject.backend.records.claim(claim_of(payload=b'{"text":"this"}'))
        assert isinstance(answer, Claimed)
        last = answer.unanswered[-1]
        assert (last.turn, last.sequence, last.payload) == (answer.record.id, 1, b'{"text":"this"}')

    @pytest.mark.row("Q3", "Q17")
    async def test_one_record_per_identity_whoever_claims(self, subject: Subject) -> None:
        answers = await asyncio.gather(*(subject.backend.records.claim(claim_of(key="k")) for _ in range(50)))
        claimed = [answer for answer in answers if isinstance(answer, Claimed)]
        existing = [answer for answer in answers if isinstance(answer, Existing)]
        assert (len(claimed), len(existing)) == (1, 49)
        assert {answer.record.id for answer in existing} == {claimed[0].record.id}

    @pytest.mark.case("O4")
    async def test_the_same_key_of_another_subject_scope_or_tenant_is_another_record(self, subject: Subject) -> None:
        first = await subject.answered(key="k")
        others: list[dict[str, Any]] = [{"subject": "bob"}, {"scope": "d"}, {"tenant": "umbrella"}]
        for changes in others:
            other = await subject.answered(key="k", **changes)
            assert other.id != first.id

    @pytest.mark.case("T2")
    async def test_the_same_content_under_a_new_key_is_executed(self, subject: Subject) -> None:
        first, second = [await subject.answered(payload=b'{"text":"same"}', fingerprint="1:same") for _ in range(2)]
        assert (first.epoch, second.epoch) == (1, 2)

    @pytest.mark.case("O6")
    async def test_the_same_owner_claiming_again_is_answered_the_same(self, subject: Subject) -> None:
        claim = claim_of()
        first, again = [await subject.backend.records.claim(claim) for _ in range(2)]
        assert isinstance(first, Claimed)
        assert timeless(first) == timeless(again)
        assert await subject.kinds(first.record) == ["started"]
        queued = claim_of()
        waiting, still = [await subject.backend.records.claim(queued) for _ in range(2)]
        assert isinstance(waiting, Enqueued)
        assert timeless(waiting) == timeless(still)
        assert len(await subject.backend.records.turns(tenant="acme", scope="c")) == 2

    async def test_another_owner_claiming_a_running_record_finds_it_existing(self, subject: Subject) -> None:
        running = await subject.claimed(key="k", owner="a")
        answer = await subject.backend.records.claim(claim_of(key="k", owner="b"))
        assert answer == Existing(record=running)

    async def test_another_claim_of_a_queued_record_finds_it_existing(self, subject: Subject) -> None:
        await subject.claimed()
        queued = await subject.enqueued(key="k", owner="a")
        answer = await subject.backend.records.claim(claim_of(key="k", owner="a"))
        assert timeless(answer) == timeless(Existing(record=queued))

    async def test_a_final_record_is_existing_even_to_its_own_owner(self, subject: Subject) -> None:
        final = await subject.answered(key="k", owner="a")
        assert await subject.backend.records.claim(claim_of(key="k", owner="a")) == Existing(record=final)

    async def test_an_existing_record_is_found_before_anything_else_is_looked_at(self, subject: Subject) -> None:
        """Neither an impossible regeneration, nor a lapsed record, nor a full queue comes first."""
        records = subject.backend.records
        final = await subject.answered(key="k")
        await subject.claimed(ttl=10)
        subject.elapse(11)
        for changes in ({"regenerate": "nobody"}, {}, {"queue_limit": 0}, {"on_busy": "reject"}):
            answer = await records.claim(claim_of(key="k", **changes))
            assert timeless(answer) == timeless(Existing(record=final))

    async def test_an_impossible_regeneration_is_refused_before_busyness(self, subject: Subject) -> None:
        await subject.claimed(ttl=10)
        refused = NotRegenerable(turn="nobody")
        assert await subject.backend.records.claim(claim_of(regenerate="nobody", on_busy="reject")) == refused
        subject.elapse(11)
        assert await subject.backend.records.claim(claim_of(regenerate="nobody")) == refused

    @pytest.mark.row("Q4")
    @pytest.mark.case("T6")
    async def test_a_busy_scope_meets_its_policy_and_other_scopes_do_not(self, subject: Subject) -> None:
        running = await subject.claimed()
        assert await subject.backend.records.claim(claim_of(on_busy="reject")) == Busy(record=running)
        queued = await subject.enqueued()
        assert (queued.status, queued.epoch, queued.sequence, queued.attempt) == (Status.QUEUED, None, 2, 0)
        (event,) = await subject.backend.records.events(tenant="acme", id=queued.id, after=0)
        assert (event.seq, event.kind, event.data) == (1, "queued", "{}")
        assert (await subject.claimed(scope="other")).epoch == 1

    async def test_a_refusal_writes_nothing(self, subject: Subject) -> None:
        """Neither a record, nor a sequence number, nor an epoch: the key is not used up."""
        records = subject.backend.records
        running = await subject.claimed()
        refused = [claim_of(on_busy="reject"), claim_of(queue_limit=0), claim_of(regenerate="nobody")]
        answers = [type(await records.claim(claim)) for claim in refused]
        assert answers == [Busy, Full, NotRegenerable]
        assert [await records.find(claim.identity) for claim in refused] == [None] * 3
        assert await records.turns(tenant="acme", scope="c") == [running]
        assert await records.scope_epoch(tenant="acme", scope="c") == 1
        assert (await subject.enqueued()).sequence == 2

    @pytest.mark.case("T8")
    async def test_the_queue_limit_holds_exactly(self, subject: Subject) -> None:
        await subject.claimed()
        answers = await asyncio.gather(*(subject.backend.records.claim(claim_of(queue_limit=5)) for _ in range(50)))
        assert answers.count(Full(limit=5)) == 45
        waiting = [answer for answer in answers if isinstance(answer, Enqueued)]
        assert sorted(answer.position for answer in waiting) == [1, 2, 3, 4, 5]
        assert sorted(answer.record.sequence for answer in waiting) == [2, 3, 4, 5, 6]

    @pytest.mark.case("T5")
    async def test_of_many_messages_at_once_one_starts_and_the_rest_wait_in_one_order(self, subject: Subject) -> None:
        answers = await asyncio.gather(*(subject.backend.records.claim(claim_of(queue_limit=50)) for _ in range(20)))
        assert [type(answer) for answer in answers].count(Claimed) == 1
        waiting = {answer.record.sequence: answer.position for answer in answers if isinstance(answer, Enqueued)}
        assert waiting == {place + 1: place for place in range(1, 20)}

    async def test_a_new_message_goes_behind_those_that_wait(self, subject: Subject) -> None:
        running, waiting = await subject.claimed(), await subject.enqueued()
        await subject.finished(running)
        answer = await subject.backend.records.claim(claim_of(on_busy="reject"))
        assert timeless(answer) == timeless(Busy(record=waiting))
        assert (await subject.enqueued()).sequence == 3

    @pytest.mark.row("Q18")
    async def test_a_lapsed_record_is_ended_only_when_called_dead(self, subject: Subject) -> None:
        dead = await subject.claimed(ttl=10)
        subject.elapse(11)
        lapsed = await subject.backend.records.claim(claim_of())
        assert isinstance(lapsed, Lapsed)
        assert (lapsed.record.id, lapsed.record.remaining < 0) == (dead.id, True)
        assert isinstance(await subject.backend.records.claim(claim_of(dead="somebody else")), Lapsed)
        assert isinstance(await subject.backend.records.claim(claim_of(alive=dead.id, on_busy="reject")), Busy)
        assert await subject.kinds(dead) == ["started"]
        after = await subject.claimed(dead=dead.id)
        assert after.epoch == 3
        assert await subject.kinds(dead) == ["started", "abandoned"]
        assert (await subject.now(dead)).status is Status.ABANDONED

    async def test_a_record_called_dead_that_may_be_rerun_waits_before_the_new_message(self, subject: Subject) -> None:
        dead = await subject.claimed(ttl=10, recovery="rerun")
        subject.elapse(11)
        behind = await subject.enqueued(dead=dead.id)
        requeued = await subject.now(dead)
        assert (requeued.status, requeued.epoch, requeued.sequence) == (Status.QUEUED, None, 1)
        assert await subject.kinds(dead) == ["started"]
        assert await subject.backend.records.position(tenant="acme", id=dead.id) == 1
        assert await subject.backend.records.position(tenant="acme", id=behind.id) == 2
        assert await subject.backend.records.scope_epoch(tenant="acme", scope="c") == 2

    async def test_calling_a_live_record_dead_changes_nothing(self, subject: Subject) -> None:
        live = await subject.claimed()
        assert await subject.backend.records.claim(claim_of(dead=live.id, on_busy="reject")) == Busy(record=live)
        await subject.finished(live)

    async def test_a_claimed_payload_and_names_are_kept_as_they_are(self, subject: Subject) -> None:
        """Names are data: nothing in them is syntax."""
        strange = "%_'\"; DROP {a:b} 会话🔒\n"
        payload = '{"text":"\\u0000 会话"}'.encode()
        names = {"tenant": strange, "subject": strange + "s", "scope": strange + "c", "key": strange + "k"}
        record = await subject.claimed(**names, payload=payload)
        found = await subject.backend.records.find(record.identity)
        assert found == record
        assert found is not None
        assert found.payload == payload
