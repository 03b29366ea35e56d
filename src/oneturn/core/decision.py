"""The decision log: what was decided, by which process, under which epoch; one checker and the timeline read it."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from oneturn.core.clock import Clock

logger = logging.getLogger("oneturn.decisions")


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """One line of the log. It never holds a prompt, an answer or a secret."""

    seq: int
    time: float
    process: str
    event: str
    tenant: str = ""
    scope: str = ""
    key: str = ""
    execution: str = ""
    epoch: int | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)


class DecisionSink(Protocol):
    """Where decisions go. Called on the deciding thread: it must not block and must not raise."""

    def __call__(self, decision: Decision, /) -> None:
        """Take one decision."""
        ...


def log_decision(decision: Decision) -> None:
    """The default sink: one structured line to the logger `oneturn.decisions`, at DEBUG."""
    if logger.isEnabledFor(logging.DEBUG):
        logger.debug(decision.event, extra={"decision": asdict(decision)})


class DecisionLog:
    """Numbers the decisions of one process and hands them to the sink."""

    def __init__(self, *, process: str, clock: Clock, sink: DecisionSink = log_decision) -> None:
        self._process = process
        self._clock = clock
        self._sink = sink
        self._seq = itertools.count(1)

    def write(
        self,
        event: str,
        *,
        tenant: str = "",
        scope: str = "",
        key: str = "",
        execution: str = "",
        epoch: int | None = None,
        **detail: Any,
    ) -> None:
        """Record that `event` was decided now, here."""
        self._sink(
            Decision(
                seq=next(self._seq),
                time=self._clock.wall(),
                process=self._process,
                event=event,
                tenant=tenant,
                scope=scope,
                key=key,
                execution=execution,
                epoch=epoch,
                detail=detail,
            )
        )
