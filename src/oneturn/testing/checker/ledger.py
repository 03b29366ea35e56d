"""The ledger: what the steps on records did, told once in their order, for all rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from oneturn.core.record import Record
from oneturn.core.status import Status
from oneturn.core.steps import (
    Abandon,
    Appended,
    Busy,
    Claim,
    Claimed,
    Ended,
    Enqueued,
    Finish,
    Full,
    Requeued,
    Start,
    Stop,
)
from oneturn.testing.evidence import Final, Step

ScopeName = tuple[str, str]
"""Tenant and scope."""

ATTEMPTS = 3
"""Once, and twice more where the handler declared `rerun`: the invariant's number, not the code's."""


@dataclass(slots=True, eq=False, kw_only=True)
class Attempt:
    """A right to execute, from the step that granted it to the step that took it away."""

    record: Record
    """As it was when it began to run."""
    epoch: int
    scope: ScopeName
    granted: Step
    hosts: set[str]
    """Who was answered that it has this right (the same owner asking again is answered the same)."""
    ended: Step | None = None
    foreign: bool = False
    """It was ended as a dead one: by `abandon`, or by the way of somebody else's claim or start."""
    certain: bool = True
    """Whether the answer of `ended` itself says so."""
    doubt: Step | None = None
    """A step that may have ended it by the way; what follows will tell."""


@dataclass(slots=True, eq=False)
class Scope:
    """A conversation as the steps so far have left it."""

    attempts: list[Attempt] = field(default_factory=list)
    running: Attempt | None = None
    highest: int = 0
    """The highest epoch that was claimed."""
    queued: set[str] = field(default_factory=set)
    idle_since: float | None = None
    """Since when somebody waits although nothing runs."""


@dataclass(frozen=True, slots=True)
class Write:
    """An append or a finish that was accepted."""

    step: Step
    scope: ScopeName
    highest: int
    """The scope's highest claimed epoch at that step."""
    late: bool
    """Its attempt had been ended before."""


@dataclass(frozen=True, slots=True)
class Ending:
    """A step that made a record final, and what it fixed."""

    step: Step
    turn: str
    status: Status
    body: bytes
    reason: str | None


@dataclass(frozen=True, slots=True)
class Wait:
    """Somebody waited in a scope in which nothing ran."""

    scope: ScopeName
    since: float
    until: float


class Ledger:
    """See the module. One pass; a step that says nothing new costs next to nothing.

    A claim or a start may end a dead record by the way, and no answer says so in words. `Claimed` says it (two never run
    at once), `Busy` says it (it names what stands in the way now), `Enqueued` and `Full` do not: then the dead one is in
    doubt until it shows a sign of life, or another right is granted in its scope, or its final record says abandoned.
    """

    def __init__(self, steps: Iterable[Step], finals: Mapping[str, Final]) -> None:
        self._finals = finals
        self.attempts: dict[tuple[str, int], Attempt] = {}
        self.scopes: dict[ScopeName, Scope] = {}
        self.admitted: dict[str, Record] = {}
        self.reused: list[tuple[Step, Attempt]] = []
        """Rights that were granted again to another owner."""
        self.doubled: list[tuple[Step, Attempt]] = []
        """Rights that stood when the step granted another one in the same scope."""
        self.strangers: list[tuple[Step, Record]] = []
        """Claims that were answered with a right to a record of other content."""
        self.writes: list[Write] = []
        self.endings: list[Ending] = []
        self.waits: list[Wait] = []
        self.histories: list[tuple[Step, ScopeName]] = []
        """Contexts that were read while the attempt with that epoch ran."""
        self.erased: set[ScopeName] = set()
        self.deleted = False
        """Retention removed tombstones: what is missing may have been there."""
        self.last_time = 0.0
        for step in steps:
            if step.port == "records":
                self._apply(step)
            self.last_time = step.time
        self._close()

    def _apply(self, step: Step) -> None:
        answer = step.answer
        match answer:
            case Appended():
                self._written(step, step.asked.id, step.asked.epoch)
            case Claimed():
                self._claimed(step, answer.record)
            case Enqueued():
                self._enqueued(step, answer.record)
            case Busy() | Full():
                self._refused(step)
            case Ended() if answer.here:
                self._ended(step, answer.record)
            case Requeued():
                attempt = self.attempts.get((step.asked.id, step.asked.epoch))
                if attempt is not None:
                    self._died(attempt, step)
            case _:
                self._looked(step)

    def _looked(self, step: Step) -> None:
        method = step.method
        if method == "touch":
            for vouch, record in zip(step.asked, step.answer, strict=False):
                if record is None and (attempt := self.attempts.get((vouch.id, vouch.epoch))) is not None:
                    attempt.doubt = None
        elif method == "history":
            named = step.named
            scope = self.scopes.get((named["tenant"], named["scope"]))
            running = scope.running if scope is not None else None
            if running is not None and running.epoch == named.get("before_epoch"):
                self.histories.append((step, running.scope))
        elif method == "erase":
            self.erased.add((step.named["tenant"], step.named["scope"]))
        elif method == "sweep" and step.answer.tombstones:
            self.deleted = True

    # -- beginnings ---------------------------------------------------------------------------------------------------

    def _scope(self, record: Record) -> tuple[ScopeName, Scope]:
        name = (record.identity.tenant, record.identity.scope)
        scope = self.scopes.get(name)
        if scope is None:
            scope = self.scopes[name] = Scope()
        return name, scope

    def _claimed(self, step: Step, record: Record) -> None:
        epoch = record.epoch or 0
        known = self.attempts.get((record.id, epoch))
        if known is not None:
            known.hosts.add(step.host)
            if known.record.owner != record.owner or known.record.attempt != record.attempt:
                self.reused.append((step, known))
            return
        if isinstance(step.asked, Claim) and record.fingerprint != step.asked.fingerprint:
            self.strangers.append((step, record))
        name, scope = self._scope(record)
        running = scope.running
        if running is not None:
            if step.asked.dead == running.record.id:
                self._died(running, step)
            elif running.doubt is not None:
                self._died(running, running.doubt, certain=False)
            else:
                self.doubled.append((step, running))
        attempt = Attempt(record=record, epoch=epoch, scope=name, granted=step, hosts={step.host})
        self.attempts[record.id, epoch] = attempt
        self.admitted.setdefault(record.id, record)
        scope.attempts.append(attempt)
        scope.running = attempt
        scope.highest = max(scope.highest, epoch)
        scope.queued.discard(record.id)
        self._over(name, scope, step.time)

    def _enqueued(self, step: Step, record: Record) -> None:
        if record.id in self.admitted:
            return  # the same claim again
        if record.fingerprint != step.asked.fingerprint:
            self.strangers.append((step, record))
        self.admitted[record.id] = record
        name, scope = self._scope(record)
        dead = self._meant_dead(step)
        if dead is not None:
            dead.doubt = dead.doubt or step
        scope.queued.add(record.id)
        self._waits(name, scope, step.time)

    def _refused(self, step: Step) -> None:
        dead, answer = self._meant_dead(step), step.answer
        if dead is None:
            return
        if isinstance(answer, Full):
            dead.doubt = dead.doubt or step
        elif answer.record.id != dead.record.id or answer.record.status is not Status.RUNNING:
            self._died(dead, step)

    def _meant_dead(self, step: Step) -> Attempt | None:
        """The running attempt that this claim or start was allowed to end."""
        asked = step.asked
        if not isinstance(asked, Claim | Start) or asked.dead is None:
            return None
        record = self.admitted.get(asked.dead)
        scope = self._scope(record)[1] if record is not None else None
        running = scope.running if scope is not None else None
        return running if running is not None and running.record.id == asked.dead else None

    # -- writes and ends ----------------------------------------------------------------------------------------------

    def _written(self, step: Step, turn: str, epoch: int) -> Attempt | None:
        attempt = self.attempts.get((turn, epoch))
        record = attempt.record if attempt is not None else self.admitted.get(turn)
        if record is None:
            final = self._finals.get(turn)
            if final is None:
                return None
            record = final.record
        name, scope = self._scope(record)
        late = attempt is not None and attempt.ended is not None
        self.writes.append(Write(step, name, scope.highest, late))
        if attempt is not None:
            attempt.doubt = None
        return attempt

    def _ended(self, step: Step, record: Record) -> None:
        asked, attempt = step.asked, None
        match asked:
            case Finish():
                attempt = self._written(step, asked.id, asked.epoch)
            case Abandon():
                attempt = self.attempts.get((asked.id, asked.epoch))
            case Stop() if record.epoch is not None:
                attempt = self.attempts.get((record.id, record.epoch))
            case _:
                pass
        if isinstance(asked, Abandon) and attempt is not None:
            self._died(attempt, step)
            return
        self.endings.append(Ending(step, record.id, record.status, record.body, record.reason))
        name, scope = self._scope(record)
        running = scope.running
        if record.epoch is None and running is not None and running.record.id == record.id and running.doubt:
            # Stopped in the queue: so it was the step in doubt that had put it there again.
            self._died(running, running.doubt, certain=False)
        scope.queued.discard(record.id)
        if attempt is not None and attempt.ended is None:
            attempt.ended = step
            if scope.running is attempt:
                scope.running = None
        self._waits(name, scope, step.time)

    def _died(self, attempt: Attempt, step: Step, *, certain: bool = True) -> None:
        scope, record = self.scopes[attempt.scope], attempt.record
        if attempt.ended is None:
            attempt.ended, attempt.foreign, attempt.certain, attempt.doubt = step, True, certain, None
        if scope.running is attempt:
            scope.running = None
        again = record.recovery == "rerun" and record.attempt < ATTEMPTS
        answer = step.answer
        if isinstance(step.asked, Abandon):
            again = isinstance(answer, Requeued)
        if again:
            scope.queued.add(record.id)
        elif isinstance(step.asked, Abandon):
            ended = answer.record
            self.endings.append(Ending(step, record.id, ended.status, ended.body, ended.reason))
        else:
            self.endings.append(Ending(step, record.id, Status.ABANDONED, b"", None))
        self._waits(attempt.scope, scope, step.time)

    def _waits(self, name: ScopeName, scope: Scope, now: float) -> None:
        if scope.running is not None or not scope.queued:
            self._over(name, scope, now)
        elif scope.idle_since is None:
            scope.idle_since = now

    def _over(self, name: ScopeName, scope: Scope, now: float) -> None:
        if scope.idle_since is not None:
            self.waits.append(Wait(name, scope.idle_since, now))
            scope.idle_since = None

    def _close(self) -> None:
        for name, scope in self.scopes.items():
            running = scope.running
            if running is not None and running.doubt is not None:
                final = self._finals.get(running.record.id)
                if final is not None and final.record.status is Status.ABANDONED:
                    self._died(running, running.doubt, certain=False)
            self._over(name, scope, self.last_time)


def named(value: Any) -> str:
    """A scope's or an identity's parts, for a sentence."""
    return "/".join(value)
