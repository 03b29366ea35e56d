"""One execution per question, for chat services on FastAPI. Start with `Gate`; design in docs/explanation."""

from oneturn.core.errors import (
    BackendUnavailable,
    ConfigurationError,
    OneturnError,
    Refused,
    ResultUnavailable,
    Stopped,
    TurnFailed,
)
from oneturn.core.event import Event
from oneturn.core.identity import Principal
from oneturn.core.status import OnBusy, StopReason
from oneturn.gate import Gate, Handle
from oneturn.runtime.lease import Lease
from oneturn.runtime.outcome import Outcome
from oneturn.runtime.settings import Settings
from oneturn.runtime.turn import Message, Turn, current_turn

__all__ = [
    "BackendUnavailable",
    "ConfigurationError",
    "Event",
    "Gate",
    "Handle",
    "Lease",
    "Message",
    "OnBusy",
    "OneturnError",
    "Outcome",
    "Principal",
    "Refused",
    "ResultUnavailable",
    "Settings",
    "StopReason",
    "Stopped",
    "Turn",
    "TurnFailed",
    "current_turn",
]
