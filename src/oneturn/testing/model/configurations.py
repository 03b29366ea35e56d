"""The configurations that are explored, and in which of them each switch is refuted by which invariants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from oneturn.testing.model.state import Budget, Configuration
from oneturn.testing.model.switches import Switch

ADMISSION = Configuration(
    name="admission", budget=Budget(asks=(2,), cancels=1, losses=1), ticks=2, slow=True, reject=True
)
CRASHES = Configuration(name="crashes", budget=Budget(asks=(2,), crashes=1, lates=1), ticks=3, sweeper=True)
TAKEOVER = Configuration(name="takeover", budget=Budget(asks=(2, 1)), ticks=3)
RENEWAL = Configuration(
    name="renewal", budget=Budget(asks=(1,), emptied=1), workers=1, ticks=4, beats=2, slow=True, sweeper=True
)
EMPTIED = Configuration(name="emptied", budget=Budget(asks=(1, 1), emptied=1), ticks=2, sweeper=True)
EVICTION = Configuration(
    name="eviction", budget=Budget(asks=(1,), emptied=1, evicted=1), workers=1, ticks=4, beats=3, sweeper=True
)
STOPS = Configuration(name="stops", budget=Budget(asks=(1, 1), stops=1), ticks=1, events=2, writes=True)
QUEUE = Configuration(name="queue", budget=Budget(asks=(1, 1, 1)), ticks=1)
UNKNOWN = Configuration(name="unknown", budget=Budget(asks=(2,), losses=2, lates=1), ticks=3)
RERUN = Configuration(name="rerun", budget=Budget(asks=(1, 1), crashes=1), ticks=2, sweeper=True, rerun=(True, False))
RERUNS = Configuration(name="reruns", budget=Budget(asks=(1,), crashes=3), ticks=4, sweeper=True, rerun=(True,))

CONFIGURATIONS: Final = (ADMISSION, CRASHES, TAKEOVER, RENEWAL, EMPTIED, EVICTION, STOPS, QUEUE, UNKNOWN, RERUN, RERUNS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """A switch, where it is explored, and the invariants of which one has to be broken."""

    switch: Switch
    bounds: Configuration
    breaks: tuple[str, ...]


def _planted(switch: Switch, bounds: Configuration, *breaks: str) -> Planted:
    return Planted(switch=switch, bounds=bounds, breaks=breaks)


PLANTED: Final = (
    _planted(Switch.LOCK_SERVICE_FENCE, EMPTIED, "I1"),
    _planted(Switch.LATE_EPOCH, TAKEOVER, "I1", "I3", "I6", "I7"),
    _planted(Switch.DEADLINE_FROM_REPLY, ADMISSION, "I10"),
    _planted(Switch.LOST_REVIVED, RENEWAL, "I3", "I10"),
    _planted(Switch.CONTEXT_BEFORE_LOCK, TAKEOVER, "I7"),
    _planted(Switch.STOP_KEEPS_EPOCH, STOPS, "I3", "I6"),
    _planted(Switch.ATTACH_WITHOUT_RECORD, CRASHES, "I3"),
    _planted(Switch.RELEASE_ANYBODY, TAKEOVER, "I10"),
    _planted(Switch.DEL_OVERTAKES_SET, ADMISSION, "I14"),
    _planted(Switch.NEW_OWNER, ADMISSION, "I14"),
    _planted(Switch.CHECK_THEN_COMMIT, STOPS, "I3", "I6"),
    _planted(Switch.CLAIM_UNSEEN, TAKEOVER, "I2", "I3"),
    _planted(Switch.UNKNOWN_IS_FAILURE, UNKNOWN, "I11"),
    _planted(Switch.TERMINAL_TWICE, UNKNOWN, "I3"),
    _planted(Switch.EVENT_AFTER_END, STOPS, "I12"),
    _planted(Switch.QUEUE_SKIPPED, QUEUE, "I15"),
    _planted(Switch.STALE_WRITER, STOPS, "I6"),
    _planted(Switch.PARTIAL_RENEWAL, EVICTION, "I10"),
    _planted(Switch.VOUCHERS_IGNORED, EVICTION, "I3"),
    _planted(Switch.KEYS_IGNORED, RENEWAL, "I3"),
    _planted(Switch.RERUN_UNDECLARED, RERUN, "I2"),
    _planted(Switch.REGRANT_KEPT, RENEWAL, "I14"),
    _planted(Switch.LATE_ENTRY, RENEWAL, "I2"),
)
