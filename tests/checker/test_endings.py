"""I3: what holds is silent, what breaks is named."""

from __future__ import annotations

from dataclasses import replace

import pytest

from checker.build import BOUNDS, Script, broken, final, finals, record
from oneturn.core.event import Logged
from oneturn.core.status import Status
from oneturn.core.steps import Busy, Full
from oneturn.testing.evidence import Evidence, Final


def _of(last: Final) -> set[str]:
    return broken(Evidence(bounds=BOUNDS, finals=finals(last)))


@pytest.mark.parametrize("word", ["succeeded", "failed", "stopped", "abandoned"])
def test_every_final_record_has_its_terminal_event_at_the_end(word: str) -> None:
    last = final(record(), word)
    assert _of(last) == set()
    assert _of(replace(last, events=last.events[:-1])) == {"I3", "I12"}  # the count is wrong, too
    wrong = Logged(seq=2, kind="succeeded" if word != "succeeded" else "failed", data="{}")
    assert _of(replace(last, events=(last.events[0], wrong))) == {"I3"}


def test_a_turn_fails_with_a_code_that_its_handler_said() -> None:
    last = finals(final(record(), "failed"))
    assert broken(Evidence(bounds=BOUNDS, finals=last)) == set()
    assert broken(Evidence(bounds=BOUNDS, finals=last, codes=frozenset(("no",)))) == set()
    assert broken(Evidence(bounds=BOUNDS, finals=last, codes=frozenset(("other",)))) == {"I11"}


def test_a_record_is_not_running_for_ever() -> None:
    running = record()
    assert _of(Final(record=running, events=(Logged(seq=1, kind="started", data="{}"),))) == {"I3"}


def test_two_terminal_events_are_one_too_many() -> None:
    last = final(record())
    twice = replace(last.record, last_seq=3)
    assert "I3" in _of(replace(last, record=twice, events=(*last.events, replace(last.events[-1], seq=3))))


def test_a_final_record_stays_as_it_was_first() -> None:
    script, one = Script(), record()
    script.ran(one)
    assert script.broken() == set()
    script.evidence.finals = finals(final(one, "stopped"))
    assert script.broken() == {"I3"}


def test_a_record_is_ended_once() -> None:
    script, one = Script(), record()
    last = script.ran(one)
    script.finish(last, here=False)  # the same again: told, not done
    assert script.broken() == set()
    script.stop(last)
    assert script.broken() == {"I3"}


def test_who_was_ended_by_the_way_of_a_claim_is_abandoned() -> None:
    script, dead, next_ = Script(), record("t1"), record("t2", epoch=3, sequence=2)
    script.claim(dead)
    script.claim(next_, dead="t1")
    script.finish(final(next_))
    script.evidence.finals = finals(final(dead, "abandoned"), final(next_))
    assert script.broken() == set()
    script.evidence.finals = finals(final(dead, "stopped"), final(next_))
    assert script.broken() == {"I3"}


def test_whatever_was_admitted_is_there_at_the_end() -> None:
    script = Script()
    script.ran(record("t1"))
    script.enqueue(record("t2", sequence=2))
    script.evidence.finals |= finals(final(record("t2", epoch=None, attempt=0, sequence=2), "stopped", "queued"))
    assert script.broken() == set()
    del script.evidence.finals["t2"]
    assert script.broken() == {"I3"}
    script.step("erase", None, 1, tenant="a", scope="s")
    assert script.broken() == set()


def test_a_right_ends_before_the_next_is_given() -> None:
    one, two = record("t1"), record("t2", epoch=2, sequence=2)
    script = Script()
    script.claim(one)
    script.claim(two)
    assert script.broken() == {"I3"}


def test_a_result_fenced_in_the_applications_transaction_ends_without_a_step() -> None:
    one, two = record("t1"), record("t2", epoch=2, sequence=2)
    script = Script(finals=finals(final(one)))
    script.claim(one)
    script.ran(two)
    assert script.broken() == set()


# -- no live execution is abandoned -----------------------------------------------------------------------------------

KEYS = {"r": "owner of t1", "s": "owner of t1"}


@pytest.mark.parametrize("keys", [{}, {"r": "", "s": "owner of t1"}, {"r": "owner of t1", "s": "x"}])
def test_who_lost_a_key_and_its_record_may_be_abandoned(keys: dict[str, str]) -> None:
    one = record()
    script = Script()
    script.incident("emptied", "leases", 0)
    script.claim(one)
    step = script.abandon(one, final(one, "abandoned"), at=20)
    script.believed(one, step, keys=keys)
    assert script.broken() == set()


def test_who_holds_all_keys_is_not_abandoned() -> None:
    one = record()
    script = Script()
    script.claim(one)
    step = script.abandon(one, final(one, "abandoned"), at=20, host="h2")
    script.believed(one, step, keys=KEYS)
    assert script.broken() == {"I3"}


def test_whose_record_vouches_is_not_abandoned() -> None:
    one = record()
    script = Script()
    script.claim(one)
    step = script.abandon(one, final(one, "abandoned"), at=2, host="h2")
    script.believed(one, step, keys={"r": "", "s": ""}, vouched=3.0)
    assert script.broken() == {"I3"}


def test_with_the_lock_service_away_the_record_alone_decides() -> None:
    one = record()
    script = Script()
    script.incident("outage", "leases", 15, 19)
    script.claim(one)
    step = script.abandon(one, final(one, "abandoned"), at=20, host="h2")
    script.believed(one, step, keys=KEYS)
    assert script.broken() == set()


def test_a_claim_does_not_end_the_living_either() -> None:
    one, two = record("t1"), record("t2", epoch=3, sequence=2)
    script = Script()
    script.claim(one)
    step = script.claim(two, dead="t1", at=20, host="h2")
    script.believed(one, step, keys={"r": "x"})
    assert script.broken() == {"I10"}  # its lease was wrong, but nobody who was alive was ended
    script.believed(one, step, keys=KEYS)
    assert script.broken() == {"I3", "I10"}


def test_a_refused_claim_may_have_ended_somebody_all_the_same() -> None:
    """Busy names who is in the way now; of a full queue only what follows tells."""
    dead = record("t1", recovery="rerun")
    waiting = replace(dead, status=Status.QUEUED, epoch=None, owner="")
    for answer, is_ended in ((Busy(record=waiting), True), (Busy(record=dead), False), (Full(limit=4), True)):
        script = Script()
        script.claim(dead)
        step = script.claim(record("t2"), answer=answer, dead="t1", at=20, host="h2")
        script.believed(dead, step, keys=KEYS)
        if is_ended:
            script.start(record("t1", recovery="rerun", epoch=3, attempt=2, owner="o2"))
        else:
            script.touch(dead)
        assert script.broken() == ({"I3"} if is_ended else set())


# -- in time ----------------------------------------------------------------------------------------------------------


def _killed(script: Script, *, ended_at: float) -> set[str]:
    one = record()
    script.claim(one, at=1)
    script.incident("kill", "h1", 2)
    script.abandon(one, final(one, "abandoned"), host="h2", at=ended_at)
    script.step("due", None, None, host="h2", at=100)
    return script.broken()


def test_the_dead_are_ended_within_their_bound() -> None:
    bound = 2 + BOUNDS.ttl + BOUNDS.sweep_every + BOUNDS.renew_every + BOUNDS.margin + 2
    assert _killed(Script(), ended_at=bound - 0.1) == set()
    assert _killed(Script(), ended_at=bound + 0.1) == {"I3"}


def test_the_bound_begins_anew_with_each_incident() -> None:
    for kind, target, latest in (("kill", "h2", 15 + 19), ("outage", "records", 15 + 19 + 10)):
        for ended_at, expected in ((latest - 0.1, set()), (latest + 0.1, {"I3"})):
            script = Script()
            script.incident(kind, target, 15)
            assert _killed(script, ended_at=ended_at) == expected


def test_what_the_dead_left_running_is_ended_at_all() -> None:
    script = Script()
    script.claim(record(), at=1)
    script.incident("kill", "h1", 2)
    script.step("due", None, None, host="h2", at=10)
    assert script.broken() == set()  # too early to tell
    script.step("due", None, None, host="h2", at=100)
    assert script.broken() == {"I3"}
