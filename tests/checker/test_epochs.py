"""I1 and I6: what holds is silent, what breaks is named."""

from __future__ import annotations

from checker.build import BOUNDS, Script, broken, final, finals, record, text
from oneturn.testing.evidence import Evidence


def test_an_epoch_is_given_once() -> None:
    one, same, other = record("t1"), record("t2"), record("t2", epoch=2, sequence=2)
    assert broken(Evidence(bounds=BOUNDS, finals=finals(final(one), final(other)))) == set()
    assert broken(Evidence(bounds=BOUNDS, finals=finals(final(one), final(same)))) == {"I1"}


def test_another_conversation_has_epochs_of_its_own() -> None:
    one, other = record("t1"), record("t2", scope="elsewhere")
    assert broken(Evidence(bounds=BOUNDS, finals=finals(final(one), final(other)))) == set()


def test_epochs_grow_in_the_order_of_the_claims() -> None:
    script = Script()
    script.ran(record("t1", epoch=1))
    script.ran(record("t2", epoch=3, sequence=2))
    assert script.broken() == set()
    script.ran(record("t3", epoch=2, sequence=3))
    assert "I1" in script.broken()


def test_the_same_owner_is_told_the_same_and_nobody_else_is() -> None:
    script, one = Script(), record("t1")
    script.claim(one)
    script.claim(one)
    script.finish(final(one))
    script.evidence.finals["t1"] = final(one)
    assert script.broken() == set()
    script.claim(record("t1", owner="somebody else"))
    assert script.broken() == {"I1"}


def test_only_the_newest_right_writes() -> None:
    old, new = record("t1", recovery="rerun"), record("t2", epoch=3, sequence=2)
    script = Script()
    script.claim(old)
    script.append(old, text("a"))
    script.abandon(old)
    script.claim(new)
    script.append(new, text("b"))
    assert script.broken() == set()
    script.append(old, text("c"), after=2)
    assert script.broken() == {"I1", "I6"}


def test_what_was_ended_writes_nothing_more() -> None:
    one = record("t1")
    script = Script()
    script.claim(one)
    script.stop(final(one, "stopped"))
    assert script.broken() == set()
    script.append(one, text("late"))
    assert script.broken() == {"I6"}
