"""Owners: I13, nothing is reachable across tenants, people and conversations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from oneturn.core.identity import Identity
from oneturn.core.record import Record
from oneturn.core.steps import Claim
from oneturn.testing.checker.ledger import named
from oneturn.testing.checker.view import REFUSED, View, identity_of, scope_of
from oneturn.testing.evidence import Step, Violation


def told(view: View) -> Iterator[Violation]:
    """A client is told only of the record of its own identity; "busy" may name another of the same conversation."""
    for one in view.evidence.told:
        record = view.records.get(one.turn) if one.turn else None
        if record is None or one.word == "not-regenerable":  # which names whatever the client had named
            continue
        asked = (one.tenant, one.subject, one.scope, one.key)
        others = one.word in REFUSED and one.word != "key-reused"
        if (scope_of(record) != (one.tenant, one.scope)) if others else (identity_of(record) != asked):
            what = f"{named(asked)} was told of {record.id}, which is {named(identity_of(record))}"
            yield Violation(invariant="I13", what=what)


def read(view: View) -> Iterator[Violation]:
    """A reader of a conversation is given turns of that conversation only."""
    for one in view.evidence.conversations:
        for turn in dict.fromkeys(turn for turn, _, _ in one.events):
            record = view.records.get(turn)
            if record is not None and scope_of(record) != (one.tenant, one.scope):
                what = f"a reader of {one.tenant}/{one.scope} was given {turn} of {named(scope_of(record))}"
                yield Violation(invariant="I13", what=what)


def answered(view: View) -> Iterator[Violation]:
    """A store answers a step only with records of the asked tenant, and of the asked name where one was asked for."""
    for step in view.evidence.steps:
        if step.port == "leases":
            continue
        look = LOOKS.get(step.method, _of_tenant)
        if not look(view, step):
            what = f"step {step.seq} ({step.port}.{step.method}) of {step.host} was answered of somebody else"
            yield Violation(invariant="I13", what=what)


# -- what was asked, and whether the answer is of it ------------------------------------------------------------------


def _of_tenant(_: View, step: Step) -> bool:
    """Steps on one execution: `start`, `append`, `finish`, `stop`, `abandon`, `read`."""
    record = step.answer if isinstance(step.answer, Record) else getattr(step.answer, "record", None)
    if not isinstance(record, Record):
        return True
    tenant = step.named.get("tenant") if step.asked is None else getattr(step.asked, "tenant", None)
    return tenant is None or record.identity.tenant == tenant


def _claimed(_: View, step: Step) -> bool:
    record, asked = getattr(step.answer, "record", None), step.asked
    if not isinstance(record, Record) or not isinstance(asked, Claim):
        return True
    mine, theirs = asked.identity, record.identity
    if type(step.answer).__name__ in ("Busy", "Lapsed"):
        return (mine.tenant, mine.scope) == (theirs.tenant, theirs.scope)
    return mine == theirs


def _named(_: View, step: Step) -> bool:
    return not isinstance(step.asked, Identity) or step.answer is None or step.answer.identity == step.asked


def _touched(_: View, step: Step) -> bool:
    return all(
        record is None or record.identity.tenant == vouch.tenant
        for vouch, record in zip(step.asked, step.answer, strict=False)
    )


def _of_scope(_: View, step: Step) -> bool:
    tenant, scope = step.named["tenant"], step.named["scope"]
    return all(record.identity.tenant == tenant and record.identity.scope == scope for record in step.answer)


def _turns_of_scope(view: View, step: Step, turns: Iterable[str]) -> bool:
    name = (step.named["tenant"], step.named["scope"])
    found = (view.records.get(turn) for turn in turns)
    return all(record is None or scope_of(record) == name for record in found)


def _scope_events(view: View, step: Step) -> bool:
    return _turns_of_scope(view, step, {row[0] for row in step.answer})


def _history(view: View, step: Step) -> bool:
    return _turns_of_scope(view, step, (message.turn for message in step.answer))


def _events(view: View, step: Step) -> bool:
    record = view.records.get(step.named["id"]) if step.answer else None
    return record is None or record.identity.tenant == step.named["tenant"]


def _anything(_: View, __: Step) -> bool:
    return True


LOOKS: dict[str, Callable[[View, Step], bool]] = {
    "claim": _claimed,
    "enqueue_in": _claimed,
    "find": _named,
    "get": _named,
    "touch": _touched,
    "turns": _of_scope,
    "scope_events": _scope_events,
    "history": _history,
    "events": _events,
    # The sweeper's look is across tenants; what is put or dropped, counted or swept has no answer to look at.
    "due": _anything,
    "put": _anything,
    "drop": _anything,
    "sweep": _anything,
    "erase": _anything,
    "position": _anything,
    "scope_epoch": _anything,
}


def cached(view: View) -> Iterator[Violation]:
    """I5: a cached copy is a final record, as it is stored."""
    for step in view.evidence.steps:
        if step.port != "replay" or step.method != "get" or not isinstance(step.answer, Record):
            continue
        copy = step.answer
        last = view.finals.get(copy.id)
        same = last is None or last.record.expired or (last.record.status, last.record.body) == (copy.status, copy.body)
        if not copy.status.final or not same:
            yield Violation(invariant="I5", what=f"step {step.seq} answered a copy of {copy.id} that is not its record")


RULES = (told, read, answered, cached)
