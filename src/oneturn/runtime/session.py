"""Admission in the application's own transaction: its row and the queued record are one commit, or neither."""

from __future__ import annotations

from typing import Any

from oneturn.core.identity import QUEUE_TOPIC
from oneturn.core.steps import Busy, Enqueued, Existing, Full, NotRegenerable
from oneturn.core.store import EnqueueAnswer
from oneturn.runtime.admission import Admission, Asked, Ticket, claim_of
from oneturn.runtime.fence import executor, in_records, listen, plain_session
from oneturn.runtime.process import Process


async def enqueue_in_session(session: Any, asked: Asked, *, process: Process, admission: Admission) -> Ticket:
    """Decide under the scope's lock, on the session's connection; the start follows the commit, by any process."""
    store = process.transactional()
    claim = claim_of(asked, process=process, owner="")

    def step(plain: Any) -> EnqueueAnswer:
        return in_records(lambda: store.enqueue_in(executor(plain), claim))

    plain = plain_session(session)
    answer: EnqueueAnswer = await session.run_sync(step) if plain is not session else step(plain)
    match answer:
        case Enqueued(record=record):
            _announce_after_commit(plain, process, record)
            return Ticket(record=record, admission="queued")
        case Existing(record=record):
            return admission.existing(record, asked)
        case Busy() | Full() | NotRegenerable():
            raise admission.refusal(answer, asked)


def _announce_after_commit(plain: Any, process: Process, record: Any) -> None:
    def committed(_: Any) -> None:
        if not plain.in_nested_transaction():
            process.decide("queued", record, in_session=True)
            process.announce(record)
            process.signals.publish(QUEUE_TOPIC)

    def over(_: Any, transaction: Any) -> None:
        if transaction.parent is None:
            undo()

    undo = listen(plain, after_commit=committed, after_transaction_end=over)
