"""What stops a caller: every exception that the library raises, under one base, without any HTTP in it."""

from __future__ import annotations

from typing import Literal

from oneturn.core.status import StopReason

RefusedReason = Literal["key-reused", "busy", "limit", "draining", "too-large", "not-regenerable"]


class OneturnError(Exception):
    """Base of all that `oneturn` raises on purpose."""


class Refused(OneturnError):
    """Nothing was started and the key is not used up (except for "key-reused", where it was used before)."""

    def __init__(
        self, message: str, *, reason: RefusedReason, retry_after: float | None = None, turn: str | None = None
    ) -> None:
        super().__init__(message)
        self.reason: RefusedReason = reason
        self.retry_after = retry_after
        """Seconds after which asking again makes sense; None: never with this key and content."""
        self.turn = turn
        """The turn that stands in the way, where there is one."""


class Stopped(OneturnError):
    """The execution may not go on, and why."""

    def __init__(self, reason: StopReason) -> None:
        super().__init__(f"stopped: {reason.value}")
        self.reason = reason


class TurnFailed(OneturnError):
    """Raise it in a handler: message and code are shown to the client."""

    def __init__(self, message: str, *, code: str = "failed") -> None:
        super().__init__(message)
        self.message = message
        self.code = code


class ResultUnavailable(OneturnError):
    """The execution ended without a result that can be told: abandoned, expired, or gone altogether (`why`)."""

    def __init__(self, message: str, *, why: Literal["abandoned", "expired", "gone"], turn: str) -> None:
        super().__init__(message)
        self.why = why
        self.turn = turn


class Contended(OneturnError):
    """The wait is over and somebody else still holds the key; the body was not entered."""

    def __init__(self, key: str, *, remaining: float) -> None:
        super().__init__(f"{key!r} is held by somebody else for up to {remaining:.3f} s more")
        self.key = key
        self.remaining = remaining


class BackendUnavailable(OneturnError):
    """The store did not answer: what was asked may or may not have happened (*unknown*, never *failed*)."""


class ConfigurationError(OneturnError):
    """A setting, a declaration or a combination that cannot work; the message says what to change."""
