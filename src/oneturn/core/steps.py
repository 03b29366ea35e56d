"""What is asked of the record store, and what it can answer: one value per step, one per outcome."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from oneturn.core.identity import Identity
from oneturn.core.record import Record, StoredMessage
from oneturn.core.status import Recovery, Status, StopReason


@dataclass(frozen=True, slots=True, kw_only=True)
class Emitted:
    """An event on its way to the log: its kind and one line of JSON."""

    kind: str
    data: str


# -- asked ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """Admit a message: start it, queue it, or say what stands in the way."""

    id: str
    identity: Identity
    handler: str
    fingerprint: str
    payload: bytes
    owner: str
    """The lease owner that asks. The same owner asking again gets the same answer."""
    ttl: float
    """Seconds for which the started record counts as alive without being touched."""
    claims: Mapping[str, str] = field(default_factory=dict)
    recovery: Recovery = "abandon"
    run_limit: float = 600.0
    on_busy: Literal["reject", "enqueue"] = "enqueue"
    queue_limit: int = 8
    dead: str | None = None
    """A running record whose request key was seen free: it may be ended here if its time has passed too."""
    alive: str | None = None
    """A running record whose request key was seen held: it counts as running though its time has passed."""
    regenerate: str | None = None
    """A turn whose message is asked again instead of a new one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Turn a queued record into a running one, whoever queued it."""

    tenant: str
    id: str
    owner: str
    ttl: float
    dead: str | None = None
    alive: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Append:
    """Log events of a running execution. `after` is the number of the last event known to be logged."""

    tenant: str
    id: str
    epoch: int
    after: int
    events: tuple[Emitted, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """End a running execution from within: pending events, final record, terminal event and answer, or nothing."""

    tenant: str
    id: str
    epoch: int
    status: Status
    body: bytes
    reason: StopReason | None = None
    after: int
    events: tuple[Emitted, ...] = ()
    keep_payload: bool = True
    """False: the message's text is dropped once it is answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """End an execution from outside, queued or running; a running one loses its epoch in the same commit."""

    tenant: str
    id: str
    reason: StopReason


@dataclass(frozen=True, slots=True, kw_only=True)
class Abandon:
    """Declare a running execution's executor dead, if nothing vouched for it since `alive_until` was read."""

    tenant: str
    id: str
    epoch: int
    alive_until: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Vouch:
    """The process says that this running execution is alive for `ttl` seconds more."""

    tenant: str
    id: str
    epoch: int
    ttl: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How long what has ended is kept, in seconds after its end."""

    results: float
    tombstones: float
    events: float


# -- answered -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """The record runs under a fresh epoch. `unanswered` ends with the message to answer."""

    record: Record
    unanswered: tuple[StoredMessage, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Enqueued:
    """The record is queued; `position` counts from 1 among the queued ones of its conversation."""

    record: Record
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Existing:
    """There is a record of this identity already, whatever its state. Nothing was written."""

    record: Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Busy:
    """Another record of the conversation runs or waits before this one. Nothing was written."""

    record: Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Lapsed:
    """A running record's time has passed; see whether its request key is held, then ask again with `dead`."""

    record: Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Full:
    """The conversation's queue has no room. Nothing was written."""

    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NotRegenerable:
    """The turn named by `regenerate` is not the newest answered message, nor an unanswered one. Nothing was written."""

    turn: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone:
    """The record is not (or no longer) in the state that the step needs; None: there is no such record."""

    record: Record | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Appended:
    """Everything is logged up to `last_seq`."""

    last_seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The record is final now. `here`: by this very step, rather than by an earlier try of the same step."""

    record: Record
    here: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Requeued:
    """The executor is gone and the handler declared `rerun`: the record waits to be started again."""

    record: Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """What a sweep finds: queued records that may be startable, oldest first, and running ones whose time has passed."""

    startable: tuple[Record, ...]
    lapsed: tuple[Record, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """What retention removed."""

    events: int
    results: int
    tombstones: int
