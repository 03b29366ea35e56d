"""Logs: I12 and I5, each execution's stored events, and what steps wrote into them."""

from __future__ import annotations

from collections.abc import Iterator

from oneturn.core.event import QUEUED, RESTARTED, SNAPSHOT, STARTED, TERMINAL, Logged
from oneturn.core.record import Record
from oneturn.core.status import Status
from oneturn.testing.checker.view import View
from oneturn.testing.evidence import Violation

OF_THE_STORE = TERMINAL | {QUEUED, STARTED, RESTARTED, SNAPSHOT}
"""Kinds that no executor writes."""


def gapless(view: View) -> Iterator[Violation]:
    """I12: ids count from 1 without gaps, or one snapshot stands before the terminal event; nothing follows that one."""
    for turn, last in view.finals.items():
        record, events = last.record, last.events
        if record.expired and not events:
            continue
        ids = [event.seq for event in events]
        if ids != list(range(1, len(ids) + 1)) and not folded(events):
            yield Violation(invariant="I12", what=f"{turn} has the events {ids}")
        elif record.last_seq != (ids[-1] if ids else 0):
            yield Violation(invariant="I12", what=f"{turn} counts {record.last_seq} events and has {ids}")
        ends = [event.seq for event in events if event.kind in TERMINAL]
        if ends and ends[0] != ids[-1]:
            yield Violation(invariant="I12", what=f"{turn} ended with event {ends[0]}, and {ids[-1]} is its last one")


def folded(events: tuple[Logged, ...]) -> bool:
    """Whether retention has folded a log: one snapshot, and the terminal event right after it."""
    return [event.kind == SNAPSHOT for event in events] == [True, False] and events[0].seq + 1 == events[1].seq


def terminal_says_it(view: View) -> Iterator[Violation]:
    """I5: a reader of the log and a reader of the record are told the same, byte for byte."""
    for turn, last in view.finals.items():
        record = last.record
        if last.events and last.events[-1].kind == record.status.value and record.status.final and not record.expired:
            said = last.events[-1].data
            if said != _said(record):
                what = f"the terminal event of {turn} says {said[:40]!r}, its record {record.body[:40]!r}"
                yield Violation(invariant="I5", what=what)


def _said(record: Record) -> str:
    body = record.body.decode()
    return f'{{"result":{body}}}' if record.status is Status.SUCCEEDED else body or "{}"


def stands_as_written(view: View) -> Iterator[Violation]:
    """I5: what a write was accepted for stands in the log under the numbers that it was written for, once."""
    for write in view.ledger.writes:
        asked, answer = write.step.asked, write.step.answer
        end = asked.after + len(asked.events)
        logged = getattr(answer, "last_seq", None)
        # Of what is logged already nothing is logged again; `logged` may be greater, if this is an old call arriving late.
        if logged is not None and logged < end:
            what = f"step {write.step.seq} accepted the events of {asked.id} up to {end}, logged were {logged}"
            yield Violation(invariant="I5", what=what)
        last = view.finals.get(asked.id)
        if last is None or last.record.expired or folded(last.events):
            continue
        there = [(event.kind, event.data) for event in last.events[asked.after : end]]
        if there != [(event.kind, event.data) for event in asked.events]:
            what = f"the events {asked.after + 1} to {end} of {asked.id} are not what step {write.step.seq} wrote"
            yield Violation(invariant="I5", what=what)


def nothing_unwritten(view: View) -> Iterator[Violation]:
    """I5: a log holds what was written and what the store itself logs, and nothing more (such as the same piece twice)."""
    if not view.evidence.steps:
        return
    written: dict[str, set[int]] = {}
    for write in view.ledger.writes:
        asked = write.step.asked
        written.setdefault(asked.id, set()).update(range(asked.after + 1, asked.after + len(asked.events) + 1))
    # A result that was fenced in the application's own transaction wrote its events without a step of the store's.
    by_steps = {ending.turn for ending in view.ledger.endings}.intersection(view.ledger.admitted)
    for turn, last in view.finals.items():
        if turn not in by_steps or last.record.expired or folded(last.events):
            continue
        by_writes = written.get(turn, set())
        extra = [event.seq for event in last.events if event.kind not in OF_THE_STORE and event.seq not in by_writes]
        if extra:
            yield Violation(invariant="I5", what=f"nobody wrote the events {extra} of {turn}")


def begins(view: View) -> Iterator[Violation]:
    """I5: a log tells how often its record was begun: `started` the first time, `restarted` each time after that."""
    for turn, last in view.finals.items():
        record, events = last.record, last.events
        if record.expired or any(event.kind == SNAPSHOT for event in events):
            continue
        begun = [event.kind for event in events if event.kind in (STARTED, RESTARTED)]
        expected = [STARTED, *[RESTARTED] * (record.attempt - 1)][: record.attempt]
        if begun != expected:
            yield Violation(invariant="I5", what=f"{turn} was begun {record.attempt} times, and its log says {begun}")


RULES = (gapless, terminal_says_it, stands_as_written, nothing_unwritten, begins)
