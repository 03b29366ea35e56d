"""The contract of `TransactionalRecords`: our steps on somebody's open connection."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from oneturn.core.status import StopReason
from oneturn.core.steps import Busy, Ended, Enqueued, Existing, Full, Gone, Stop
from oneturn.core.store import Execute, TransactionalRecords
from oneturn.testing.contracts.subject import Subject, claim_of, emitted, finish_of

Transaction = Callable[[bool], AbstractContextManager[Execute]]
"""Open a transaction on the records' database; True: commit it, False: roll it back."""


class TransactionalRecordsContract:
    """Inherit it and provide fixtures `subject` and `transaction`."""

    def _steps(self, subject: Subject) -> TransactionalRecords:
        assert subject.backend.transactional is not None
        return subject.backend.transactional

    async def test_the_fence_holds_for_the_running_epoch_only(self, subject: Subject, transaction: Transaction) -> None:
        record, steps = await subject.claimed(), self._steps(subject)
        with transaction(True) as run:
            assert steps.check_in(run, tenant="acme", id=record.id, epoch=1) is None
            assert isinstance(steps.check_in(run, tenant="acme", id=record.id, epoch=2), Gone)
            assert isinstance(steps.check_in(run, tenant="umbrella", id=record.id, epoch=1), Gone)
        await subject.backend.records.stop(Stop(tenant="acme", id=record.id, reason=StopReason.CANCELLED))
        with transaction(True) as run:
            assert isinstance(steps.check_in(run, tenant="acme", id=record.id, epoch=1), Gone)

    async def test_a_finish_is_as_durable_as_the_transaction(self, subject: Subject, transaction: Transaction) -> None:
        record, steps = await subject.claimed(), self._steps(subject)
        finish = finish_of(record, events=emitted("text"))
        with transaction(False) as run:
            assert isinstance(steps.finish_in(run, finish), Ended)
        assert await subject.kinds(record) == ["started"]
        with transaction(True) as run:
            assert isinstance(steps.finish_in(run, finish), Ended)
        assert await subject.kinds(record) == ["started", "text", "succeeded"]
        settled = await subject.backend.records.finish(finish_of(record, body=b'"late"'))
        assert isinstance(settled, Gone)

    async def test_an_admission_is_queued_by_the_commit(self, subject: Subject, transaction: Transaction) -> None:
        claim, steps, records = claim_of(), self._steps(subject), subject.backend.records
        with transaction(False) as run:
            assert isinstance(steps.enqueue_in(run, claim), Enqueued)
        assert await records.find(claim.identity) is None
        with transaction(True) as run:
            answer = steps.enqueue_in(run, claim)
            assert isinstance(answer, Enqueued)
            assert answer.position == 1
        with transaction(True) as run:
            assert isinstance(steps.enqueue_in(run, claim_of(key=claim.identity.key)), Existing)
            assert isinstance(steps.enqueue_in(run, claim_of(on_busy="reject")), Busy)
            assert isinstance(steps.enqueue_in(run, claim_of(queue_limit=1)), Full)
        found = await records.find(claim.identity)
        assert found is not None
        assert await subject.kinds(found) == ["queued"]
