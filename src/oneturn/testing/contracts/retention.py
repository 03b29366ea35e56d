"""The contract of what is forgotten: folding, expiry, tombstones, erasure."""

from __future__ import annotations

import json

import pytest

from oneturn.core.steps import Existing, Retention
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

    async def test_a_message_need_not_be_kept_once_it_is_answered(self, subject: Subject) -> None:
        records = subject.backend.records
        record = await subject.claimed()
        await records.finish(finish_of(record, keep_payload=False))
        after = await records.read(tenant="acme", id=record.id)
        assert after is not None
        assert (after.payload, after.body) == (None, b'"done"')
