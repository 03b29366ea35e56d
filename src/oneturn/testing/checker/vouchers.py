"""Vouchers: I3, a process that lives and is left in peace vouches for what it runs, and nobody gives that up."""

from __future__ import annotations

from collections.abc import Iterator

from oneturn.core.steps import Due
from oneturn.testing.checker.ledger import Attempt
from oneturn.testing.checker.view import View
from oneturn.testing.evidence import Violation

ENDS_PROCESSES = frozenset(("kill", "drain"))


SPOKEN = 5
"""So many steps of a process within a TTL show that it could speak with the record store, however bad the network."""


def neglected(view: View) -> Iterator[Violation]:
    """Nothing lapses, and stays so for a TTL, whose process lives, is left in peace and speaks with the record store."""
    seen: set[tuple[str, int]] = set()
    ttl = view.bounds.ttl
    for step in view.evidence.steps:
        if not isinstance(step.answer, Due):
            continue
        for record in step.answer.lapsed:
            attempt = view.ledger.attempts.get((record.id, record.epoch or 0))
            if attempt is None or record.remaining > -ttl or (record.id, attempt.epoch) in seen:
                continue
            if _in_care(view, attempt, step.time, network=False) and _spoken(view, attempt, step.time) >= SPOKEN:
                seen.add((record.id, attempt.epoch))
                host = attempt.granted.host
                what = f"{record.id} had lapsed {-record.remaining:.1f} s before step {step.seq}, and {host} lived and ran it"
                yield Violation(invariant="I3", what=what)


def given_up(view: View) -> Iterator[Violation]:
    """What was abandoned was not in the care of a living process that nothing happened to for a TTL."""
    for attempt in view.ledger.attempts.values():
        ended = attempt.ended
        if ended is None or not attempt.foreign or not attempt.certain:
            continue
        if _in_care(view, attempt, ended.time, network=True):
            what = f"{attempt.record.id} was abandoned by step {ended.seq}, and {attempt.granted.host} lived and ran it"
            yield Violation(invariant="I3", what=what)


def _in_care(view: View, attempt: Attempt, time: float, *, network: bool) -> bool:
    """Whether its process had heard of it, has lived since, and has been left in peace for a TTL.

    A right whose answer nobody heard is in nobody's care: its process shows that it knows by a step under that epoch.
    What happens to other processes, or to the lock service, is no excuse: vouchers go to the record store alone.
    """
    since = time - view.bounds.ttl
    if (attempt.record.id, attempt.epoch) not in view.cared_for or attempt.granted.time > since:
        return False
    for incident in view.evidence.incidents:
        if incident.target in attempt.hosts and incident.kind in ENDS_PROCESSES:
            if incident.until >= attempt.granted.time:
                return False
        elif incident.kind == "network" and not network:
            continue
        elif (
            incident.target in ("records", "all", *attempt.hosts) and incident.time <= time and incident.until >= since
        ):
            return False
    return True


def _spoken(view: View, attempt: Attempt, time: float) -> int:
    since = time - view.bounds.ttl
    return sum(
        step.port == "records" and step.host in attempt.hosts and since <= step.time <= time
        for step in view.evidence.steps
    )


RULES = (neglected, given_up)
