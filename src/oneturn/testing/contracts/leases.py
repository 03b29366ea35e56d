"""The contract of `LeaseStore`."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator

import pytest

from oneturn.core.failpoint import install
from oneturn.core.lease import Grant, Held, Renewal
from oneturn.testing.contracts.loops import LeaseLoopsContract
from oneturn.testing.contracts.subject import Subject

STRANGE = ("a b", "a{b}c", "a:b", "100%", "%7B", "会话🔒", "x" * 1024, "'; DROP TABLE lease; --", "a\nb")


class LeaseStoreContract(LeaseLoopsContract):
    """Inherit it and provide a fixture `subject`."""

    @pytest.fixture
    def failpoints(self) -> Iterator[list[str]]:
        """The names of the failpoints that were passed: no I/O happens without one."""
        names: list[str] = []

        async def hear(name: str) -> None:
            names.append(name)

        install(hear)
        yield names
        install(None)

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
    @pytest.mark.parametrize("seconds", [0, -1, math.nan, math.inf, -math.inf])
    async def test_an_impossible_time_is_refused_before_any_io(
        self, subject: Subject, seconds: float, failpoints: list[str]
    ) -> None:
        with pytest.raises(ValueError, match="ttl"):
            await subject.backend.leases.acquire(["k"], owner="a", ttl=seconds)
        with pytest.raises(ValueError, match="mark_for"):
            await subject.backend.leases.revoke("k", mark_for=seconds)
        assert failpoints == []
        assert await subject.backend.leases.inspect("k") is None

    @pytest.mark.parametrize("keys", [[], ["k", "k"], [""], ["k", ""]])
    async def test_impossible_keys_are_refused_before_any_io(
        self, subject: Subject, keys: list[str], failpoints: list[str]
    ) -> None:
        with pytest.raises(ValueError, match="keys"):
            await subject.backend.leases.acquire(keys, owner="a", ttl=1)
        assert failpoints == []

    async def test_any_number_of_grants_is_renewed_in_one_round_trip(
        self, subject: Subject, failpoints: list[str]
    ) -> None:
        grants = [await self._granted(subject, f"k{number}") for number in range(20)]
        failpoints.clear()
        assert await subject.backend.leases.renew(grants) == [Renewal.KEPT] * 20
        assert failpoints.count("leases.renew.before") <= 1

    async def test_renewing_nothing_answers_nothing(self, subject: Subject) -> None:
        assert await subject.backend.leases.renew([]) == []

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

    async def test_the_holder_of_a_revoked_key_learns_it_at_its_next_renewal(self, subject: Subject) -> None:
        """Until the mark has passed; after that the key is just gone."""
        grant = await self._granted(subject, "k")
        await subject.backend.leases.revoke("k", mark_for=30)
        assert await subject.backend.leases.renew([grant]) == [Renewal.REVOKED]
        subject.elapse(29)
        assert await subject.backend.leases.renew([grant]) == [Renewal.REVOKED]
        assert not await subject.backend.leases.release(grant)
        subject.elapse(2)
        assert await subject.backend.leases.renew([grant]) == [Renewal.ABSENT]

    async def test_a_mark_tells_its_owner_for_how_long_and_covers_one_key(self, subject: Subject) -> None:
        await self._granted(subject, "k", "l")
        await subject.backend.leases.revoke("k", mark_for=30)
        subject.elapse(5)
        refused = await subject.backend.leases.acquire(["l", "k"], owner="a", ttl=10)
        assert isinstance(refused, Held)
        assert (refused.key, round(refused.remaining, 3)) == ("k", 25.0)
        await self._granted(subject, "l", owner="a")

    async def test_a_stranger_may_take_a_marked_key_and_renew_it(self, subject: Subject) -> None:
        late = await self._granted(subject, "k")
        await subject.backend.leases.revoke("k", mark_for=30)
        grant = await self._granted(subject, "k", owner="b")
        assert await subject.backend.leases.renew([grant, late]) == [Renewal.KEPT, Renewal.FOREIGN]

    @pytest.mark.row("Q14")
    async def test_a_release_frees_what_is_still_ours_and_nothing_else(self, subject: Subject) -> None:
        leases = subject.backend.leases
        grant = await self._granted(subject, "k", "l", "m", ttl=10)
        await leases.release(Grant(keys=("l",), owner="a", ttl=10, fencing_token=0))
        await self._granted(subject, "l", owner="b")
        assert not await leases.release(grant)
        holders = [await leases.inspect(key) for key in ("k", "l", "m")]
        assert [holder and holder.owner for holder in holders] == [None, "b", None]

    @pytest.mark.case("L4")
    async def test_a_release_repeated_after_a_lost_reply_leaves_the_next_holder_alone(self, subject: Subject) -> None:
        grant = await self._granted(subject, "k")
        assert await subject.backend.leases.release(grant)
        await self._granted(subject, "k", owner="b")
        assert not await subject.backend.leases.release(grant)
        holding = await subject.backend.leases.inspect("k")
        assert holding is not None
        assert holding.owner == "b"

    @pytest.mark.case("L21")
    async def test_what_remains_is_never_more_than_the_ttl(self, subject: Subject) -> None:
        grant = await self._granted(subject, "k", ttl=10)
        for _ in range(100):
            subject.elapse(0.05)
            assert await subject.backend.leases.renew([grant]) == [Renewal.KEPT]
            holding = await subject.backend.leases.inspect("k")
            assert holding is not None
            assert 9.999 <= holding.remaining <= 10.001

    @pytest.mark.case("L33")
    async def test_a_contender_is_told_the_holders_time_not_its_own(self, subject: Subject) -> None:
        await self._granted(subject, "k", ttl=30)
        answer = await subject.backend.leases.acquire(["k"], owner="b", ttl=5)
        assert isinstance(answer, Held)
        assert round(answer.remaining, 3) == 30

    @pytest.mark.row("Q14")
    async def test_of_many_who_ask_at_once_one_is_granted(self, subject: Subject) -> None:
        asked = [subject.backend.leases.acquire(["k", f"own{n}"], owner=f"o{n}", ttl=10) for n in range(50)]
        answers = await asyncio.gather(*asked)
        (winner,) = [answer for answer in answers if isinstance(answer, Grant)]
        for number in range(50):
            holding = await subject.backend.leases.inspect(f"own{number}")
            assert (holding is not None) is (winner.owner == f"o{number}")

    async def test_fencing_tokens_grow_with_every_new_acquisition_however_the_last_one_ended(
        self, subject: Subject
    ) -> None:
        leases, tokens = subject.backend.leases, list[int]()
        for owner, end in (("a", "release"), ("b", "lapse"), ("c", "revoke"), ("d", "release"), ("d", "lapse")):
            grant = await self._granted(subject, "k", "l", owner=owner)
            tokens.append(grant.fencing_token)
            match end:
                case "release":
                    await leases.release(grant)
                case "revoke":
                    assert await leases.revoke("k", mark_for=60)
                    assert await leases.revoke("l", mark_for=60)
                case _:
                    subject.elapse(11)
        assert tokens == sorted(set(tokens))

    async def test_a_keys_token_never_falls_whatever_sets_it_was_taken_in(self, subject: Subject) -> None:
        newest = dict[str, int]()
        for keys in (("k",), ("l",), ("k", "l"), ("l", "k"), ("k", "m"), ("k",), ("m", "l", "k")):
            grant = await self._granted(subject, *keys)
            for key in keys:
                holding = await subject.backend.leases.inspect(key)
                assert holding is not None
                assert holding.fencing_token == grant.fencing_token >= newest.get(key, 0)
                newest[key] = grant.fencing_token

    async def test_a_free_key_that_joins_held_ones_gets_a_new_token(self, subject: Subject) -> None:
        """The free one may have had a later holder than the held ones: both tokens must grow past theirs."""
        await self._granted(subject, "k", owner="a")
        between = await self._granted(subject, "m", owner="b")
        await subject.backend.leases.release(between)
        grant = await self._granted(subject, "k", "m", owner="a")
        assert grant.fencing_token > between.fencing_token

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
