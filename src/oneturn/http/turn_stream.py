"""The stream of one turn: its logged events by number, and beside them its place in the queue."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Final

from starlette.responses import Response

from oneturn.core.event import QUEUED, RESTARTED, SNAPSHOT, STARTED, Logged, fold
from oneturn.core.record import Record
from oneturn.core.status import Status
from oneturn.http.answer import REPLAYED, failed
from oneturn.http.problem import TURN_ID
from oneturn.http.stream import EventStream
from oneturn.runtime.engine import Engine
from oneturn.runtime.reader import Reader

POSITION_EVERY: Final = 2.0
"""Seconds between two looks at the queue while the turn waits in it: places are computed, not announced."""

UNHEARD: Final = 0.25
"""Seconds for which a status is held back in case the work fails before it says anything."""

_SILENT: Final = frozenset({QUEUED, STARTED, RESTARTED})


class TurnStream(EventStream[Reader, Logged]):
    """Events after `after` until the terminal one.

    `asked`: the stream is the answer to a question. Work that fails before its first word is then answered as the
    problem that it is, with its status, instead of a stream that begins well.
    """

    def __init__(
        self, engine: Engine, record: Record, *, after: int = 0, asked: bool = False, replayed: bool = False
    ) -> None:
        headers: Mapping[str, str] = {TURN_ID: record.id, **({REPLAYED: "true"} if replayed else {})}
        super().__init__(engine, headers=headers)
        self._record = record
        self._after = after
        self._asked = asked
        self._replayed = replayed
        self._queued = record.status is Status.QUEUED
        self._place = 0

    def open(self) -> AbstractAsyncContextManager[Reader]:
        """See `EventStream.open`."""
        return self.engine.reader(self._record, after=self._after)

    async def next(self, source: Reader, wait: float) -> list[Logged]:
        """See `EventStream.next`."""
        return await source.next(wait)

    def framed(self, batch: list[Logged]) -> bytes:
        """See `EventStream.framed`. The frames were encoded when they were logged; only the numbers are added."""
        if self._queued and any(event.kind != QUEUED for event in batch):
            self._queued = False
        # A comment, not an event: the events of a replay are those of the original.
        mark, self._replayed = (b": replayed\n\n" if self._replayed else b""), False
        return mark + b"".join(b"id: %d\n%b" % (event.seq, event.tail) for event in batch)

    def over(self, source: Reader) -> bool:
        """See `EventStream.over`."""
        return source.done

    async def beside(self) -> bytes:
        """The place in the queue, when it has changed. It is not logged, so it carries no id."""
        if not self._queued:
            return b""
        place = await self.engine.position(self._record)
        if place in (0, self._place):
            return b""
        self._place = place
        return b'event: position\ndata: {"position":%d}\n\n' % place

    def patience(self, wait: float) -> float:
        """See `EventStream.patience`."""
        return min(wait, POSITION_EVERY) if self._queued else wait

    async def instead(self, source: Reader) -> Response | None:
        """The problem of work that failed before its first word."""
        if not self._asked or self._queued:
            return None
        clock = self.engine.process.clock
        until = clock.monotonic() + UNHEARD
        while not source.done and self.engine.accepting and (left := until - clock.monotonic()) > 0:
            batch = await source.next(left)
            self.held += batch
            if not all(_silent(event) for event in batch):
                break
        if not self.held or self.held[-1].kind != Status.FAILED.value:
            return None
        if not all(_silent(event) for event in self.held[:-1]):
            return None
        problem = failed(self._record.id, self.held[-1].data.encode()).response()
        if self._replayed:
            problem.headers[REPLAYED] = "true"
        return problem


def _silent(event: Logged) -> bool:
    # Long after the end a snapshot stands for all that was said, which may have been nothing.
    return event.kind in _SILENT or (event.kind == SNAPSHOT and json.loads(event.data) == fold(()))
