"""The contract of `LeaseStore`."""

from __future__ import annotations

import asyncio
import math

import pytest

from oneturn.core.lease import Grant, Held, Renewal
from oneturn.testing.contracts.subject import Subject

STRANGE = ("a b", "a{b}c", "a:b", "100%", "%7B", "会话🔒", "x" * 1024, "'; DROP TABLE lease; --", "a\nb")


class LeaseStoreContract:
    """Inherit it and provide a fixture `subject`."""

    async def _granted(self, subject: Subject, *keys: str, owner: str = "a", ttl: float = 10) -> Grant:
        answer = await subject.backend.leases.acquire(keys, owner=owner, ttl=ttl)
        assert isinstance(answer, Grant), answer
        return answer

    @pytest.mark.row("Q14")
    async def test_a_held_key_is_refused_and_says_for_how_long(self, subject: Subject) -> None:
        await self._granted(subject, "k", ttl=10)
        subject.elapse(4)
        answer = await subject.backend.leases.acquire(["k"], owner="b", ttl=1)
        assert isinstance(answer, Held)
        assert (answer.key, round(answer.remaining, 3)) == ("k", 6.0)

    @pytest.mark.case("L3")
    async def test_the_same_owner_asking_again_is_granted_the_same_with_a_full_ttl(self, subject: Subject) -> None:
        first = await self._granted(subject, "k", "l", ttl=10)
        subject.elapse(9)
        assert await self._granted(subject, "k", "l", ttl=10) == first
        holding = await subject.backend.leases.inspect("k")
        assert holding is not None
        assert round(holding.remaining, 3) == 10.0

    @pytest.mark.case("L18")
    async def test_several_keys_are_taken_all_or_none(self, subject: Subject) -> None:
        await self._granted(subject, "l", owner="b")
        answer = await subject.backend.leases.acquire(["k", "l", "m"], owner="a", ttl=10)
        assert isinstance(answer, Held)
        assert answer.key == "l"
        assert await subject.backend.leases.inspect("k") is None
        assert await subject.backend.leases.inspect("m") is None

    @pytest.mark.row("Q5")
    @pytest.mark.case("L20")
    @pytest.mark.parametrize("ttl", [0.05, 0.5, 1.9, 60.0])
    async def test_the_ttl_is_honoured_to_the_millisecond(self, subject: Subject, ttl: float) -> None:
        await self._granted(subject, "k", ttl=ttl)
        subject.elapse(ttl - 0.001)
        assert await subject.backend.leases.inspect("k") is not None
        subject.elapse(0.002)
        assert await subject.backend.leases.inspect("k") is None
        await self._granted(subject, "k", owner="b")

    @pytest.mark.case("L20")
    @pytest.mark.parametrize("ttl", [0, -1, math.nan, math.inf])
    async def test_an_impossible_ttl_is_refused(self, subject: Subject, ttl: float) -> None:
        with pytest.raises(ValueError, match="ttl"):
            await subject.backend.leases.acquire(["k"], owner="a", ttl=ttl)
        assert await subject.backend.leases.inspect("k") is None

    @pytest.mark.parametrize("keys", [[], ["k", "k"], [""]])
    async def test_impossible_keys_are_refused(self, subject: Subject, keys: list[str]) -> None:
        with pytest.raises(ValueError, match="keys"):
            await subject.backend.leases.acquire(keys, owner="a", ttl=1)

    @pytest.mark.row("Q11")
    async def test_a_renewal_restarts_the_ttl_of_every_grant(self, subject: Subject) -> None:
        grants = [await self._granted(subject, f"k{number}", f"l{number}") for number in range(3)]
        subject.elapse(9)
        assert await subject.backend.leases.renew(grants) == [Renewal.KEPT] * 3
        subject.elapse(9)
        assert await subject.backend.leases.inspect("l2") is not None

    @pytest.mark.row("Q11", "Q14")
    async def test_a_renewal_is_all_or_nothing_and_tells_absent_foreign_and_revoked_apart(
        self, subject: Subject
    ) -> None:
        leases = subject.backend.leases
        absent, foreign, revoked, kept = [
            await self._granted(subject, f"{name}1", f"{name}2") for name in ("absent", "foreign", "revoked", "kept")
        ]
        await leases.release(Grant(keys=("absent2",), owner="a", ttl=1, fencing_token=0))
        await leases.release(Grant(keys=("foreign2",), owner="a", ttl=1, fencing_token=0))
        await self._granted(subject, "foreign2", owner="b", ttl=100)
        assert await leases.revoke("revoked2", mark_for=100)
        subject.elapse(5)
        answers = await leases.renew([absent, foreign, revoked, kept])
        assert answers == [Renewal.ABSENT, Renewal.FOREIGN, Renewal.REVOKED, Renewal.KEPT]
        for name, left in (("absent1", 5), ("foreign1", 5), ("revoked1", 5), ("kept1", 10)):
            holding = await leases.inspect(name)
            assert holding is not None
            assert round(holding.remaining, 3) == left

    @pytest.mark.row("Q14")
    async def test_a_lapsed_owner_cannot_renew_even_if_nobody_took_the_key(self, subject: Subject) -> None:
        grant = await self._granted(subject, "k")
        subject.elapse(10.1)
        assert await subject.backend.leases.renew([grant]) == [Renewal.ABSENT]
        assert await subject.backend.leases.inspect("k") is None

    @pytest.mark.row("Q14")
    @pytest.mark.case("L5")
    async def test_releasing_late_leaves_the_successor_alone(self, subject: Subject) -> None:
        late = await self._granted(subject, "k", "l")
        subject.elapse(11)
        await self._granted(subject, "k", owner="b")
        assert not await subject.backend.leases.release(late)
        holding = await subject.backend.leases.inspect("k")
        assert holding is not None
        assert holding.owner == "b"

    async def test_a_release_frees_every_key_once(self, subject: Subject) -> None:
        grant = await self._granted(subject, "k", "l")
        assert await subject.backend.leases.release(grant)
        assert not await subject.backend.leases.release(grant)
        await self._granted(subject, "k", "l", owner="b")

    async def test_a_revoked_key_is_refused_to_its_owner_only_until_the_mark_has_passed(self, subject: Subject) -> None:
        leases = subject.backend.leases
        await self._granted(subject, "k")
        assert await leases.revoke("k", mark_for=30)
        assert not await leases.revoke("k", mark_for=30)
        assert await leases.inspect("k") is None
        assert isinstance(await leases.acquire(["k"], owner="a", ttl=1), Held)
        subject.elapse(31)
        await self._granted(subject, "k")
        assert await leases.revoke("k", mark_for=30)
        await self._granted(subject, "k", owner="b")

    async def test_fencing_tokens_grow_with_every_acquisition(self, subject: Subject) -> None:
        tokens = []
        for owner in "abcdef":
            grant = await self._granted(subject, "k", owner=owner)
            tokens.append(grant.fencing_token)
            await subject.backend.leases.release(grant)
        assert tokens == sorted(set(tokens))

    @pytest.mark.row("K5")
    @pytest.mark.case("L19")
    async def test_each_name_is_its_own_lock(self, subject: Subject) -> None:
        for number, key in enumerate(STRANGE):
            await self._granted(subject, key, owner=f"o{number}")
        for number, key in enumerate(STRANGE):
            holding = await subject.backend.leases.inspect(key)
            assert holding is not None
            assert (holding.key, holding.owner) == (key, f"o{number}")

    @pytest.mark.row("K5")
    @pytest.mark.case("L17")
    async def test_overlapping_sets_in_any_order_do_not_deadlock(self, subject: Subject) -> None:
        """Fifty tasks take {a, b} and fifty {b, a}: somebody always gets on."""
        leases, done = subject.backend.leases, list[str]()

        async def take(owner: str, keys: list[str]) -> None:
            while isinstance(grant := await leases.acquire(keys, owner=owner, ttl=60), Held):  # noqa: ASYNC110 - contended on purpose
                await asyncio.sleep(0)
            await leases.release(grant)
            done.append(owner)

        await asyncio.gather(*(take(f"o{n}", ["a", "b"] if n % 2 else ["b", "a"]) for n in range(100)))
        assert len(set(done)) == 100

    @pytest.mark.case("L1")
    async def test_a_caller_cancelled_at_any_await_can_find_out_and_release(self, subject: Subject) -> None:
        """The step may have happened: asking again as the same owner tells, and releasing leaves nothing."""
        leases = subject.backend.leases
        for steps in range(6):
            asking = asyncio.ensure_future(leases.acquire(["k"], owner=f"o{steps}", ttl=60))  # noqa: TID251 - cancelled here
            for _ in range(steps):
                await asyncio.sleep(0)
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
            grant = await leases.acquire(["k"], owner=f"o{steps}", ttl=60)
            assert isinstance(grant, Grant)
            assert await leases.release(grant)
            assert await leases.inspect("k") is None
