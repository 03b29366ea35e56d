"""The lease: one object per execution, shared by reference with threads; only the keeper changes what it publishes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

from oneturn.core.clock import Clock
from oneturn.core.errors import Stopped
from oneturn.core.lease import Grant
from oneturn.core.status import StopReason


class LeaseState(StrEnum):
    """Held → suspect → lost / released. LOST and RELEASED are absorbing."""

    HELD = "held"
    SUSPECT = "suspect"
    LOST = "lost"
    RELEASED = "released"


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """What everybody reads: replaced as a whole, never changed in place."""

    state: LeaseState
    deadline: float
    """Local monotonic instant after which the holder acts as if the lease were gone."""
    stop: StopReason | None = None


class Lease:
    """The right to execute. `check()` asks whether it still stands: no I/O, no waiting, from any thread."""

    def __init__(self, grant: Grant, *, deadline: float, clock: Clock, limit_at: float | None = None) -> None:
        self.grant = grant
        self.lost = asyncio.Event()
        """Set, on the loop that made the lease, once it is lost."""
        self._loop = asyncio.get_running_loop()
        self._clock = clock
        self._limit_at = limit_at
        self._change = threading.Lock()
        self._published = Published(state=LeaseState.HELD, deadline=deadline)
        self._on_stop: list[Callable[[StopReason], None]] = []

    @property
    def fencing_token(self) -> int:
        """The lock service's number for this acquisition. Durable writes are fenced by the *epoch* instead."""
        return self.grant.fencing_token

    @property
    def deadline(self) -> float:
        """Monotonic instant after which `check()` raises unless a renewal moved it."""
        return self._published.deadline

    @property
    def state(self) -> LeaseState:
        """As published last."""
        return self._published.state

    @property
    def stopping(self) -> StopReason | None:
        """Why work must stop, or None while it may go on."""
        published, now = self._published, self._clock.monotonic()
        if published.stop is not None:
            return published.stop
        if self._limit_at is not None and now >= self._limit_at:
            return StopReason.RUN_LIMIT
        if now >= published.deadline or published.state in (LeaseState.LOST, LeaseState.RELEASED):
            return StopReason.LEASE_LOST
        return None

    def check(self) -> None:
        """Raise `Stopped(reason)` if the work may not go on."""
        if (reason := self.stopping) is not None:
            raise Stopped(reason)

    # -- for the runtime -------------------------------------------------------------------------------------------

    @property
    def limit_at(self) -> float | None:
        """The monotonic instant of the run limit: no renewal is asked past it."""
        return self._limit_at

    def extend(self, deadline: float) -> None:
        """A voucher answered in time: held until `deadline`. A late answer revives nothing."""
        with self._change:
            now, published = self._clock.monotonic(), self._published
            if published.state in (LeaseState.LOST, LeaseState.RELEASED):
                return
            if now < published.deadline:
                later = max(deadline, published.deadline)
                self._published = replace(published, state=LeaseState.HELD, deadline=later)
                return
        self.lose(StopReason.LEASE_LOST)

    def suspect(self) -> None:
        """A renewal was not answered; the deadline stands."""
        with self._change:
            if self._published.state is LeaseState.HELD:
                self._published = replace(self._published, state=LeaseState.SUSPECT)

    def regrant(self, grant: Grant) -> None:
        """The same owner took its absent keys again: a new generation of the same lease."""
        self.grant = grant

    def lose(self, reason: StopReason) -> None:
        """It is gone for good, and this is why."""
        with self._change:
            if self._published.state in (LeaseState.LOST, LeaseState.RELEASED):
                return
            self._published = replace(self._published, state=LeaseState.LOST)
        self.stop(reason)
        self._call(self.lost.set)

    def released(self) -> None:
        """Given back: nothing is renewed any more."""
        with self._change:
            if self._published.state is not LeaseState.LOST:
                self._published = replace(self._published, state=LeaseState.RELEASED)

    def stop(self, reason: StopReason) -> bool:
        """Tell the work to stop; the first reason wins. Answers whether this one was the first."""
        with self._change:
            if self._published.stop is not None:
                return False
            self._published = replace(self._published, stop=reason)
            hooks = tuple(self._on_stop)
        for hook in hooks:
            self._call(lambda hook=hook: hook(reason))  # type: ignore[misc]
        return True

    def on_stop(self, hook: Callable[[StopReason], None]) -> None:
        """Call `hook(reason)` on the lease's loop when it is told to stop; at once if it was."""
        with self._change:
            self._on_stop.append(hook)
            reason = self._published.stop
        if reason is not None:
            self._call(lambda: hook(reason))

    def _call(self, function: Callable[[], object]) -> None:
        try:
            self._loop.call_soon_threadsafe(function)
        except RuntimeError:
            return  # the loop has ended, and with it everybody who could be told
