"""I8 by the steps alone: which message may be asked again, and which answer gives way."""

from __future__ import annotations

from checker.build import Script, final, finals, record
from oneturn.core.record import Record

FIRST = record("t1", epoch=1, sequence=1)
SECOND = record("t2", epoch=2, sequence=2)


def _again(turn: str, of: str, *, epoch: int, replaces: str) -> Record:
    return record(turn, message=of, epoch=epoch, replaces=replaces, sequence=1)


def _regenerated(again: Record, *, answered: dict[str, str], first: str = "succeeded") -> set[str]:
    """After two turns one is asked again; `answered`: message → turn, as the store says at the end."""
    words = {"t1": first, "t2": "succeeded", again.id: "succeeded"}
    script = Script()
    lasts = {
        one.id: final(one, words[one.id], answered_by=answered.get(one.message, "")) for one in (FIRST, SECOND, again)
    }
    for one in (FIRST, SECOND, again):
        script.claim(one)
        script.finish(lasts[one.id])
    script.evidence.finals = lasts
    return script.broken()


def test_the_newest_answer_is_asked_again() -> None:
    newest = _again("t3", "t2", epoch=3, replaces="t2")
    assert _regenerated(newest, answered={"t1": "t1", "t2": "t3"}) == set()
    older = _again("t3", "t1", epoch=3, replaces="t1")
    assert _regenerated(older, answered={"t1": "t3", "t2": "t2"}) == {"I8"}


def test_a_message_without_an_answer_is_asked_again_however_old() -> None:
    again = _again("t3", "t1", epoch=3, replaces="")
    assert _regenerated(again, answered={"t1": "t3", "t2": "t2"}, first="stopped") == set()


def test_what_stood_at_the_claim_is_what_it_is_to_replace() -> None:
    """A record that has lost that would leave the old answer standing, and the other rules would believe it."""
    lost = _again("t3", "t2", epoch=3, replaces="")
    assert _regenerated(lost, answered={"t1": "t1", "t2": "t2"}) == {"I8"}


def _rivals(*, winner: str) -> set[str]:
    """Both were admitted while the first answer stood."""
    one, two = (_again(turn, "t1", epoch=epoch, replaces="t1") for turn, epoch in (("t3", 3), ("t4", 4)))
    script = Script(finals=finals(*(final(each, answered_by=winner) for each in (FIRST, one, two))))
    script.claim(FIRST)
    script.finish(final(FIRST))
    script.claim(one)
    script.enqueue(two)
    script.finish(final(one))
    script.start(two)
    script.finish(final(two))
    return script.broken()


def test_of_two_that_were_to_replace_one_answer_the_first_does() -> None:
    assert _rivals(winner="t3") == set()
    assert _rivals(winner="t4") == {"I8"}


def test_a_conversation_with_a_success_that_no_step_tells_is_not_judged() -> None:
    """Such as one in an application's own transaction: the order of the answers is not known."""
    again = _again("t3", "t1", epoch=3, replaces="t1")
    script = Script(finals=finals(final(FIRST, answered_by="t3"), final(SECOND), final(again, answered_by="t3")))
    script.claim(FIRST)
    script.finish(final(FIRST))
    script.claim(SECOND)
    script.claim(again)
    script.finish(final(again))
    assert script.broken() == set()
