"""I2: what holds is silent, what breaks is named."""

from __future__ import annotations

from checker.build import BOUNDS, Script, broken, final, finals, record
from oneturn.testing.evidence import Evidence


def _again(script: Script, attempt: int, **more: object) -> None:
    run = record("t1", epoch=2 * attempt - 1, attempt=attempt, owner=f"o{attempt}", **more)
    if attempt == 1:
        script.claim(run)
    else:
        script.start(run)
    script.entered(run)
    script.abandon(run)


def test_the_work_is_entered_once() -> None:
    script, one = Script(), record("t1")
    script.ran(one)
    script.entered(one)
    assert script.broken() == set()
    script.entered(one)
    assert script.broken() == {"I2"}


def test_a_rerun_may_enter_twice_more() -> None:
    script = Script()
    for attempt in (1, 2, 3):
        _again(script, attempt, recovery="rerun")
    assert script.broken() == set()
    _again(script, 4, recovery="rerun")
    assert script.broken() == {"I2"}


def test_what_declared_nothing_is_not_started_again() -> None:
    script = Script()
    _again(script, 1)
    script.start(record("t1", epoch=3, attempt=2))
    assert script.broken() == {"I2"}


def test_each_entry_has_a_right_that_its_host_was_granted() -> None:
    script, one = Script(), record("t1")
    script.claim(one, host="h2")
    script.entered(one, host="h2")
    assert script.broken() == set()
    script.evidence.entries.clear()
    script.entered(one, host="h1")
    assert script.broken() == {"I2"}
    script.evidence.entries.clear()
    script.entered(record("t1", epoch=2), host="h2")
    assert script.broken() == {"I2"}


def test_an_entry_after_a_stop_that_nobody_could_know_of_is_right() -> None:
    """The claim's reply was slow: the record was stopped before the work began."""
    script, one = Script(), record("t1")
    script.claim(one)
    script.stop(final(one, "stopped"))
    script.entered(one)
    assert script.broken() == set()


def test_without_steps_the_final_records_tell_who_may_enter() -> None:
    one = final(record("t1"))
    script = Script(finals=finals(one))
    script.entered(one.record)
    assert script.broken() == set()
    script.entered(record("unknown"))
    assert broken(Evidence(bounds=BOUNDS, finals=finals(one), entries=script.evidence.entries)) == {"I2"}
