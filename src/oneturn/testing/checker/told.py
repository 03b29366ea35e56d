"""What was told: I4, I9 and I11, and the equality of replays in I5, by what clients were told about each key."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from oneturn.core.record import Record
from oneturn.core.status import Status
from oneturn.testing.checker.ledger import named
from oneturn.testing.checker.view import REFUSED, View
from oneturn.testing.evidence import Told, Violation

ENDS = {
    "succeeded": Status.SUCCEEDED,
    "failed": Status.FAILED,
    "stopped": Status.STOPPED,
    "abandoned": Status.ABANDONED,
}
"""Words that say how the execution ended."""

ANSWERS = frozenset((*ENDS, "expired"))
"""Words that somebody is told only about an execution of the very content that was sent."""

SURELY_LATER = 4
"""TTLs between two tellings after which the second was also decided later: a process may have been paused in between."""


def found(view: View) -> Iterator[Violation]:
    """I4: what was told as succeeded is there, with that result; I11: so is every other end that was told."""
    if not view.finals:
        return
    for told in view.evidence.told:
        if told.word not in ENDS:
            continue
        invariant = "I4" if told.word == "succeeded" else "I11"
        record = _record(view, told)
        if record is None:
            if not view.forgotten((told.tenant, told.scope)):
                yield Violation(
                    invariant=invariant, what=f"{_name(told)} was told {told.word}: there is no such record"
                )
        elif record.status is not ENDS[told.word]:
            what = f"{_name(told)} was told {told.word}, and {record.id} is {record.status.value}"
            yield Violation(invariant=invariant, what=what)
        elif (body := _told_body(record)) is not None and body != told.body:
            what = f"{_name(told)} was told {told.word} with {told.body[:40]!r}, and {record.id} says {body[:40]!r}"
            yield Violation(invariant=invariant, what=what)


def _record(view: View, told: Told) -> Record | None:
    if told.turn:
        last = view.finals.get(told.turn)
        return last.record if last is not None else None
    return view.by_identity.get((told.tenant, told.subject, told.scope, told.key))


def _told_body(record: Record) -> bytes | None:
    """What somebody is told of a final record; None if nothing can be compared."""
    match record.status:
        case Status.SUCCEEDED if not record.expired:
            return record.body
        case Status.FAILED if not record.expired:
            return str(_object(record.body).get("code")).encode()
        case Status.STOPPED:
            return record.reason.value.encode() if record.reason is not None else b""
        case _:
            return None


def _object(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def there_was(view: View) -> Iterator[Violation]:
    """I4: nobody is told of a turn that it is gone, unless it was forgotten: who was admitted has a record."""
    if not view.finals:
        return
    for told in view.evidence.told:
        if told.word == "gone" and not view.forgotten((told.tenant, told.scope)):
            yield Violation(
                invariant="I4", what=f"{_name(told)} was told that {told.turn} is gone, and nothing was forgotten"
            )


def told_again(view: View) -> Iterator[Violation]:
    """I4 and I5: who was told "succeeded" is told so for ever, of the same turn, in the same bytes.

    Refusals that depend on the moment (busy, a full queue, draining) may have been decided before the success and told
    after it. They count if they were asked after the healing, or so much later that no pause explains it.
    """
    if view.ledger.deleted:
        return
    gap = SURELY_LATER * view.bounds.ttl
    for name, all_told in view.told.items():
        first: dict[str, Told] = {}
        for told in all_told:
            if told.word == "succeeded":
                first.setdefault(told.sent, told)
        for told in all_told if first else ():
            success = first.get(told.sent)
            if success is None or told is success:
                continue
            if told.word == "succeeded":
                yield from _same(named(name), success, told)
                continue
            later = told.time - success.time >= gap or (told.final and not success.final)
            forgotten = told.word not in REFUSED and view.forgotten((told.tenant, told.scope))
            if told.word in ENDS or told.word == "key-reused" or (later and not forgotten):
                what = f"{named(name)} was told succeeded, and also {told.word}"
                yield Violation(invariant="I4", what=what)


def _same(name: str, first: Told, again: Told) -> Iterator[Violation]:
    if again.turn != first.turn:
        yield Violation(invariant="I4", what=f"{name} was told to be {first.turn}, and {again.turn}")
    if again.body != first.body:
        yield Violation(invariant="I5", what=f"{name} was told {first.body[:40]!r}, and {again.body[:40]!r}")


def one_end(view: View) -> Iterator[Violation]:
    """I11: nobody is told two different ends of one turn."""
    words: dict[str, set[str]] = defaultdict(set)
    for told in view.evidence.told:
        if told.turn and told.word in ENDS:
            words[told.turn].add(told.word)
    for turn, ends in words.items():
        if len(ends) > 1:
            yield Violation(invariant="I11", what=f"{turn} was told to be {' and '.join(sorted(ends))}")


def one_content(view: View) -> Iterator[Violation]:
    """I9: of two contents under one key at most one is ever answered, and a turn is never told to two contents."""
    for name, all_told in view.told.items():
        answered = {told.sent for told in all_told if told.word in ANSWERS}
        if len(answered) > 1 and not view.ledger.deleted:
            what = f"{named(name)} was answered for {len(answered)} contents: {sorted(answered)}"
            yield Violation(invariant="I9", what=what)
    by_turn: dict[str, Told] = {}
    for told in view.evidence.told:
        if told.turn and told.word in ANSWERS:
            first = by_turn.setdefault(told.turn, told)
            if first.sent != told.sent:
                what = f"{told.turn} was told to {first.sent!r} and to {told.sent!r}"
                yield Violation(invariant="I9", what=what)


def own_content(view: View) -> Iterator[Violation]:
    """I9: an answer is the answer to what was sent; a right is granted only to the content that asked for it."""
    for told in view.evidence.told:
        if told.word == "succeeded" and told.expected is not None and told.body != told.expected:
            what = f"{_name(told)} sent {told.sent!r} and was told {told.body[:40]!r}"
            yield Violation(invariant="I9", what=what)
    for step, record in view.ledger.strangers:
        what = f"step {step.seq} admitted {record.id} for a claim of other content"
        yield Violation(invariant="I9", what=what)


def _name(told: Told) -> str:
    return named((told.tenant, told.subject, told.scope, told.key))


RULES = (found, there_was, told_again, one_end, one_content, own_content)
