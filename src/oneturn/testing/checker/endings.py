"""Endings: I3, one final record that never changes, in time, and of nobody that lives."""

from __future__ import annotations

import json
from collections.abc import Iterator

from oneturn.core.event import TERMINAL
from oneturn.core.status import Status
from oneturn.testing.checker.ledger import Attempt, Ending, named
from oneturn.testing.checker.view import SLACK, View, scope_of
from oneturn.testing.evidence import Belief, Incident, Violation

UNREACHABLE = frozenset(("outage", "network", "restart"))
"""Under these nobody can say whether the lock service was asked: then `alive_until` decides alone."""

ENDS_PROCESSES = frozenset(("kill", "drain"))


def final(view: View) -> Iterator[Violation]:
    """Every record is final, and the last event of its log, and no other, is the terminal one of its status."""
    for turn, last in view.finals.items():
        record = last.record
        if not record.status.final:
            yield Violation(invariant="I3", what=f"{turn} is {record.status.value} for ever")
        elif not record.expired:
            terminal = [event.seq for event in last.events if event.kind in TERMINAL]
            if not last.events or terminal != [last.events[-1].seq] or last.events[-1].kind != record.status.value:
                what = f"{turn} is {record.status.value}, and its terminal events are {terminal}"
                yield Violation(invariant="I3", what=what)


def unchanged(view: View) -> Iterator[Violation]:
    """What the first step that ended a record fixed is what it stays."""
    first: dict[str, Ending] = {}
    for ending in view.ledger.endings:
        known = first.setdefault(ending.turn, ending)
        if known is not ending:
            what = f"{ending.turn} was ended by step {known.step.seq} and again by step {ending.step.seq}"
            yield Violation(invariant="I3", what=what)
    for turn, ending in first.items():
        last = view.finals.get(turn)
        if last is None:
            continue
        record = last.record
        body = ending.body if record.expired else record.body
        if (record.status, body, record.reason) != (ending.status, ending.body, ending.reason):
            what = f"{turn} was {ending.status.value} by step {ending.step.seq}, and is {record.status.value} with other content"
            yield Violation(invariant="I3", what=what)


def own_failures(view: View) -> Iterator[Violation]:
    """I11: a turn fails because its handler said so, never because a store was away or a process was in trouble."""
    if view.evidence.codes is None:
        return
    for turn, last in view.finals.items():
        record = last.record
        if record.status is Status.FAILED and not record.expired:
            code = json.loads(record.body).get("code")
            if code not in view.evidence.codes:
                yield Violation(invariant="I11", what=f"{turn} failed with {code!r}, which no handler said")


def kept(view: View) -> Iterator[Violation]:
    """Whatever was admitted has a record at the end, unless its conversation was forgotten."""
    if not view.finals:
        return
    for turn, record in view.ledger.admitted.items():
        if turn not in view.finals and not view.forgotten(scope_of(record)):
            yield Violation(invariant="I3", what=f"{turn} was admitted and has no record")


def ended_before_the_next(view: View) -> Iterator[Violation]:
    """Nobody is given a right while another one stands, which would never end.

    A result that was fenced in the application's own transaction ends an attempt without a step of the store's.
    """
    for step, stood in view.ledger.doubled:
        last = view.finals.get(stood.record.id)
        fenced = last is not None and last.record.status.value == "succeeded" and last.record.epoch == stood.epoch
        if not (fenced and stood.ended is None):
            what = f"step {step.seq} granted a right in {named(stood.scope)} while {stood.record.id} still ran"
            yield Violation(invariant="I3", what=what)


def alive(view: View) -> Iterator[Violation]:
    """Nobody is declared dead who believes that it may go on, rightly: its record or the lock service vouches for it.

    Keys that are still held count only while the lock service could be asked. With it away, or cut off, `alive_until`
    decides alone; and keys that it had lost may be taken again between the sweeper's look and its step.
    """
    for attempt in view.ledger.attempts.values():
        if not attempt.foreign or attempt.ended is None:
            continue
        for belief in view.beliefs.get(attempt.ended.seq, ()):
            if (belief.turn, belief.epoch) != (attempt.record.id, attempt.epoch):
                continue
            if belief.vouched > 0:
                # A step that only may have ended it did not, if the record still vouched.
                if attempt.certain:
                    yield _ended_alive(attempt, belief, f"its record vouched for {belief.vouched:.3f} s more")
            elif _holds_all(belief) and _could_be_asked(view, attempt.ended.time):
                yield _ended_alive(attempt, belief, "it held all its keys")


def _holds_all(belief: Belief) -> bool:
    return bool(belief.keys) and all(holder == belief.owner for holder in belief.keys.values())


def _could_be_asked(view: View, time: float) -> bool:
    recent = (one for one in view.incidents(time - view.bounds.ttl, time) if one.target in ("leases", "all"))
    return view.healthy(time, at="leases") and not any(incident.kind in UNREACHABLE for incident in recent)


def _ended_alive(attempt: Attempt, belief: Belief, why: str) -> Violation:
    ended = attempt.ended
    assert ended is not None  # noqa: S101 - the caller has looked
    return Violation(
        invariant="I3",
        what=f"{attempt.record.id} was abandoned by {ended.host} in step {ended.seq} while {belief.host} worked on it: {why}",
    )


def in_time(view: View) -> Iterator[Violation]:
    """What a killed process left running is ended, or queued again, within its bound.

    The bound is for calm weather: each incident begins it anew, see `_until`. Beyond the last step nothing is known.
    """
    bounds = view.bounds
    bound = bounds.ttl + bounds.sweep_every + bounds.renew_every + bounds.margin + SLACK
    incidents = sorted(view.evidence.incidents, key=lambda incident: incident.time)
    kills = {incident.target: incident for incident in incidents if incident.kind == "kill"}
    for attempt in view.ledger.attempts.values():
        kill = kills.get(attempt.granted.host)
        if kill is None or (attempt.ended is not None and attempt.ended.time <= kill.time + bound):
            continue
        # Its last claim may have arrived after its death.
        began = max(kill.until, attempt.granted.time)
        until = _until(incidents, began, bound=bound, ttl=bounds.ttl)
        ended = attempt.ended.time if attempt.ended is not None else None
        if until > view.ledger.last_time or (ended is not None and ended <= until):
            continue
        if attempt.ended is None and attempt is not view.ledger.scopes[attempt.scope].running:
            continue  # ended without a step of the store's
        stands = "still runs" if ended is None else f"was ended at {ended:.1f}"
        what = f"{attempt.record.id} {stands}; its process was killed at {kill.time:.1f}, the bound was {until:.1f}"
        yield Violation(invariant="I3", what=what)


def _until(incidents: list[Incident], began: float, *, bound: float, ttl: float) -> float:
    """The end of the bound, after everything that was done to the system meanwhile.

    A process that ended may have been the one that had looked once. Anything else may also have moved a voucher by a TTL,
    and that from a TTL before the death on.
    """
    until = began + bound
    for incident in incidents:
        if incident.time <= until and incident.until >= began - ttl:
            moved = 0.0 if incident.kind in ENDS_PROCESSES else ttl
            until = max(until, incident.until + bound + moved)
    return until


RULES = (final, unchanged, own_failures, kept, ended_before_the_next, alive, in_time)
