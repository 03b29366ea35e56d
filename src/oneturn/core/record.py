"""The record of an execution: the one truth about it. Final states are final."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from oneturn.core.identity import Identity
from oneturn.core.status import Recovery, Status, StopReason


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One row of the record store, as it was when it was read."""

    id: str
    """The turn's public name, made by the server."""
    identity: Identity
    handler: str
    fingerprint: str
    payload: bytes | None
    """The message, as JSON; None once it was erased or was not to be kept."""
    claims: Mapping[str, str] = field(default_factory=dict)
    recovery: Recovery = "abandon"
    run_limit: float = 600.0
    """Seconds; kept here because another process may start it."""
    message: str = ""
    """The id of the record whose message this one answers: its own, or that of the turn which it regenerates."""
    replaces: str = ""
    """A regenerating record: the id of the record whose answer it may replace ("" if the message had none)."""
    sequence: int = 0
    """The message's place in its conversation, from 1."""
    status: Status
    reason: StopReason | None = None
    body: bytes = b""
    """Succeeded: the result as JSON. Failed: code and message. Stopped: the reason. Else empty."""
    owner: str = ""
    """The lease owner of the running attempt."""
    epoch: int | None = None
    """The scope's epoch that this attempt claimed; None while queued, and for what never started."""
    attempt: int = 0
    """How often the work was started: at most 1, or 3 with `recovery="rerun"`."""
    last_seq: int = 0
    """The number of its newest event."""
    alive_until: float = 0.0
    """On the store's own clock; compare it for equality only. `remaining` is what to reason with."""
    remaining: float = 0.0
    """`alive_until` minus the store's now when the record was read, in seconds; negative: nobody vouches for it."""
    created_at: float = 0.0
    started_at: float | None = None
    ended_at: float | None = None
    """Wall-clock seconds, for people."""
    expired: bool = False
    """Only a tombstone is left: the key is remembered, the content is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMessage:
    """A message of a conversation and, if it has one, its answer."""

    turn: str
    """The id of the record that brought the message."""
    sequence: int
    payload: bytes | None
    answered_by: str | None = None
    answer: bytes | None = None
