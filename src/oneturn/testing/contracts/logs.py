"""The contract of the log: `RecordStore.append`, `events` and `scope_events`."""

from __future__ import annotations

import asyncio
import json

import pytest

from oneturn.core.steps import Append, Appended, Emitted, Gone
from oneturn.testing.contracts.subject import Subject, append_of, emitted, start_of, timeless


class LoggingContract:
    """Inherit it and provide a fixture `subject`."""

    async def test_events_are_numbered_without_gaps_and_logged_once(self, subject: Subject) -> None:
        record, records = await subject.claimed(), subject.backend.records
        append = append_of(record, "text", "step")
        for _ in range(2):
            assert await records.append(append) == Appended(last_seq=3)
        overlapping = append_of(record, "step", "data", after=2)
        assert await records.append(overlapping) == Appended(last_seq=4)
        assert await subject.kinds(record) == ["started", "text", "step", "data"]
        assert (await subject.now(record)).last_seq == 4

    async def test_an_append_of_what_is_long_logged_changes_nothing(self, subject: Subject) -> None:
        record, records = await subject.claimed(), subject.backend.records
        await records.append(append_of(record, "text", "text", "text"))
        assert await records.append(append_of(record, "step")) == Appended(last_seq=4)
        assert await subject.kinds(record) == ["started", "text", "text", "text"]

    async def test_an_append_of_nothing_tells_how_far_the_log_is(self, subject: Subject) -> None:
        record = await subject.claimed()
        assert await subject.backend.records.append(append_of(record)) == Appended(last_seq=1)

    async def test_appends_that_race_are_logged_once_each(self, subject: Subject) -> None:
        """The same batch, sent ten times at once, as a client does that gives up waiting too early."""
        record = await subject.claimed()
        answers = await asyncio.gather(*(subject.backend.records.append(append_of(record, "text")) for _ in range(10)))
        assert set(answers) == {Appended(last_seq=2)}
        assert await subject.kinds(record) == ["started", "text"]

    async def test_only_the_running_epoch_logs(self, subject: Subject) -> None:
        records = subject.backend.records
        record = await subject.claimed()
        for epoch in (0, 2, 9):
            assert await records.append(append_of(record, "text", epoch=epoch)) == Gone(record=record)
        queued = await subject.enqueued()
        answer = await records.append(append_of(queued, "text", epoch=1))
        assert timeless(answer) == timeless(Gone(record=queued))
        final = await subject.finished(record)
        assert await records.append(append_of(record, "text")) == Gone(record=final)
        unknown = Append(tenant="acme", id="nobody", epoch=1, after=1, events=emitted("text"))
        assert await records.append(unknown) == Gone(record=None)
        assert await subject.kinds(record) == ["started", "succeeded"]

    @pytest.mark.case("T20")
    async def test_an_earlier_attempt_logs_nothing_after_it_was_started_again(self, subject: Subject) -> None:
        records = subject.backend.records
        first = await subject.claimed(ttl=10, recovery="rerun")
        subject.elapse(11)
        await subject.enqueued(dead=first.id)
        assert isinstance(await records.append(append_of(first, "text")), Gone)
        await records.start(start_of(first))
        assert isinstance(await records.append(append_of(first, "text")), Gone)
        assert await subject.kinds(first) == ["started", "restarted"]

    async def test_events_come_in_order_after_a_number_and_up_to_a_limit(self, subject: Subject) -> None:
        record, records = await subject.claimed(), subject.backend.records
        await records.append(append_of(record, *["text"] * 9))

        async def numbers(after: int, limit: int) -> list[int]:
            return [e.seq for e in await records.events(tenant="acme", id=record.id, after=after, limit=limit)]

        assert await numbers(0, 3) == [1, 2, 3]
        assert await numbers(3, 4) == [4, 5, 6, 7]
        assert await numbers(7, 100) == [8, 9, 10]
        assert await numbers(10, 100) == []
        assert await numbers(99, 100) == []
        assert await records.events(tenant="acme", id="nobody", after=0) == []

    async def test_event_data_is_kept_byte_for_byte(self, subject: Subject) -> None:
        record, records = await subject.claimed(), subject.backend.records
        data = json.dumps({"delta": "会话🔒 \x00 \u2028 ' \" \\ %s {}" + "x" * 100_000}, ensure_ascii=False)
        events = (Emitted(kind="text", data=data),)
        await records.append(append_of(record, events=events))
        (event,) = await records.events(tenant="acme", id=record.id, after=1)
        assert event.data == data

    async def test_a_scopes_events_come_by_epoch_and_number_after_a_cursor(self, subject: Subject) -> None:
        records = subject.backend.records
        first = await subject.claimed()
        await subject.finished(first, events=emitted("text"))
        second = await subject.claimed()
        queued = await subject.enqueued()
        await subject.claimed(scope="other")
        every = [(first.id, 1, 1), (first.id, 1, 2), (first.id, 1, 3), (second.id, 2, 1)]
        cursors = [(0, 0), *((epoch, seq) for _, epoch, seq in every)]
        for place, cursor in enumerate(cursors):
            rows = await records.scope_events(tenant="acme", scope="c", after=cursor)
            assert [(row[0], row[1], row[2].seq) for row in rows] == every[place:]
        some = await records.scope_events(tenant="acme", scope="c", after=(0, 0), limit=2)
        assert [(row[0], row[1], row[2].seq) for row in some] == every[:2]
        await subject.finished(second)
        await records.start(start_of(queued))
        late = await records.scope_events(tenant="acme", scope="c", after=(2, 2))
        assert [(row[0], row[1], row[2].kind) for row in late] == [(queued.id, 3, "queued"), (queued.id, 3, "started")]
