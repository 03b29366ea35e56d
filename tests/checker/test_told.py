"""I4, I9 and I11 (and I5 for replays): what holds is silent, what breaks is named."""

from __future__ import annotations

from dataclasses import replace

import pytest

from checker.build import BOUNDS, Script, broken, final, finals, record, told
from oneturn.core.steps import Claimed
from oneturn.testing.evidence import Evidence, Final, Told


def _told(*what: Told, lasts: tuple[Final, ...] = (final(record()),)) -> set[str]:
    return broken(Evidence(bounds=BOUNDS, finals=finals(*lasts), told=list(what)))


def test_what_was_told_as_succeeded_is_there() -> None:
    assert _told(told()) == set()
    assert _told(told(), lasts=(final(record(), "stopped"),)) == {"I4"}
    assert _told(told(body=b'"another"')) == {"I4"}
    assert _told(told(turn="t2")) == {"I4"}


def test_a_result_that_was_forgotten_need_not_be_there() -> None:
    last = final(record())
    forgotten = replace(
        last, record=replace(last.record, expired=True, body=b"", payload=None), events=(), answered_by=""
    )
    assert _told(told(), told("expired", time=100), lasts=(forgotten,)) == set()


@pytest.mark.parametrize("word", ["failed", "stopped", "abandoned"])
def test_every_end_that_was_told_is_the_true_one(word: str) -> None:
    assert _told(told(word), lasts=(final(record(), word),)) == set()
    assert _told(told(word)) == {"I11"}


def test_the_code_and_the_reason_are_the_true_ones() -> None:
    assert _told(told("failed", body=b"another"), lasts=(final(record(), "failed"),)) == {"I11"}
    assert _told(told("stopped", body=b"shutdown"), lasts=(final(record(), "stopped"),)) == {"I11"}


def test_one_turn_has_one_end() -> None:
    assert _told(told("stopped"), told("stopped"), lasts=(final(record(), "stopped"),)) == set()
    assert "I11" in _told(told("stopped"), told(), lasts=(final(record(), "stopped"),))


def test_a_success_is_told_for_ever() -> None:
    assert _told(told(time=1), told(time=2, final=True)) == set()
    for word in ("key-reused", "failed", "busy", "expired"):
        assert "I4" in _told(told(time=1), told(word, turn="", time=100)), word


def test_a_refusal_of_the_moment_may_be_told_late() -> None:
    assert _told(told(time=1), told("busy", turn="", time=3)) == set()
    assert _told(told(time=1), told("busy", turn="", time=3, final=True)) == {"I4"}


def test_a_success_is_told_of_one_turn_in_the_same_bytes() -> None:
    lasts = (final(record()), final(record("t2", epoch=2, sequence=2, key="t1")))
    assert _told(told(), told(turn="t2", key="t1"), lasts=lasts) >= {"I4", "I5"}
    assert _told(told(), told(body=b'"of t1" '), lasts=lasts) >= {"I5"}


def test_of_two_contents_under_a_key_one_is_answered() -> None:
    assert _told(told(sent="x"), told("key-reused", sent="y")) == set()
    assert _told(told(sent="x"), told("limit", turn="", sent="y")) == set()
    assert _told(told(sent="x"), told(sent="y")) == {"I9"}


def test_an_answer_is_the_answer_to_what_was_sent() -> None:
    assert _told(told(expected=b'"of t1"')) == set()
    assert _told(told(expected=b'"of t2"')) == {"I9"}


def test_a_right_is_granted_to_the_content_that_asked() -> None:
    script, one = Script(), record()
    script.claim(one)
    assert script.broken() == set()
    other = Script()
    other.claim(one, answer=Claimed(record=replace(one, fingerprint="another"), unanswered=()))
    assert other.broken() == {"I9"}


def test_nobody_is_told_that_a_turn_is_gone_which_nobody_has_forgotten() -> None:
    last = final(record())
    forgotten = replace(last, record=replace(last.record, expired=True, body=b""), events=(), answered_by="")
    assert _told(told("gone", turn="t0")) == {"I4"}
    assert _told(told("gone", turn="t0"), lasts=(forgotten,)) == set()
