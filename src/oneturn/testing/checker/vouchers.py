"""Vouchers: I3, a process that lives and is left in peace vouches for what it runs, and nobody gives that up."""

from __future__ import annotations

from collections.abc import Iterator

from oneturn.core.steps import Abandon, Due, Ended, Finish, Requeued
from oneturn.testing.checker.ledger import Attempt
from oneturn.testing.checker.view import View
from oneturn.testing.evidence import Violation

ENDS_PROCESSES = frozenset(("kill", "drain"))


SPOKEN = 5
"""So many steps of a process within a TTL show that it could speak with the record store, however bad the network."""

ROUNDING = 0.001
"""Seconds by which sums of times may be off."""


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
            if _in_care(view, attempt, step.time) and _spoken(view, attempt, step.time) >= SPOKEN:
                seen.add((record.id, attempt.epoch))
                host = attempt.granted.host
                what = f"{record.id} had lapsed {-record.remaining:.1f} s before step {step.seq}, and {host} lived and ran it"
                yield Violation(invariant="I3", what=what)


def given_up(view: View) -> Iterator[Violation]:
    """What was abandoned, and whose process lives, was not given up by it: it tries to end what it ran until it is answered.

    However late that comes, and though it is refused then: a finish that never arrives was never repeated.
    """
    tried = {(step.asked.id, step.asked.epoch) for step in view.evidence.steps if isinstance(step.asked, Finish)}
    for name, attempt in view.ledger.attempts.items():
        ended = attempt.ended
        if ended is None or not attempt.foreign or name in tried or name not in view.cared_for:
            continue
        if ended.time - attempt.granted.time >= view.bounds.ttl and not _is_gone(view, attempt):
            host = attempt.granted.host
            what = f"{attempt.record.id} was abandoned by step {ended.seq}, and {host}, which lived, never ended it"
            yield Violation(invariant="I3", what=what)


def two_looks(view: View) -> Iterator[Violation]:
    """A sweeper gives nobody up whom it has not found lapsed long enough before, so that a voucher could have come since."""
    apart = view.bounds.renew_every + view.bounds.margin
    first: dict[tuple[str, str, int | None, float], float] = {}
    sweepers: set[str] = set()
    for step in view.evidence.steps:
        asked, answer = step.asked, step.answer
        if isinstance(answer, Due):
            sweepers.add(step.host)
            for record in answer.lapsed:
                first.setdefault((step.host, record.id, record.epoch, record.alive_until), step.time)
        elif isinstance(asked, Abandon) and isinstance(answer, Ended | Requeued) and step.host in sweepers:
            seen = first.get((step.host, asked.id, asked.epoch, asked.alive_until), step.time)
            if step.time - seen < apart - ROUNDING:
                what = f"{asked.id} was given up by {step.host} in step {step.seq}, {step.time - seen:.1f} s after its first look"
                yield Violation(invariant="I3", what=what)


def _is_gone(view: View, attempt: Attempt) -> bool:
    """Whether a process that had this right has ended since."""
    return any(
        incident.kind in ENDS_PROCESSES and incident.target in attempt.hosts and incident.until >= attempt.granted.time
        for incident in view.evidence.incidents
    )


def _in_care(view: View, attempt: Attempt, time: float) -> bool:
    """Whether its process had heard of it, has lived since, and has been left in peace for a TTL.

    A right whose answer nobody heard is in nobody's care: its process shows that it knows by a step under that epoch.
    What happens to other processes, or to the lock service, is no excuse: vouchers go to the record store alone.
    """
    since = time - view.bounds.ttl
    if (attempt.record.id, attempt.epoch) not in view.cared_for or attempt.granted.time > since:
        return False
    own = ("records", *attempt.hosts)
    disturbed = any(incident.target in own for incident in view.incidents(since, time))
    return not disturbed and not _is_gone(view, attempt)


def _spoken(view: View, attempt: Attempt, time: float) -> int:
    since = time - view.bounds.ttl
    return sum(
        step.port == "records" and step.host in attempt.hosts and since <= step.time <= time
        for step in view.evidence.steps
    )


RULES = (neglected, given_up, two_looks)
