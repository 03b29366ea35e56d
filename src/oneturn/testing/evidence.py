"""Evidence: what was observed of a run, whatever ran it; the one checker reads nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from oneturn.core.decision import Decision
from oneturn.core.event import Event, Logged
from oneturn.core.record import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The times that the processes under test were configured with, in seconds."""

    ttl: float
    renew_every: float
    margin: float
    check_every: float
    sweep_every: float
    run_limit: float
    hard_deadline: float = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step that a store applied, in the order in which it did. Doubled and late deliveries are steps of their own."""

    seq: int
    time: float
    host: str
    """The process that had asked; it may be dead by now."""
    port: Literal["records", "leases", "replay"]
    method: str
    asked: Any
    """The step's one positional argument (`Claim`, `Append`, `Grant`, a list of them, keys); None if there is none."""
    named: Mapping[str, Any]
    answer: Any
    """What the store answered, whether or not anybody heard it."""
    before: Mapping[str, str] = field(default_factory=dict)
    """Steps on leases: who held each key of theirs before (only keys that were held)."""
    after: Mapping[str, str] = field(default_factory=dict)
    """… and after."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Belief:
    """A running attempt that believed it may go on, at a moment at which that mattered (the `step` just applied)."""

    step: int
    time: float
    host: str
    turn: str
    epoch: int
    keys: Mapping[str, str]
    """Each of its keys → who holds it on the lock service ("" if nobody)."""
    owner: str
    vouched: float
    """The record's remaining time in the record store, if it runs there with this epoch; else −1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """The work was entered: by whom, under which right, and (if the handler said so) with which history."""

    turn: str
    epoch: int
    host: str
    time: float
    history: tuple[str, ...] | None = None
    """The turns of the messages that it was given, oldest first."""
    stopping: str = ""
    """Why it was to stop when it was entered ("" if it was not)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a client was told about one key."""

    tenant: str
    subject: str
    scope: str
    key: str
    sent: str
    """The content, in one canonical form: equal for a retry, different for a reuse of the key."""
    word: str
    """succeeded, failed, stopped, abandoned (as `ResultUnavailable`), expired, gone, or the reason of a `Refused`."""
    time: float
    turn: str = ""
    body: bytes = b""
    """Succeeded: the result as bytes; failed: the code; stopped: the reason."""
    expected: bytes | None = None
    """What a succeeded answer to `sent` must be, where the workload knows."""
    final: bool = False
    """Asked after everything had healed."""


@dataclass(slots=True, kw_only=True)
class Said:
    """What an attempt's work has streamed, as far as it was taken."""

    turn: str
    epoch: int
    texts: list[str] = field(default_factory=list)
    """Pieces of text, in order."""
    flushed: list[tuple[int, int]] = field(default_factory=list)
    """(number that a flush answered, how many steps the journal had then)."""


@dataclass(slots=True, kw_only=True)
class Read:
    """What one reader of one execution was given, over all its connections, in order."""

    turn: str
    host: str
    events: list[Event] = field(default_factory=list)
    after: int = 0
    """Where it began."""


@dataclass(slots=True, kw_only=True)
class ConversationRead:
    """What one reader of a conversation was given with an id: (turn, epoch, event), in order."""

    tenant: str
    scope: str
    events: list[tuple[str, int, Logged]] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fenced:
    """A row of an application's own table, committed under a turn's fence. In the order of their commits."""

    tenant: str
    scope: str
    turn: str
    epoch: int
    finishes: bool
    """Whether the same commit was to finish the turn (`turn.fence(session, result=…)`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """Something that was done to the system from outside."""

    kind: Literal[
        "kill",
        "pause",
        "block",
        "drain",
        "outage",
        "restart",
        "emptied",
        "rolled back",
        "evicted",
        "clock jump",
        "revoked",
        "network",
    ]
    """emptied, rolled back, evicted, clock jump: the lock service lost data, or time. network: calls were lost or late."""
    target: str
    """A host, or a port ("leases", "records")."""
    time: float
    until: float
    """The same as `time` for what takes no time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Final:
    """How an execution stood when everything had ended: its record, its log, and who answered its message."""

    record: Record
    events: tuple[Logged, ...]
    answered_by: str = ""
    """The execution that answers this record's message ("" if none)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """Something that was still there after it should have gone."""

    what: Literal["key", "task", "thread", "subscription", "execution"]
    name: str
    where: str
    """The host that left it, or the store that kept it."""
    when: Literal["idle", "drained", "closed"]
    """idle: seconds after the last execution had ended; drained: after a drain; closed: after the last process had ended."""


@dataclass(slots=True, kw_only=True)
class Evidence:
    """Everything that is known of a run. What was not observed is left empty, and its invariants are not judged."""

    bounds: Bounds
    steps: list[Step] = field(default_factory=list)
    beliefs: list[Belief] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    said: list[Said] = field(default_factory=list)
    told: list[Told] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)
    conversations: list[ConversationRead] = field(default_factory=list)
    fenced: list[Fenced] = field(default_factory=list)
    refused_by_fence: list[Fenced] = field(default_factory=list)
    """Commits that were refused: nothing of them may be there."""
    incidents: list[Incident] = field(default_factory=list)
    finals: dict[str, Final] = field(default_factory=dict)
    """Execution → how it ended."""
    left: list[Left] = field(default_factory=list)
    codes: frozenset[str] | None = None
    """The codes with which handlers fail of themselves, where the workload knows."""
    healed_at: float | None = None
    """From here on nothing was done to the system any more."""
    unserved: list[str] = field(default_factory=list)
    """Scopes that had no answer to a fresh question within their bound after healing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """An invariant that did not hold, and of what."""

    invariant: str
    what: str
