"""Epochs: I1 and, from the steps, I6: the newest right in a conversation is the only one that writes."""

from __future__ import annotations

from collections.abc import Iterator

from oneturn.testing.checker.ledger import ScopeName, named
from oneturn.testing.checker.view import View, scope_of
from oneturn.testing.evidence import Violation


def given_once(view: View) -> Iterator[Violation]:
    """I1, from the final records alone: no two executions of a scope have the same epoch."""
    given: dict[tuple[ScopeName, int], str] = {}
    for turn, final in view.finals.items():
        epoch = final.record.epoch
        if epoch is not None:
            other = given.setdefault((scope_of(final.record), epoch), turn)
            if other != turn:
                what = f"epoch {epoch} of {named(scope_of(final.record))} was given to {other} and to {turn}"
                yield Violation(invariant="I1", what=what)


def increasing(view: View) -> Iterator[Violation]:
    """I1, from the steps: each grant has a greater epoch than all before it; only its own owner is told it again."""
    for name, scope in view.ledger.scopes.items():
        highest = 0
        for attempt in scope.attempts:
            if attempt.epoch <= highest:
                what = f"epoch {attempt.epoch} of {named(name)} was given to {attempt.record.id} after {highest}"
                yield Violation(invariant="I1", what=what)
            highest = max(highest, attempt.epoch)
    for step, attempt in view.ledger.reused:
        what = f"step {step.seq} gave epoch {attempt.epoch} of {attempt.record.id} to a second owner"
        yield Violation(invariant="I1", what=what)


def newest_writes(view: View) -> Iterator[Violation]:
    """I1 and I6: an accepted write carries the highest epoch that was claimed, and its attempt was not ended before.

    A claim makes its epoch visible (it logs `started`), so the highest claimed epoch is the highest visible one. The
    terminal event of an attempt that is ended from outside belongs to the step that ends it, which is no write of its own.
    """
    for write in view.ledger.writes:
        step, epoch = write.step, write.step.asked.epoch
        if epoch != write.highest:
            what = f"step {step.seq} accepted epoch {epoch} of {step.asked.id}, claimed was {write.highest}"
            yield Violation(invariant="I1", what=what)
        if epoch < write.highest or write.late:
            what = f"step {step.seq} made something of {step.asked.id} under epoch {epoch} visible after its end"
            yield Violation(invariant="I6", what=what)


RULES = (given_once, increasing, newest_writes)
