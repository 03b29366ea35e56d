"""I7 and I8: what holds is silent, what breaks is named."""

from __future__ import annotations

from dataclasses import replace

from checker.build import BOUNDS, Script, broken, final, finals, record
from oneturn.core.record import Record, StoredMessage
from oneturn.core.status import StopReason
from oneturn.testing.evidence import Evidence, Final


def _again(turn: str, of: str, *, epoch: int, replaces: str) -> Record:
    return record(turn, message=of, epoch=epoch, replaces=replaces, sequence=1)


FIRST = record("t1", epoch=1, sequence=1)
SECOND = record("t2", epoch=2, sequence=2)
REGENERATED = _again("t3", "t1", epoch=3, replaces="t1")
FOURTH = record("t4", epoch=4, sequence=3)


def _lasts() -> dict[str, Final]:
    return finals(
        final(FIRST, answered_by="t3"),
        final(SECOND),
        final(REGENERATED, answered_by="t3"),
        final(FOURTH),
    )


def _entered(of: Record, history: tuple[str, ...], lasts: dict[str, Final] | None = None) -> set[str]:
    script = Script(finals=_lasts() if lasts is None else lasts)
    script.entered(of, history=history)
    return script.broken()


def test_a_turn_is_given_what_was_answered_before_it() -> None:
    assert _entered(FIRST, ()) == set()
    assert _entered(SECOND, ("t1",)) == set()
    assert _entered(SECOND, ()) == {"I7"}
    assert _entered(FIRST, ("t2",)) == {"I7"}


def test_a_regenerating_turn_is_not_given_its_own_message() -> None:
    assert _entered(REGENERATED, ("t2",)) == set()
    assert _entered(REGENERATED, ("t1", "t2")) == {"I7"}


def test_an_answer_that_was_replaced_has_the_place_of_the_newer_one() -> None:
    assert _entered(FOURTH, ("t2", "t1")) == set()
    assert _entered(FOURTH, ("t1", "t2")) == {"I7"}


def test_only_accepted_turns_are_judged_and_only_where_nothing_was_forgotten() -> None:
    lasts = _lasts()
    assert _entered(SECOND, (), lasts | finals(final(SECOND, "stopped"))) == set()
    gone = final(FIRST)
    forgotten = replace(gone, record=replace(gone.record, expired=True), events=(), answered_by="")
    assert _entered(SECOND, (), lasts | finals(forgotten)) == set()


def test_a_message_whose_text_was_not_kept_is_not_given() -> None:
    lasts = _lasts()
    without = {turn: replace(last, record=replace(last.record, payload=None)) for turn, last in lasts.items()}
    assert _entered(SECOND, (), without) == set()


def _read(before: int, *answered: tuple[str, str], running: Record = SECOND, limit: int = 50) -> set[str]:
    script = Script(finals=_lasts())
    for one in (FIRST, SECOND, REGENERATED, FOURTH):
        if one is REGENERATED:
            script.start(one)
        else:
            script.claim(one)
        if one is SECOND:
            script.enqueue(REGENERATED)
        if one.epoch == running.epoch:
            messages = [StoredMessage(turn=m, sequence=1, payload=b"", answered_by=by) for m, by in answered]
            script.step("history", None, messages, tenant="a", scope="s", before_epoch=before, limit=limit)
        script.finish(script.evidence.finals[one.id])
    return script.broken()


def test_nothing_older_appears_after_a_context_was_read() -> None:
    assert _read(2, ("t1", "t1")) == set()
    assert _read(2) == {"I7"}
    assert _read(2, ("t1", "t3")) == {"I7"}
    assert _read(4, ("t2", "t2"), ("t1", "t3"), running=FOURTH) == set()
    assert _read(4, ("t1", "t3"), running=FOURTH, limit=1) == set()
    assert _read(4, ("t2", "t2"), running=FOURTH, limit=1) == {"I7"}


def test_a_context_of_an_attempt_that_is_over_is_not_judged() -> None:
    assert _read(1, running=SECOND) == set()
    assert _read(7, running=SECOND) == set()


# -- one answer -------------------------------------------------------------------------------------------------------


def _of(*lasts: Final) -> set[str]:
    return broken(Evidence(bounds=BOUNDS, finals=finals(*lasts)))


def test_a_success_answers_its_message() -> None:
    assert _of(final(FIRST)) == set()
    assert _of(final(FIRST, answered_by="")) == {"I8"}
    assert _of(final(FIRST, "stopped", answered_by="t1")) == {"I8"}
    assert _of(final(FIRST, answered_by="t2"), final(SECOND)) == {"I8"}


def test_of_two_regenerations_of_one_answer_the_first_wins() -> None:
    rival = _again("t5", "t1", epoch=5, replaces="t1")
    first = (final(FIRST, answered_by="t3"), final(REGENERATED, answered_by="t3"))
    assert _of(*first, final(rival, answered_by="t3")) == set()
    second = (final(FIRST, answered_by="t5"), final(REGENERATED, answered_by="t5"))
    assert _of(*second, final(rival, answered_by="t5")) == {"I8"}


def test_what_has_no_answer_says_why() -> None:
    stopped = final(FIRST, "stopped")
    assert _of(stopped) == set()
    assert _of(replace(stopped, record=replace(stopped.record, reason=None))) == {"I8"}
    failed = final(FIRST, "failed")
    assert _of(failed) == set()
    assert "I8" in _of(replace(failed, record=replace(failed.record, body=b"{}")))


def test_superseded_is_no_reason() -> None:
    stopped = final(FIRST, "stopped")
    assert _of(replace(stopped, record=replace(stopped.record, reason=StopReason.SUPERSEDED))) == {"I8"}
