"""The contracts of two capabilities: what several processes share, and what outlives the process that wrote it."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from oneturn.core.backend import Capability
from oneturn.core.lease import Grant, Held, Renewal
from oneturn.core.status import Status
from oneturn.core.steps import Appended, Claimed, Enqueued, Existing
from oneturn.testing.contracts.loops import elsewhere
from oneturn.testing.contracts.small import Ear
from oneturn.testing.contracts.subject import Subject, append_of, claim_of, start_of


class CrossProcessContract:
    """For a backend that declares CROSS_PROCESS: inherit it and provide a fixture `subject` with `other`."""

    async def _two(self, subject: Subject) -> tuple[Subject, Subject]:
        return subject, replace(subject, backend=await subject.other())

    async def test_sharing_is_declared(self, subject: Subject) -> None:
        assert Capability.CROSS_PROCESS in subject.backend.capabilities

    @pytest.mark.row("Q3")
    async def test_a_key_claimed_in_two_processes_at_once_is_executed_once(self, subject: Subject) -> None:
        one, two = await self._two(subject)
        for number in range(10):
            claims = [claim_of(scope=f"c{number}", key="k") for _ in range(8)]
            answers = await asyncio.gather(
                *((one, two)[place % 2].backend.records.claim(claim) for place, claim in enumerate(claims))
            )
            assert [type(answer) for answer in answers].count(Claimed) == 1
            assert [type(answer) for answer in answers].count(Existing) == 7

    @pytest.mark.case("T8")
    async def test_a_queue_limit_holds_over_two_processes(self, subject: Subject) -> None:
        one, two = await self._two(subject)
        await one.claimed()
        answers = await asyncio.gather(
            *((one, two)[place % 2].backend.records.claim(claim_of(queue_limit=5)) for place in range(50))
        )
        assert [type(answer) for answer in answers].count(Enqueued) == 5

    @pytest.mark.case("T20")
    async def test_what_one_process_answered_the_other_sees(self, subject: Subject) -> None:
        one, two = await self._two(subject)
        record = await one.claimed()
        assert await two.backend.records.append(append_of(record, "text")) == Appended(last_seq=2)
        waiting = await two.enqueued()
        await one.finished(record, after=2)
        assert await two.kinds(record) == ["started", "text", "succeeded"]
        started = await two.backend.records.start(start_of(waiting))
        assert isinstance(started, Claimed)
        assert (await one.now(waiting)).status is Status.RUNNING

    async def test_a_lease_of_one_process_is_held_against_the_other(self, subject: Subject) -> None:
        one, two = (side.backend.leases for side in await self._two(subject))
        grant = await one.acquire(["k", "l"], owner="a", ttl=10)
        assert isinstance(grant, Grant)
        refused = await two.acquire(["m", "l"], owner="b", ttl=10)
        assert isinstance(refused, Held)
        assert (refused.key, round(refused.remaining, 3)) == ("l", 10)
        assert await two.renew([grant]) == [Renewal.KEPT]
        assert await two.revoke("k", mark_for=10)
        assert await one.renew([grant]) == [Renewal.REVOKED]

    async def test_fencing_tokens_grow_over_two_processes(self, subject: Subject) -> None:
        sides, tokens = await self._two(subject), list[int]()
        for number in range(6):
            leases = sides[number % 2].backend.leases
            grant = await leases.acquire(["k"], owner=f"o{number}", ttl=10)
            assert isinstance(grant, Grant)
            tokens.append(grant.fencing_token)
            await leases.release(grant)
        assert tokens == sorted(set(tokens))

    @pytest.mark.row("Q14")
    async def test_of_many_owners_in_two_processes_one_holds_the_key_at_a_time(self, subject: Subject) -> None:
        """Each on an event loop of its own: between grant and release nobody else is inside."""
        inside, most, done = 0, 0, 0

        async def work(leases_of: Subject, owner: str) -> None:
            nonlocal inside, most, done
            leases = leases_of.backend.leases
            for _ in range(10):
                while isinstance(grant := await leases.acquire(["k"], owner=owner, ttl=60), Held):  # noqa: ASYNC110 - contended on purpose
                    await asyncio.sleep(0)
                inside += 1
                most = max(most, inside)
                await asyncio.sleep(0)
                inside -= 1
                done += 1
                await leases.release(grant)

        one, two = await self._two(subject)
        await asyncio.gather(
            work(one, "a"), work(two, "b"), elsewhere(lambda: work(one, "c")), elsewhere(lambda: work(two, "d"))
        )
        assert (most, done) == (1, 40)

    async def test_a_signal_of_one_process_is_heard_in_the_other(self, subject: Subject) -> None:
        one, two = await self._two(subject)
        here, there = Ear(), Ear()
        ends = [one.backend.signals.subscribe("t", here), two.backend.signals.subscribe("t", there)]
        one.backend.signals.publish("t")
        await asyncio.gather(here.wait(), there.wait())
        for end in ends:
            end()

    async def test_a_process_that_leaves_takes_nothing_from_the_others(self, subject: Subject) -> None:
        one, two = await self._two(subject)
        record = await two.claimed()
        grant = await two.backend.leases.acquire(["k"], owner="a", ttl=60)
        assert isinstance(grant, Grant)
        await two.backend.close()
        assert (await one.now(record)).status is Status.RUNNING
        assert await one.backend.leases.renew([grant]) == [Renewal.KEPT]


class DurableContract:
    """For a backend that declares DURABLE: inherit it and provide a fixture `subject` with `reopen`."""

    async def test_durability_is_declared(self, subject: Subject) -> None:
        assert Capability.DURABLE in subject.backend.capabilities

    @pytest.mark.case("O7")
    async def test_everything_that_was_answered_is_there_after_reopening(self, subject: Subject) -> None:
        claim = claim_of(claims={"role": "dean"}, recovery="rerun", run_limit=7.0)
        first = await subject.backend.records.claim(claim)
        ended = await subject.answered(scope="d")
        waiting = await subject.enqueued()
        assert isinstance(first, Claimed)
        await subject.backend.records.append(append_of(first.record, "text"))
        after = replace(subject, backend=await subject.reopen())
        assert await after.now(first.record) == replace(first.record, last_seq=2)
        assert await after.now(ended) == ended
        assert await after.kinds(first.record) == ["started", "text"]
        assert await after.backend.records.position(tenant="acme", id=waiting.id) == 1
        assert await after.backend.records.scope_epoch(tenant="acme", scope="c") == 1
        (message,) = await after.backend.records.history(tenant="acme", scope="d")
        assert message.answer == b'"done"'

    @pytest.mark.case("O6")
    async def test_a_step_may_be_repeated_after_reopening(self, subject: Subject) -> None:
        claim = claim_of()
        first = await subject.backend.records.claim(claim)
        after = await subject.reopen()
        again = await after.records.claim(claim)
        assert first == again
        assert isinstance(again, Claimed)
        assert again.record.epoch == 1

    async def test_epochs_and_places_go_on_after_reopening(self, subject: Subject) -> None:
        await subject.answered()
        after = replace(subject, backend=await subject.reopen())
        record = await after.claimed()
        assert (record.epoch, record.sequence) == (2, 2)
