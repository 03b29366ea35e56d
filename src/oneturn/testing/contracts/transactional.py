"""The contract of `TransactionalRecords`: our steps on somebody's open connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from oneturn.core.backend import Capability
from oneturn.core.lease import Grant
from oneturn.core.status import Status
from oneturn.core.steps import Busy, Claimed, Ended, Enqueued, Existing, Full, Gone, NotRegenerable
from oneturn.core.store import Execute, TransactionalRecords
from oneturn.testing.contracts.ending import stop_of
from oneturn.testing.contracts.subject import (
    Subject,
    append_of,
    claim_of,
    emitted,
    finish_of,
    start_of,
    timeless,
)

Transaction = Callable[[bool], AbstractContextManager[Execute]]
"""Open a transaction on the records' database; True: commit it, False: roll it back."""


class TransactionalRecordsContract:
    """For a backend that declares TRANSACTIONAL: inherit it and provide fixtures `subject` and `transaction`."""

    def _steps(self, subject: Subject) -> TransactionalRecords:
        assert subject.backend.transactional is not None
        return subject.backend.transactional

    async def test_transactions_are_declared(self, subject: Subject) -> None:
        assert Capability.TRANSACTIONAL in subject.backend.capabilities

    @pytest.mark.case("T20")
    async def test_the_fence_holds_for_the_running_epoch_only(self, subject: Subject, transaction: Transaction) -> None:
        record, steps = await subject.claimed(), self._steps(subject)
        queued = await subject.enqueued()
        with transaction(True) as run:
            assert steps.check_in(run, tenant="acme", id=record.id, epoch=1) is None
            assert steps.check_in(run, tenant="acme", id=record.id, epoch=2) == Gone(record=record)
            assert isinstance(steps.check_in(run, tenant="acme", id=queued.id, epoch=1), Gone)
            assert steps.check_in(run, tenant="umbrella", id=record.id, epoch=1) == Gone(record=None)
            assert steps.check_in(run, tenant="acme", id="nobody", epoch=1) == Gone(record=None)
        await subject.backend.records.stop(stop_of(record.id))
        with transaction(True) as run:
            assert isinstance(steps.check_in(run, tenant="acme", id=record.id, epoch=1), Gone)

    async def test_a_stop_from_outside_waits_for_the_fenced_transaction(
        self, subject: Subject, transaction: Transaction
    ) -> None:
        """A check without the row lock is no check: what was written under the fence came before the stop."""
        record, steps = await subject.claimed(), self._steps(subject)
        with transaction(True) as run:
            assert steps.check_in(run, tenant="acme", id=record.id, epoch=1) is None
            stopping = asyncio.ensure_future(subject.backend.records.stop(stop_of(record.id)))  # noqa: TID251 - awaited below
            # A round trip through another thread: the stop has had every chance to begin.
            assert isinstance(await subject.backend.leases.acquire(["k"], owner="a", ttl=1), Grant)
            assert not stopping.done()
            assert isinstance(steps.finish_in(run, finish_of(record)), Ended)
        answer = await stopping
        assert isinstance(answer, Ended)
        assert (answer.here, answer.record.status) == (False, Status.SUCCEEDED)

    async def test_a_finish_is_as_durable_as_the_transaction(self, subject: Subject, transaction: Transaction) -> None:
        record, steps = await subject.claimed(), self._steps(subject)
        finish = finish_of(record, events=emitted("text"))
        with transaction(False) as run:
            assert isinstance(steps.finish_in(run, finish), Ended)
        assert await subject.kinds(record) == ["started"]
        with transaction(True) as run:
            assert isinstance(steps.finish_in(run, finish), Ended)
        assert await subject.kinds(record) == ["started", "text", "succeeded"]
        assert isinstance(await subject.backend.records.finish(finish_of(record, body=b'"late"')), Gone)

    @pytest.mark.case("O6")
    async def test_a_finish_whose_commit_is_unknown_may_be_repeated(
        self, subject: Subject, transaction: Transaction
    ) -> None:
        record, steps = await subject.claimed(), self._steps(subject)
        await subject.backend.records.append(append_of(record, "text"))
        finish = finish_of(record, events=emitted("text", "data"))
        with transaction(True) as run:
            first = steps.finish_in(run, finish)
        with transaction(True) as run:
            again = steps.finish_in(run, finish)
        outside = await subject.backend.records.finish(finish)
        assert [isinstance(answer, Ended) and answer.here for answer in (first, again, outside)] == [True, False, False]
        assert await subject.kinds(record) == ["started", "text", "data", "succeeded"]
        (message,) = await subject.backend.records.history(tenant="acme", scope="c")
        assert message.answered_by == record.id

    async def test_a_finish_with_an_old_epoch_writes_nothing(self, subject: Subject, transaction: Transaction) -> None:
        record, steps = await subject.claimed(), self._steps(subject)
        await subject.backend.records.stop(stop_of(record.id))
        with transaction(True) as run:
            assert isinstance(steps.finish_in(run, finish_of(record, events=emitted("text"))), Gone)
        assert await subject.kinds(record) == ["started", "stopped"]

    async def test_an_admission_is_queued_by_the_commit(self, subject: Subject, transaction: Transaction) -> None:
        claim, steps, records = claim_of(), self._steps(subject), subject.backend.records
        with transaction(False) as run:
            assert isinstance(steps.enqueue_in(run, claim), Enqueued)
        assert await records.find(claim.identity) is None
        with transaction(True) as run:
            answer = steps.enqueue_in(run, claim)
        assert isinstance(answer, Enqueued)
        assert (answer.position, answer.record.sequence, answer.record.epoch) == (1, 1, None)
        assert await subject.kinds(answer.record) == ["queued"]
        assert await records.scope_epoch(tenant="acme", scope="c") == 0
        assert isinstance(await records.start(start_of(answer.record)), Claimed)

    async def test_an_admission_answers_as_a_claim_does(self, subject: Subject, transaction: Transaction) -> None:
        steps = self._steps(subject)
        running, queued = await subject.claimed(key="r", owner="me"), claim_of()
        with transaction(True) as run:
            first, again = [steps.enqueue_in(run, queued) for _ in range(2)]
            assert isinstance(first, Enqueued)
            assert timeless(first) == timeless(again)
            other = steps.enqueue_in(run, claim_of(key=queued.identity.key))
            assert timeless(other) == timeless(Existing(record=first.record))
            assert steps.enqueue_in(run, claim_of(key="r", owner="me")) == Existing(record=running)
            assert steps.enqueue_in(run, claim_of(regenerate="nobody")) == NotRegenerable(turn="nobody")
            assert steps.enqueue_in(run, claim_of(on_busy="reject")) == Busy(record=running)
            assert steps.enqueue_in(run, claim_of(queue_limit=1)) == Full(limit=1)
            second = steps.enqueue_in(run, claim_of())
        assert isinstance(second, Enqueued)
        assert (second.position, second.record.sequence) == (2, 3)

    async def test_an_admission_under_reject_is_busy_with_what_lives_or_waits_only(
        self, subject: Subject, transaction: Transaction
    ) -> None:
        steps = self._steps(subject)
        dead = await subject.claimed(ttl=10)
        with transaction(True) as run:
            assert isinstance(steps.enqueue_in(run, claim_of(on_busy="reject")), Busy)
        subject.elapse(11)
        with transaction(True) as run:
            answer = steps.enqueue_in(run, claim_of(on_busy="reject"))
            assert isinstance(answer, Enqueued)
            assert answer.position == 1
            assert isinstance(steps.enqueue_in(run, claim_of(on_busy="reject")), Busy)
        assert await subject.kinds(dead) == ["started"], "nothing is ended by an admission"
