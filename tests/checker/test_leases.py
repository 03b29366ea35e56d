"""I10: what holds is silent, what breaks is named."""

from __future__ import annotations

import pytest

from checker.build import Script, final, grant, record
from oneturn.core.lease import Held, Renewal

MINE = {"r": "me", "s": "me"}
THEIRS = {"r": "me", "s": "you"}


def _step(method: str, asked: object, answer: object, before: dict[str, str], after: dict[str, str]) -> set[str]:
    script = Script()
    script.step(method, asked, answer, port="leases", before=before, after=after)
    return script.broken()


def test_a_grant_takes_only_what_is_free_or_ones_own() -> None:
    given, keys = grant("r", "s", owner="me"), ("r", "s")
    assert _step("acquire", keys, given, {}, MINE) == set()
    assert _step("acquire", keys, given, MINE, MINE) == set()
    assert _step("acquire", keys, given, {"s": "you"}, MINE) == {"I10"}
    assert _step("acquire", keys, given, {}, {"r": "me"}) == {"I10"}


def test_a_refusal_takes_nothing() -> None:
    held = Held(key="s", remaining=3)
    assert _step("acquire", ("r", "s"), held, {"s": "you"}, {"s": "you"}) == set()
    assert _step("acquire", ("r", "s"), held, {"s": "you"}, THEIRS) == {"I10"}


@pytest.mark.parametrize("answer", list(Renewal))
def test_a_renewal_changes_no_holder(answer: Renewal) -> None:
    asked = [grant("r", "s", owner="me")]
    assert _step("renew", asked, [answer], MINE, MINE) == set()
    assert _step("renew", asked, [answer], {"r": "me"}, MINE) == {"I10"}


def test_a_renewal_is_all_or_none() -> None:
    asked = [grant("r", "s", owner="me")]
    assert _step("renew", asked, [Renewal.FOREIGN], THEIRS, THEIRS) == set()
    assert _step("renew", asked, [Renewal.KEPT], THEIRS, THEIRS) == {"I10"}
    assert _step("renew", asked, [Renewal.KEPT], {"r": "me"}, {"r": "me"}) == {"I10"}


def test_a_release_frees_ones_own_keys_and_no_others() -> None:
    asked = grant("r", "s", owner="me")
    assert _step("release", asked, True, MINE, {}) == set()
    assert _step("release", asked, False, THEIRS, {"s": "you"}) == set()
    assert _step("release", asked, True, THEIRS, {}) == {"I10"}
    assert _step("release", asked, True, MINE, {"s": "me"}) == {"I10"}


def test_a_look_changes_nothing() -> None:
    assert _step("inspect", "r", None, {"r": "me"}, {"r": "me"}) == set()
    assert _step("inspect", "r", None, {"r": "me"}, {}) == {"I10"}


def _believed(script: Script, keys: dict[str, str], *, vouched: float = -1.0) -> set[str]:
    one = record()
    script.claim(one, at=50)
    step = script.step("acquire", ("s",), grant("s", owner="you"), port="leases", after={"s": "you"}, at=60)
    script.believed(one, step, keys=keys, owner="me", vouched=vouched)
    return script.broken()


def test_a_lease_that_believes_itself_valid_is_valid() -> None:
    assert _believed(Script(), MINE) == set()
    assert _believed(Script(), THEIRS) == {"I10"}
    assert _believed(Script(), {"r": "me", "s": ""}) == {"I10"}


def test_a_record_vouches_as_well() -> None:
    assert _believed(Script(), THEIRS, vouched=2.0) == set()


@pytest.mark.parametrize("kind", ["emptied", "rolled back", "evicted", "clock jump", "revoked", "restart"])
def test_a_lock_service_that_lost_something_may_be_wrong_for_a_while(kind: str) -> None:
    recent, long_ago = Script(), Script()
    recent.incident(kind, "leases", 40)
    long_ago.incident(kind, "leases", 30)
    assert _believed(recent, THEIRS) == set()
    assert _believed(long_ago, THEIRS) == {"I10"}


def test_who_was_ended_before_learns_of_it_a_moment_later() -> None:
    script, one = Script(), record()
    script.claim(one)
    script.stop(final(one, "stopped"))
    step = script.step("acquire", ("s",), grant("s", owner="you"), port="leases", after={"s": "you"})
    script.believed(one, step, keys=THEIRS, owner="me")
    assert script.broken() == set()
