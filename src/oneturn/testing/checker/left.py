"""What is left: I14 and I16, keys, tasks, threads, records and steps of those who have ended."""

from __future__ import annotations

from collections.abc import Iterator

from oneturn.core.lease import Grant, Renewal
from oneturn.core.steps import Appended, Ended, Finish
from oneturn.testing.checker.view import View
from oneturn.testing.evidence import Incident, Step, Violation

EXCUSES = frozenset(("kill", "pause", "block", "outage", "network", "restart", "clock jump"))
"""What may keep a process from finishing its records before its hard deadline."""

UNHEARD = frozenset(("network", "outage", "restart"))
"""What may keep a process from hearing what it was granted."""


def nothing_left(view: View) -> Iterator[Violation]:
    """I14: after the last execution, and after the last process; I16: after a drain.

    A key that no living process knows to hold is freed by its TTL alone; see `_nobodys`.
    """
    for left in view.evidence.left:
        if left.what == "key" and _nobodys(view, key=left.name, owner=left.where):
            continue
        invariant = "I16" if left.when == "drained" else "I14"
        what = f"the {left.what} {left.name!r} was still at {left.where or 'large'} when {left.when}"
        yield Violation(invariant=invariant, what=what)


def _nobodys(view: View, *, key: str, owner: str) -> bool:
    """Whether a key was granted without anybody's hearing of it, or to a process that was killed, a TTL ago at most.

    Unheard: in bad weather an acquire may arrive when its caller has given up. Nothing that follows names its owner.
    """
    granted: Step | None = None
    used = False
    for step in view.evidence.steps:
        match step.method:
            case "acquire" if (
                isinstance(step.answer, Grant) and step.answer.owner == owner and key in (step.asked or ())
            ):
                granted, used = step, False
            case "renew" if any(grant.owner == owner for grant in step.asked):
                granted, used = step, True
            case "release" if step.asked.owner == owner:
                used = True
            case "claim" | "start" if step.asked.owner == owner:
                used = True
            case _:
                pass
    # Known is only that somebody looked before the last step, and that closing takes at most the hard deadline.
    bounds, last = view.bounds, view.ledger.last_time
    if granted is None or last - granted.time > bounds.ttl + bounds.margin + bounds.hard_deadline:
        return False
    incidents = list(view.incidents(granted.time - bounds.ttl, last))
    killed = any(incident.kind == "kill" and incident.target == granted.host for incident in incidents)
    return killed or (not used and any(incident.kind in UNHEARD for incident in incidents))


def released_last(view: View) -> Iterator[Violation]:
    """I14: nobody takes a key whose release was sent already: who gives up learns the outcome first, or nobody frees it.

    In peace only: a late delivery, or keys that were lost and are taken again, may come after a release rightly.
    """
    released: dict[str, float] = {}
    for step in view.evidence.steps:
        if step.method == "release":
            released.setdefault(step.asked.owner, step.time)
        elif step.method == "acquire" and isinstance(step.answer, Grant) and step.answer.owner in released:
            since = released[step.answer.owner]
            if not any(view.incidents(since - view.bounds.ttl, step.time)):
                what = f"step {step.seq} of {step.host} took {step.answer.keys}, which were released at {since:.1f} already"
                yield Violation(invariant="I14", what=what)


def silent(view: View) -> Iterator[Violation]:
    """I16: after its drain no step of a process is accepted.

    A call that it had sent before may arrive late: in bad weather up to a TTL later, which is no step of its own.
    """
    drained = {incident.target: incident for incident in view.evidence.incidents if incident.kind == "drain"}
    if not drained:
        return
    for step in view.evidence.steps:
        drain = drained.get(step.host)
        if drain is None or step.time <= drain.until or not _accepted(step):
            continue
        if step.time <= drain.until + view.bounds.ttl and _stormy(view, drain.time, step.time):
            continue
        if any(_under_way(view, step, drain.until)):
            continue
        what = f"step {step.seq} ({step.port}.{step.method}) of {step.host} was accepted after its drain"
        yield Violation(invariant="I16", what=what)


def _stormy(view: View, since: float, until: float) -> bool:
    return any(incident.kind in ("network", "outage") for incident in view.incidents(since, until))


def _under_way(view: View, step: Step, since: float) -> Iterator[Incident]:
    """Calls of this port that had left by then, and may be this one, which arrives late."""
    for incident in view.incidents(step.time, step.time):
        if incident.kind == "network" and incident.target == step.port and incident.time <= since:
            yield incident


def _accepted(step: Step) -> bool:
    match step.method:
        case "acquire":
            return isinstance(step.answer, Grant)
        case "renew":
            return Renewal.KEPT in step.answer
        case "touch":
            return None in step.answer
        case "append":
            return isinstance(step.answer, Appended)
        case "finish":
            return isinstance(step.asked, Finish) and isinstance(step.answer, Ended) and step.answer.here
        case _:
            return False


def all_final(view: View) -> Iterator[Violation]:
    """I16: what a drained process ran is ended by then, unless something else than the drain was done to it meanwhile."""
    for drain in view.evidence.incidents:
        if drain.kind != "drain" or any(_hindered(view, drain)):
            continue
        for attempt in view.ledger.attempts.values():
            granted = attempt.granted
            if granted.host != drain.target or granted.time > drain.until:
                continue
            if (attempt.record.id, attempt.epoch) not in view.cared_for:
                continue  # its claim arrived after its process had given up asking: nobody ever knew of it
            if attempt.ended is None and attempt is not view.ledger.scopes[attempt.scope].running:
                continue  # ended without a step of the store's
            if attempt.ended is None or attempt.ended.time > drain.until:
                what = f"{attempt.record.id} still ran on {drain.target} when it had drained at {drain.until:.1f}"
                yield Violation(invariant="I16", what=what)


def _hindered(view: View, drain: Incident) -> Iterator[Incident]:
    for incident in view.incidents(drain.time, drain.until):
        if incident.kind in EXCUSES and incident.target in (drain.target, "records", "leases", "all"):
            yield incident


RULES = (nothing_left, released_last, silent, all_final)
