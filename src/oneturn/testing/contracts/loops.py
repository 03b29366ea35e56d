"""The contract of callers: any event loop of the process, and callers that are cancelled while they wait."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import pytest

from oneturn.core.errors import BackendUnavailable
from oneturn.core.lease import Grant
from oneturn.core.steps import Claimed, Ended
from oneturn.testing.contracts.subject import Subject, claim_of, finish_of

T = TypeVar("T")


async def elsewhere(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """The answer of `work`, run on an event loop of its own in a thread of its own."""
    loop, told = asyncio.get_running_loop(), asyncio.Event()
    answers: list[T] = []

    def body() -> None:
        try:
            answers.append(asyncio.run(work()))
        finally:
            loop.call_soon_threadsafe(told.set)

    thread = threading.Thread(target=body)
    thread.start()
    await told.wait()
    thread.join()
    return answers[0]


async def cancelled_after(asking: Awaitable[object], *, turns: int) -> None:
    """Begin to ask, and give up after so many turns of the loop; whether it happened is unknown."""
    task = asyncio.ensure_future(asking)  # noqa: TID251 - awaited below
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


class RecordLoopsContract:
    """Inherit it and provide a fixture `subject`."""

    async def test_records_answer_on_any_event_loop(self, subject: Subject) -> None:
        record = await elsewhere(subject.claimed)
        await subject.finished(record)
        assert await elsewhere(lambda: subject.kinds(record)) == ["started", "succeeded"]

    @pytest.mark.case("O8")
    async def test_a_claim_cancelled_at_any_await_happened_once_or_not_at_all(self, subject: Subject) -> None:
        records = subject.backend.records
        for turns in range(6):
            claim = claim_of()
            await cancelled_after(records.claim(claim), turns=turns)
            answer = await records.claim(claim)
            assert isinstance(answer, Claimed)
            assert await subject.kinds(answer.record) == ["started"]
            await subject.finished(answer.record)

    @pytest.mark.case("O8")
    async def test_a_finish_cancelled_at_any_await_is_made_good_by_repeating_it(self, subject: Subject) -> None:
        records = subject.backend.records
        for turns in range(6):
            finish = finish_of(await subject.claimed())
            await cancelled_after(records.finish(finish), turns=turns)
            answer = await records.finish(finish)
            assert isinstance(answer, Ended)
            assert await subject.kinds(answer.record) == ["started", "succeeded"]

    async def test_a_closed_backend_answers_unavailable_or_what_is_true(self, subject: Subject) -> None:
        """Never something else, and never nothing."""
        record = await subject.claimed()
        await subject.backend.close()
        try:
            found = await subject.backend.records.read(tenant="acme", id=record.id)
        except BackendUnavailable:
            return
        assert found == record


class LeaseLoopsContract:
    """Inherit it and provide a fixture `subject`."""

    async def test_leases_answer_on_any_event_loop(self, subject: Subject) -> None:
        leases = subject.backend.leases
        grant = await elsewhere(lambda: leases.acquire(["k"], owner="a", ttl=10))
        assert isinstance(grant, Grant)
        assert await leases.release(grant)

    @pytest.mark.case("L1")
    async def test_an_acquire_cancelled_at_any_await_leaves_what_its_owner_can_release(self, subject: Subject) -> None:
        """The step may have happened: asking again as the same owner tells, and releasing leaves nothing."""
        leases = subject.backend.leases
        for turns in range(6):
            await cancelled_after(leases.acquire(["k"], owner=f"o{turns}", ttl=60), turns=turns)
            grant = await leases.acquire(["k"], owner=f"o{turns}", ttl=60)
            assert isinstance(grant, Grant)
            assert await leases.release(grant)
            assert await leases.inspect("k") is None

    @pytest.mark.case("L2")
    async def test_a_release_cancelled_at_any_await_can_be_repeated(self, subject: Subject) -> None:
        leases = subject.backend.leases
        for turns in range(6):
            grant = await leases.acquire(["k"], owner=f"o{turns}", ttl=60)
            assert isinstance(grant, Grant)
            await cancelled_after(leases.release(grant), turns=turns)
            await leases.release(grant)
            assert await leases.inspect("k") is None
