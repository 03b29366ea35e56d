"""I5, I11 and I12 of the work's own words, and of a claim that is asked again."""

from __future__ import annotations

from dataclasses import replace

from checker.build import Script, final, record, text
from oneturn.core.steps import Existing
from oneturn.testing.evidence import Said


def _said(*texts: str, flushed: tuple[int, int] | None = None, word: str = "succeeded") -> set[str]:
    script, one = Script(), record()
    script.claim(one)
    script.append(one, text("a"), text("b"))
    last = final(one, word, "started", text("a"), text("b"))
    script.finish(last)
    script.evidence.finals[one.id] = last
    flushes = [] if flushed is None else [flushed]
    script.evidence.said.append(Said(turn=one.id, epoch=one.epoch or 0, texts=list(texts), flushed=flushes))
    return script.broken()


def test_the_log_of_what_has_succeeded_says_what_its_work_said() -> None:
    assert _said("ab") == set()
    assert _said("ab", "and more") == {"I5"}
    assert _said("ab", "and more", word="failed") == set()


def test_a_flush_vouches_for_what_is_durable() -> None:
    assert _said("ab", flushed=(3, 2)) == set()
    assert _said("ab", flushed=(3, 1)) == {"I12"}


def test_a_claim_that_is_asked_again_is_answered_as_before() -> None:
    def again(owner: str) -> set[str]:
        script, one = Script(), record()
        claim = script.claim(one)
        script.step("claim", replace(claim.asked, owner=owner), Existing(record=one))
        script.stop(final(one, "stopped"))
        return script.broken()

    assert again(record().owner) == set()
    assert again("somebody else") == {"I11"}
