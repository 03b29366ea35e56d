"""Reads: I5 and I12 for readers of one execution, I6 and I12 for readers of a conversation."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from oneturn.core.event import SNAPSHOT, TERMINAL, Logged, encode, fold
from oneturn.testing.checker.ledger import named
from oneturn.testing.checker.logs import folded
from oneturn.testing.checker.view import View
from oneturn.testing.evidence import ConversationRead, Final, Read, Violation


def once_in_order(view: View) -> Iterator[Violation]:
    """I12: over all its connections a reader is given each id once, without gaps, and nothing after the terminal event.

    A snapshot stands for everything before it: it may follow on any smaller id.
    """
    for read in view.evidence.reads:
        previous, over = read.after, False
        for event in read.events:
            if over or not (event.id == previous + 1 or (event.kind == SNAPSHOT and event.id > previous)):
                ids = [event.id for event in read.events]
                yield Violation(invariant="I12", what=f"a reader of {read.turn} after {read.after} was given {ids}")
                break
            previous, over = event.id, event.kind in TERMINAL


def as_stored(view: View) -> Iterator[Violation]:
    """I5: what readers were given is what is stored, and who was given the end was given all of it.

    Equal events join to equal texts. Of a log that was folded since, the snapshot must be what the events join to.
    """
    stored: dict[str, dict[int, tuple[str, Any]]] = {}
    for read in view.evidence.reads:
        last = view.finals.get(read.turn)
        if last is None or last.record.expired:
            continue
        if read.turn not in stored:
            stored[read.turn] = {event.seq: (event.kind, json.loads(event.data)) for event in last.events}
        log, is_folded = stored[read.turn], folded(last.events)
        for event in read.events:
            there = log.get(event.id)
            replaced = is_folded and (there is None or (there[0] == SNAPSHOT) != (event.kind == SNAPSHOT))
            if there != (event.kind, event.data) and not replaced:
                what = f"a reader of {read.turn} was given {event.kind} as event {event.id}; stored is {there}"
                yield Violation(invariant="I5", what=what)
        if read.events and read.events[-1].kind in TERMINAL:
            yield from _complete(read, last)


def _complete(read: Read, last: Final) -> Iterator[Violation]:
    ids = {event.id for event in read.events}
    snapshots = [event.id for event in read.events if event.kind == SNAPSHOT]
    begin = max(snapshots, default=read.after + 1)
    if missing := [number for number in range(begin, read.events[-1].id + 1) if number not in ids]:
        what = f"a reader of {read.turn} was given its end, and never {missing}"
        yield Violation(invariant="I5", what=what)
    elif folded(last.events) and not snapshots and read.after == 0:
        seen = fold(Logged(seq=event.id, kind=event.kind, data=encode(event.data)) for event in read.events[:-1])
        if seen != json.loads(last.events[0].data):
            yield Violation(invariant="I5", what=f"the snapshot of {read.turn} is not what its readers had seen")


def conversations(view: View) -> Iterator[Violation]:
    """I6 and I12: (epoch, number) only grows, without gaps within an epoch, and each event is the stored one."""
    for read in view.evidence.conversations:
        previous: tuple[int, int] | None = None
        for turn, epoch, event in read.events:
            at = (epoch, event.seq)
            if previous is not None and at <= previous:
                what = f"a reader of {_scope(read)} was given {at} after {previous}"
                yield Violation(invariant="I6", what=what)
            elif previous is not None and event.kind != SNAPSHOT:
                expected = previous[1] + 1 if epoch == previous[0] else 1
                if event.seq != expected:
                    what = f"a reader of {_scope(read)} was given {at} after {previous}, without what is between"
                    yield Violation(invariant="I12", what=what)
            previous = at
            yield from _stored(view, read, turn, epoch, event)


def _scope(read: ConversationRead) -> str:
    return named((read.tenant, read.scope))


def _stored(view: View, read: ConversationRead, turn: str, epoch: int, event: Logged) -> Iterator[Violation]:
    last = view.finals.get(turn)
    if last is None:
        return  # what is missing rightly or not is I3's
    if epoch != last.record.epoch and (turn, epoch) not in view.ledger.attempts and view.evidence.steps:
        what = f"a reader of {_scope(read)} was given {turn} under epoch {epoch}, which it never had"
        yield Violation(invariant="I6", what=what)
    if last.record.expired or folded(last.events):
        return
    stored = last.events[event.seq - 1] if 0 < event.seq <= len(last.events) else None
    if stored != event:
        what = f"a reader of {_scope(read)} was given {event.kind} as event {event.seq} of {turn}; stored is {stored}"
        yield Violation(invariant="I6", what=what)


RULES = (once_in_order, as_stored, conversations)
