"""Regenerations: I8 of messages that are asked again, told by the steps alone: which answer stood when, and which one gave way."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from oneturn.core.record import Record
from oneturn.core.status import Status
from oneturn.core.steps import Claim, Claimed, Enqueued
from oneturn.testing.checker.ledger import ScopeName
from oneturn.testing.checker.view import View, scope_of
from oneturn.testing.evidence import Step, Violation


class Standing:
    """The answers of one conversation after the steps so far."""

    def __init__(self) -> None:
        self.answers: dict[str, str] = {}
        """Message → the turn that answers it, in the order in which they were answered."""
        self.stood: dict[str, str] = {}
        """Regenerating turn → the answer that stood when it was admitted; empty if there was none."""

    def admit(self, record: Record) -> None:
        """A regenerating turn."""
        self.stood[record.id] = self.answers.get(record.message, "")

    def succeed(self, record: Record) -> None:
        """It answers its message, unless that has another answer by now than the one that it was to replace."""
        if self.answers.get(record.message, "") in ("", self.stood.get(record.id, "")):
            self.answers.pop(record.message, None)  # a new answer has a new place
            self.answers[record.message] = record.id


def regenerated(view: View) -> Iterator[Violation]:
    """I8: only the newest answer or a message without one is asked again; of an answer only the one that stood gives way.

    Judged where all is known: nothing was forgotten, and no turn succeeded in an application's own transaction.
    """
    standing: dict[ScopeName, Standing] = defaultdict(Standing)
    judged = _told_by_steps(view)
    for step, record in _moves(view):
        name = scope_of(record)
        if name not in judged:
            continue
        scope = standing[name]
        if not isinstance(step.asked, Claim):
            scope.succeed(record)
            continue
        newest = next(reversed(scope.answers), "")
        if record.message in scope.answers and record.message != newest:
            what = (
                f"step {step.seq} regenerates {record.message}, whose answer stands, and {newest} was answered after it"
            )
            yield Violation(invariant="I8", what=what)
        scope.admit(record)
        if record.replaces != scope.stood[record.id]:
            what = f"{record.id} is to replace {record.replaces!r}, and {scope.stood[record.id]!r} stood when it was admitted"
            yield Violation(invariant="I8", what=what)
    for turn, last in view.finals.items():
        name = scope_of(last.record)
        expected = standing[name].answers.get(last.record.message, "") if name in judged else last.answered_by
        if last.answered_by != expected:
            what = f"the message of {turn} is answered by {last.answered_by!r}, by the steps it is {expected!r}"
            yield Violation(invariant="I8", what=what)


def _told_by_steps(view: View) -> set[ScopeName]:
    """Conversations of which the steps tell every success, and none that the records do not."""
    ended = {ending.turn for ending in view.ledger.endings if ending.status is Status.SUCCEEDED}
    scopes = {scope_of(last.record) for last in view.finals.values()}
    unsure = {
        scope_of(last.record)
        for turn, last in view.finals.items()
        if (last.record.status is Status.SUCCEEDED) != (turn in ended)
    }
    return {name for name in scopes - unsure if not view.forgotten(name)}


def _moves(view: View) -> list[tuple[Step, Record]]:
    """Each first admission of a turn that regenerates, and each success, in the order of their steps."""
    moves: list[tuple[Step, Record]] = []
    admitted: set[str] = set()
    for step in view.evidence.steps:
        asked, answer = step.asked, step.answer
        if not isinstance(asked, Claim) or asked.regenerate is None or not isinstance(answer, Claimed | Enqueued):
            continue
        if answer.record.id not in admitted:
            admitted.add(answer.record.id)
            moves.append((step, answer.record))
    moves += [
        (ending.step, view.records[ending.turn])
        for ending in view.ledger.endings
        if ending.status is Status.SUCCEEDED and ending.turn in view.records
    ]
    return sorted(moves, key=lambda move: move[0].seq)


RULES = (regenerated,)
