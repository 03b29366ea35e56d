"""Vouchers: I3, a process that lives and is left in peace vouches for what it runs, and nobody gives that up."""

from __future__ import annotations

from collections.abc import Iterator

from oneturn.core.steps import Due
from oneturn.testing.checker.ledger import Attempt
from oneturn.testing.checker.view import View
from oneturn.testing.evidence import Violation

ENDS_PROCESSES = frozenset(("kill", "drain"))


def neglected(view: View) -> Iterator[Violation]:
    """What a sweeper sees as lapsed was not in the care of a living process that nothing happened to for a TTL."""
    seen: set[tuple[str, int]] = set()
    for step in view.evidence.steps:
        if not isinstance(step.answer, Due):
            continue
        for record in step.answer.lapsed:
            name = (record.id, record.epoch or 0)
            attempt = view.ledger.attempts.get(name)
            if attempt is None or name in seen or not _in_care(view, attempt, step.time):
                continue
            seen.add(name)
            what = f"{record.id} had lapsed at {step.time:.1f} (step {step.seq}), and {attempt.granted.host} lived and ran it"
            yield Violation(invariant="I3", what=what)


def given_up(view: View) -> Iterator[Violation]:
    """What was abandoned was not in the care of a living process that nothing happened to for a TTL."""
    for attempt in view.ledger.attempts.values():
        ended = attempt.ended
        if ended is not None and attempt.foreign and attempt.certain and _in_care(view, attempt, ended.time):
            what = f"{attempt.record.id} was abandoned by step {ended.seq}, and {attempt.granted.host} lived and ran it"
            yield Violation(invariant="I3", what=what)


def _in_care(view: View, attempt: Attempt, time: float) -> bool:
    """Whether its process had heard of it, has lived since, and has been left in peace for a TTL.

    A right whose answer nobody heard is in nobody's care: its process shows that it knows by a step under that epoch.
    """
    since = time - view.bounds.ttl
    if (attempt.record.id, attempt.epoch) not in view.cared_for or attempt.granted.time > since:
        return False
    for incident in view.evidence.incidents:
        if incident.kind in ENDS_PROCESSES:
            if incident.target in attempt.hosts and incident.until >= attempt.granted.time:
                return False
        elif incident.time <= time and incident.until >= since:
            return False
    return True


RULES = (neglected, given_up)
