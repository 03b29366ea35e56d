"""The view: a run's evidence, indexed once; rules only read it."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import get_args

from oneturn.core.errors import RefusedReason
from oneturn.core.record import Record
from oneturn.core.status import Status
from oneturn.testing.checker.ledger import Ledger, ScopeName
from oneturn.testing.evidence import Belief, Evidence, Final, Incident, Told

REFUSED = frozenset(get_args(RefusedReason))
"""Words after which nothing was run for the asker."""

SLACK = 2.0
"""Seconds that a bound made of settings leaves out: calls under way, and the work between two of them."""

HEALTHY_AFTER = 2.5
"""TTLs after which an incident of the lock service is forgotten: every key has lapsed or was renewed since."""

LOSSES = frozenset(("emptied", "rolled back", "evicted", "clock jump", "revoked"))
"""What makes a lock service forget what it has granted, or a server's clock tell another time."""

IdentityName = tuple[str, str, str, str]
"""Tenant, subject, scope, key."""


class Answers:
    """The messages of one conversation that were answered, by whom, in the order in which that happened.

    A regenerating turn replaces only the answer that it was asked to replace. So each message has one answer at any
    time, and which one it had under an epoch follows from the turns that succeeded below it.
    """

    def __init__(self, succeeded: list[Record]) -> None:
        accepted: list[tuple[int, str, str]] = []
        self.now: dict[str, str] = {}
        """Message → the turn that answers it at the end."""
        for record in sorted(succeeded, key=lambda record: record.epoch or 0):
            if self.now.get(record.message, "") in ("", record.replaces):
                self.now[record.message] = record.id
                accepted.append((record.epoch or 0, record.message, record.id))
        self._accepted = accepted

    def before(self, epoch: int) -> dict[str, str]:
        """Message → turn, as it was for whoever claimed `epoch`: oldest answer first."""
        answers: dict[str, str] = {}
        for _, message, turn in self._accepted[: bisect_left(self._accepted, (epoch, "", ""))]:
            answers.pop(message, None)  # a new answer has a new place
            answers[message] = turn
        return answers


class View:
    """See the module."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self.bounds = evidence.bounds
        self.finals: Mapping[str, Final] = evidence.finals
        self.ledger = Ledger(evidence.steps, evidence.finals)
        self.records: dict[str, Record] = dict(self.ledger.admitted)
        """Every execution that is known of, as it stood last."""
        self.records.update((turn, final.record) for turn, final in evidence.finals.items())
        self.erased: set[ScopeName] = set(self.ledger.erased)
        """Conversations of which something was forgotten: by `erase`, or by retention."""
        self.erased.update(scope_of(final.record) for final in evidence.finals.values() if final.record.expired)

    # -- what is known of records -------------------------------------------------------------------------------------

    @cached_property
    def answers(self) -> dict[ScopeName, Answers]:
        """Conversation → its answers, from the final records."""
        succeeded: dict[ScopeName, list[Record]] = defaultdict(list)
        for final in self.finals.values():
            if final.record.status is Status.SUCCEEDED:
                succeeded[scope_of(final.record)].append(final.record)
        return defaultdict(lambda: Answers([]), {name: Answers(records) for name, records in succeeded.items()})

    @cached_property
    def by_identity(self) -> dict[IdentityName, Record]:
        """The record of each name."""
        return {identity_of(record): record for record in self.records.values()}

    @cached_property
    def told(self) -> dict[IdentityName, list[Told]]:
        """What was told about each name, oldest first."""
        told: dict[IdentityName, list[Told]] = defaultdict(list)
        for one in sorted(self.evidence.told, key=lambda one: one.time):
            told[one.tenant, one.subject, one.scope, one.key].append(one)
        return told

    @cached_property
    def cared_for(self) -> set[tuple[str, int]]:
        """Attempts (turn, epoch) that their own process had heard of: it vouched for them, or wrote under their epoch."""
        known = {(write.step.asked.id, write.step.asked.epoch) for write in self.ledger.writes}
        for step in self.evidence.steps:
            if step.method == "touch":
                known.update((vouch.id, vouch.epoch) for vouch in step.asked)
        known.update((entry.turn, entry.epoch) for entry in self.evidence.entries)
        return known

    def forgotten(self, scope: ScopeName) -> bool:
        """Whether something that is missing there may be missing rightly."""
        return self.ledger.deleted or scope in self.erased

    # -- what is known of the weather ---------------------------------------------------------------------------------

    @cached_property
    def beliefs(self) -> dict[int, list[Belief]]:
        """Step → what was believed then."""
        beliefs: dict[int, list[Belief]] = defaultdict(list)
        for belief in self.evidence.beliefs:
            beliefs[belief.step].append(belief)
        return beliefs

    @cached_property
    def _losses(self) -> list[Incident]:
        return [
            incident
            for incident in self.evidence.incidents
            if incident.kind in LOSSES or (incident.kind == "restart" and incident.target == "leases")
        ]

    def healthy(self, time: float, *, at: str = "") -> bool:
        """Whether the lock service still knew at `time` whatever it had granted, and time was what it was (`at` one port)."""
        since = time - HEALTHY_AFTER * self.bounds.ttl
        return not any(loss.time <= time and loss.until >= since for loss in self._losses if at in ("", loss.target))

    def incidents(self, since: float, until: float) -> Iterator[Incident]:
        """What was done to the system between two times."""
        for incident in self.evidence.incidents:
            if incident.time <= until and incident.until >= since:
                yield incident


def scope_of(record: Record) -> ScopeName:
    """The conversation of a record."""
    return record.identity.tenant, record.identity.scope


def identity_of(record: Record) -> IdentityName:
    """The name of a record."""
    identity = record.identity
    return identity.tenant, identity.subject, identity.scope, identity.key
