"""Small evidence, made by hand: a script of steps on one clock, and records that end as told."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal

from oneturn.core.event import Event, Logged, terminal_event
from oneturn.core.identity import Identity
from oneturn.core.lease import Grant
from oneturn.core.record import Record
from oneturn.core.status import Status, StopReason
from oneturn.core.steps import (
    Abandon,
    Append,
    Appended,
    Claim,
    Claimed,
    Emitted,
    Ended,
    Enqueued,
    Finish,
    Requeued,
    Start,
    Stop,
    Vouch,
)
from oneturn.testing.checker import check
from oneturn.testing.evidence import (
    Belief,
    Bounds,
    Entry,
    Evidence,
    Final,
    Incident,
    Read,
    Step,
    Told,
)

BOUNDS = Bounds(ttl=10, renew_every=3, margin=1, check_every=2, sweep_every=3, run_limit=40)


def broken(evidence: Evidence) -> set[str]:
    """The names of the invariants that do not hold."""
    return {violation.invariant for violation in check(evidence)}


def record(turn: str = "t1", **fields: Any) -> Record:
    """A record of conversation a/s that just began to run."""
    names = {name: fields.pop(name, value) for name, value in _NAMES.items()}
    whole = Record(
        id=turn,
        identity=Identity(**(names | {"key": names["key"] or turn})),
        handler="chat",
        fingerprint=f"of {turn}",
        payload=b'"?"',
        message=turn,
        sequence=1,
        status=Status.RUNNING,
        owner=f"owner of {turn}",
        epoch=1,
        attempt=1,
        last_seq=1,
    )
    return replace(whole, **fields)


_NAMES = {"tenant": "a", "subject": "u", "scope": "s", "key": ""}


def log(*kinds: str, of: Record) -> tuple[Logged, ...]:
    """A log of these kinds before the terminal event of a final record; a kind may carry its data after a space."""
    events = []
    for seq, kind in enumerate(kinds, 1):
        name, _, data = kind.partition(" ")
        events.append(Logged(seq=seq, kind=name, data=data or "{}"))
    return (*events, terminal_event(seq=len(events) + 1, status=of.status, body=of.body))


def final(
    running: Record, word: str = "succeeded", *kinds: str, answered_by: str | None = None, **fields: Any
) -> Final:
    """How a record stands at the end: succeeded with `"of <turn>"`, or stopped, failed, abandoned."""
    body = {
        "succeeded": f'"of {running.id}"'.encode(),
        "failed": b'{"code":"no","message":""}',
        "stopped": b'{"reason":"cancelled"}',
        "abandoned": b"",
    }[word]
    reason = StopReason.CANCELLED if word == "stopped" else None
    ended = replace(running, status=Status(word), body=body, reason=reason, owner="", **fields)
    events = log(*(kinds or ("started",)), of=ended)
    if answered_by is None:
        answered_by = running.id if word == "succeeded" else ""
    return Final(record=replace(ended, last_seq=len(events)), events=events, answered_by=answered_by)


def finals(*lasts: Final) -> dict[str, Final]:
    """By the turn's name."""
    return {last.record.id: last for last in lasts}


class Script:
    """Evidence that grows step by step; each step takes a tenth of a second unless `at` says when."""

    def __init__(self, **parts: Any) -> None:
        self.evidence = Evidence(bounds=BOUNDS, **parts)
        self.now = 0.0

    def broken(self) -> set[str]:
        """See `broken`."""
        return broken(self.evidence)

    def step(
        self,
        method: str,
        asked: Any,
        answer: Any,
        *,
        host: str = "h1",
        port: Literal["records", "leases", "replay"] = "records",
        at: float | None = None,
        before: Mapping[str, str] | None = None,
        after: Mapping[str, str] | None = None,
        **named: Any,
    ) -> Step:
        """Any step at all."""
        self.now = self.now + 0.1 if at is None else at
        step = Step(
            seq=len(self.evidence.steps) + 1,
            time=self.now,
            host=host,
            port=port,
            method=method,
            asked=asked,
            named=named,
            answer=answer,
            before=before or {},
            after=after or {},
        )
        self.evidence.steps.append(step)
        return step

    # -- records ------------------------------------------------------------------------------------------------------

    def claim(self, of: Record, *, answer: Any = None, dead: str | None = None, **more: Any) -> Step:
        """Admitted, and running at once."""
        return self.step("claim", _claim(of, dead), answer or Claimed(record=of, unanswered=()), **more)

    def enqueue(self, of: Record, *, dead: str | None = None, **more: Any) -> Step:
        """Admitted, and queued."""
        waiting = replace(of, status=Status.QUEUED, epoch=None, owner="", attempt=0)
        return self.step("claim", _claim(of, dead), Enqueued(record=waiting, position=1), **more)

    def start(self, of: Record, *, answer: Any = None, dead: str | None = None, **more: Any) -> Step:
        """Taken from the queue."""
        asked = Start(tenant=of.identity.tenant, id=of.id, owner=of.owner, ttl=BOUNDS.ttl, dead=dead)
        return self.step("start", asked, answer or Claimed(record=of, unanswered=()), **more)

    def append(self, of: Record, *events: str, after: int = 1, logged: int | None = None, **more: Any) -> Step:
        """Logged: events as in `log`."""
        emitted = _emitted(events)
        asked = Append(tenant=of.identity.tenant, id=of.id, epoch=of.epoch or 0, after=after, events=emitted)
        return self.step("append", asked, Appended(last_seq=after + len(emitted) if logged is None else logged), **more)

    def finish(self, last: Final, *, here: bool = True, **more: Any) -> Step:
        """Ended from within, as it stands at the end."""
        ended = last.record
        asked = Finish(
            tenant=ended.identity.tenant,
            id=ended.id,
            epoch=ended.epoch or 0,
            status=ended.status,
            body=ended.body,
            after=0,
        )
        return self.step("finish", asked, Ended(record=ended, here=here), **more)

    def stop(self, last: Final, **more: Any) -> Step:
        """Ended from outside."""
        asked = Stop(tenant=last.record.identity.tenant, id=last.record.id, reason=StopReason.CANCELLED)
        return self.step("stop", asked, Ended(record=last.record), **more)

    def abandon(self, of: Record, last: Final | None = None, **more: Any) -> Step:
        """Declared dead: final, or (without `last`) queued again."""
        asked = Abandon(tenant=of.identity.tenant, id=of.id, epoch=of.epoch or 0, alive_until=0.0)
        waiting = replace(of, status=Status.QUEUED, epoch=None, owner="")
        answer = Requeued(record=waiting) if last is None else Ended(record=last.record)
        return self.step("abandon", asked, answer, **more)

    def touch(self, of: Record, **more: Any) -> Step:
        """Vouched for."""
        vouch = Vouch(tenant=of.identity.tenant, id=of.id, epoch=of.epoch or 0, ttl=BOUNDS.ttl)
        return self.step("touch", [vouch], [None], **more)

    def ran(self, of: Record, word: str = "succeeded", **more: Any) -> Final:
        """Claimed, finished, and so at the end."""
        last = final(of, word)
        self.claim(of, **more)
        self.finish(last, **more)
        self.evidence.finals[of.id] = last
        return last

    # -- what was seen ------------------------------------------------------------------------------------------------

    def believed(
        self, of: Record, step: Step, *, keys: Mapping[str, str], owner: str = "", vouched: float = -1.0
    ) -> None:
        """Its attempt thought that it may go on when `step` was taken."""
        belief = Belief(
            step=step.seq,
            time=step.time,
            host="h1",
            turn=of.id,
            epoch=of.epoch or 0,
            keys=keys,
            owner=owner or of.owner,
            vouched=vouched,
        )
        self.evidence.beliefs.append(belief)

    def entered(self, of: Record, *, host: str = "h1", history: tuple[str, ...] | None = None) -> None:
        """The work began."""
        self.evidence.entries.append(Entry(turn=of.id, epoch=of.epoch or 0, host=host, time=self.now, history=history))

    def incident(self, kind: str, target: str, time: float, until: float | None = None) -> None:
        """Done from outside."""
        self.evidence.incidents.append(
            Incident(kind=kind, target=target, time=time, until=time if until is None else until)  # type: ignore[arg-type]
        )


def told(
    word: str = "succeeded", *, turn: str = "t1", key: str = "", sent: str = "?", time: float = 1.0, **more: Any
) -> Told:
    """What a client heard about the turn's key."""
    body = {"succeeded": f'"of {turn}"'.encode(), "failed": b"no", "stopped": b"cancelled"}.get(word, b"")
    parts = {"tenant": "a", "subject": "u", "scope": "s", "body": body} | more
    return Told(key=key or turn or "t1", sent=sent, word=word, time=time, turn=turn, **parts)


def read(turn: str, events: Iterable[tuple[int, str, Any]], *, after: int = 0) -> Read:
    """What one reader was given."""
    given = [Event(id=number, kind=kind, data=data) for number, kind, data in events]
    return Read(turn=turn, host="h1", events=given, after=after)


def grant(*keys: str, owner: str) -> Grant:
    """Proof that an owner held keys."""
    return Grant(keys=keys, owner=owner, ttl=BOUNDS.ttl, fencing_token=1)


def _claim(of: Record, dead: str | None) -> Claim:
    return Claim(
        id=of.id,
        identity=of.identity,
        handler=of.handler,
        fingerprint=of.fingerprint,
        payload=b'"?"',
        owner=of.owner,
        ttl=BOUNDS.ttl,
        dead=dead,
        regenerate=of.message if of.message != of.id else None,
    )


def _emitted(events: Iterable[str]) -> tuple[Emitted, ...]:
    pairs = (event.partition(" ") for event in events)
    return tuple(Emitted(kind=kind, data=data or "{}") for kind, _, data in pairs)


def text(delta: str) -> str:
    """A piece of text, as `log` and `Script.append` take it."""
    return f"text {json.dumps({'delta': delta}, separators=(',', ':'))}"
