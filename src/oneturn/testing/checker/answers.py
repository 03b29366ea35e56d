"""Answers: I7 and I8, what each turn was given as its context, and who answers which message."""

from __future__ import annotations

import json
from collections.abc import Iterator

from oneturn.core.record import Record
from oneturn.core.status import Status, StopReason
from oneturn.testing.checker.view import View, scope_of
from oneturn.testing.evidence import Violation


def context_of_the_accepted(view: View) -> Iterator[Violation]:
    """I7: an accepted turn was given exactly the messages that were answered before it, in the order of the answers.

    Messages whose text was not kept are not given, and a conversation of which something was forgotten is not judged.
    """
    for entry in view.evidence.entries:
        last = view.finals.get(entry.turn)
        if last is None or entry.history is None:
            continue
        record = last.record
        if record.status is not Status.SUCCEEDED or record.epoch != entry.epoch or view.forgotten(scope_of(record)):
            continue
        without = record.message if record.message != record.id else ""
        before = view.answers[scope_of(record)].before(entry.epoch)
        given = tuple(turn for turn in before if turn != without and _has_text(view, turn))
        if entry.history != given:
            what = f"{entry.turn} was given {entry.history}, answered before it were {given}"
            yield Violation(invariant="I7", what=what)


def _has_text(view: View, turn: str) -> bool:
    last = view.finals.get(turn)
    return last is not None and last.record.payload is not None


def context_as_read(view: View) -> Iterator[Violation]:
    """I7: what the store answered as context is what stands there at the end: nothing older appeared afterwards.

    Judged for reads of the attempt that runs, by its own epoch: later, a regenerated answer may have taken a place.
    """
    if not view.finals:
        return
    for step, name in view.ledger.histories:
        if view.forgotten(name):
            continue
        named = step.named
        before = view.answers[name].before(named["before_epoch"])
        before.pop(named.get("without", ""), None)
        expected = list(before.items())[-named.get("limit", 50) :]
        answered = [(message.turn, message.answered_by) for message in step.answer]
        if answered != expected:
            what = f"step {step.seq} read the context {answered} before epoch {named['before_epoch']}, it is {expected}"
            yield Violation(invariant="I7", what=what)


def one_answer(view: View) -> Iterator[Violation]:
    """I8: each message is answered by the turn that succeeded for it: the first, or the regenerating one that replaced it.

    Of two turns that were asked to replace the same answer only the first to succeed does.
    """
    for turn, last in view.finals.items():
        record = last.record
        if record.expired or view.forgotten(scope_of(record)):
            continue
        expected = view.answers[scope_of(record)].now.get(record.message, "")
        if last.answered_by != expected:
            what = f"the message of {turn} is answered by {last.answered_by!r}, it should be by {expected!r}"
            yield Violation(invariant="I8", what=what)


def or_a_reason(view: View) -> Iterator[Violation]:
    """I8: a record without an answer says why; that a newer turn took over is no reason without a turn that did."""
    for turn, last in view.finals.items():
        record = last.record
        if not _says_why(record):
            yield Violation(invariant="I8", what=f"{turn} is {record.status.value} and does not say why")
        if record.reason is StopReason.SUPERSEDED:
            yield Violation(invariant="I8", what=f"{turn} was superseded, and no turn answers several messages")


def _says_why(record: Record) -> bool:
    match record.status:
        case Status.STOPPED:
            return record.reason is not None
        case Status.FAILED if not record.expired:
            try:
                body = json.loads(record.body)
            except ValueError:
                return False
            return isinstance(body, dict) and bool(body.get("code"))
        case _:
            return True


RULES = (context_of_the_accepted, context_as_read, one_answer, or_a_reason)
