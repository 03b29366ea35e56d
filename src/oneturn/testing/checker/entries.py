"""Entries: I2, how often and under which right the work function was entered."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from oneturn.testing.checker.ledger import ATTEMPTS
from oneturn.testing.checker.view import View
from oneturn.testing.evidence import Entry, Violation


def entered(view: View) -> Iterator[Violation]:
    """I2: at most once, or three times with `rerun`; each time under a right of its own that its host was granted.

    "Never after a final record" is read as that: a stop may be committed while the reply to a claim is under way, and
    then the work is entered without anybody's being able to know. What no store has to forgive is an entry that no claim
    or start granted to that host, or two under one grant.
    """
    by_turn: dict[str, list[Entry]] = defaultdict(list)
    for entry in view.evidence.entries:
        by_turn[entry.turn].append(entry)
    for turn, entries in by_turn.items():
        record = view.records.get(turn)
        if record is None:
            if view.records and not view.ledger.deleted:
                yield Violation(invariant="I2", what=f"{turn} was entered without a record")
            continue
        epochs = [entry.epoch for entry in entries]
        most = ATTEMPTS if record.recovery == "rerun" else 1
        if len(epochs) > most or len(set(epochs)) != len(epochs):
            yield Violation(invariant="I2", what=f"{turn} ({record.recovery}) was entered under the epochs {epochs}")
        if view.evidence.steps:
            yield from _without_a_grant(view, entries)


def _without_a_grant(view: View, entries: list[Entry]) -> Iterator[Violation]:
    for entry in entries:
        attempt = view.ledger.attempts.get((entry.turn, entry.epoch))
        # Who does not know its own name (work on a thread may not) is judged by its right alone.
        if attempt is None or (entry.host and entry.host not in attempt.hosts):
            granted = sorted(attempt.hosts) if attempt is not None else "nobody"
            what = f"{entry.host} entered {entry.turn} under epoch {entry.epoch}, which was granted to {granted}"
            yield Violation(invariant="I2", what=what)


def in_time(view: View) -> Iterator[Violation]:
    """I2: work is not begun that was told to stop, or whose lease is lost: its record may have been given up."""
    for entry in view.evidence.entries:
        if entry.stopping:
            what = f"{entry.turn} was entered under epoch {entry.epoch} though it was to stop: {entry.stopping}"
            yield Violation(invariant="I2", what=what)


def started_again(view: View) -> Iterator[Violation]:
    """I2, from the steps: only what declared `rerun` is started again, and only twice."""
    for attempt in view.ledger.attempts.values():
        record = attempt.record
        if record.attempt > (ATTEMPTS if record.recovery == "rerun" else 1):
            what = f"{record.id} ({record.recovery}) was started for the {record.attempt}. time"
            yield Violation(invariant="I2", what=what)


RULES = (entered, in_time, started_again)
