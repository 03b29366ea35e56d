"""The emitter: takes events from any thread, packs text, and logs them in order, each exactly once."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import Any

from oneturn.core import event as kinds
from oneturn.core.clock import Clock
from oneturn.core.errors import BackendUnavailable, Stopped
from oneturn.core.event import encode
from oneturn.core.failpoint import failpoint
from oneturn.core.record import Record
from oneturn.core.status import StopReason
from oneturn.core.steps import Append, Appended, Emitted
from oneturn.core.store import RecordStore
from oneturn.runtime.waiting import Bell

logger = logging.getLogger(__name__)

MAX_KIND = 64
"""Characters of an event's kind."""


class Emitter:
    """The event log of one running execution, seen from its work.

    Numbers are fixed before a batch is sent: a batch whose reply was lost is sent again with the same numbers, and the store
    skips what it has. So neither a retry nor the final commit, which carries what is pending, can log an event twice.
    """

    def __init__(
        self,
        record: Record,
        *,
        records: RecordStore,
        clock: Clock,
        packing: float,
        max_event: int,
        announce: Callable[[], None],
        gone: Callable[[Record | None], None],
    ) -> None:
        self._record = record
        self._records = records
        self._clock = clock
        self._packing = packing
        self._max_event = max_event
        self._announce = announce
        self._gone = gone
        self._change = threading.Lock()
        self._buffer: list[Emitted] = []
        self._text: list[str] = []
        self._flight: tuple[Emitted, ...] = ()
        self._durable = record.last_seq
        self._closed: StopReason | None = None
        self._ended = False
        self._flushing = 0
        self._bell = Bell(clock)
        self._progress: list[Bell] = []

    # -- for the work, from any thread ----------------------------------------------------------------------------

    def text(self, delta: str) -> None:
        """Emit a piece of text; pieces are joined until the next store."""
        if not isinstance(delta, str):
            raise TypeError(f"turn.text takes a str, not {type(delta).__name__}")
        if delta:
            with self._change:
                self._refuse_if_closed()
                self._text.append(delta)
            self._bell.ring()

    def emit(self, kind: str, data: Any) -> None:
        """Emit an event; ValueError if its kind is reserved, or its data is not JSON or too large."""
        if not isinstance(kind, str) or kind in kinds.RESERVED or not kind.isidentifier() or len(kind) > MAX_KIND:
            raise ValueError(f"{kind!r} cannot be emitted: use 'step', 'data' or a name of your own")
        if kind == kinds.TEXT:
            if not isinstance(data, dict) or not isinstance(data.get("delta"), str):
                raise ValueError('the data of a "text" event is {"delta": "…"}')
            self.text(data["delta"])
            return
        if kind in (kinds.STEP, kinds.DATA) and not (isinstance(data, dict) and isinstance(data.get("name"), str)):
            raise ValueError(f"the data of a {kind!r} event is an object with a name, not {data!r}")
        line = encode(data)
        if len(line.encode()) > self._max_event:
            raise ValueError(
                f"an event may have {self._max_event} bytes, this {kind!r} has {len(line.encode())}: store the content and "
                "emit a reference to it"
            )
        with self._change:
            self._refuse_if_closed()
            self._pack_text()
            self._buffer.append(Emitted(kind=kind, data=line))
        self._bell.ring()

    async def flush(self) -> int:
        """Wait until everything emitted so far is durable; the number of the last event."""
        with self._change:
            self._pack_text()
            target = self._durable + len(self._flight) + len(self._buffer)
        bell = Bell(self._clock)
        self._progress.append(bell)
        self._flushing += 1
        self._bell.ring()
        self._tell()
        try:
            while self._durable < target:
                with self._change:
                    self._refuse_if_closed()
                await bell.wait(None)
        finally:
            self._flushing -= 1
            self._progress.remove(bell)
        return target

    # -- for the observer -----------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Log what is emitted until `close`. Ends on its own if the store says that the execution was ended."""
        try:
            await self._run()
        except Exception:
            # What is pending travels with the final commit; whoever waits for a flush is told.
            logger.exception("events could not be logged", extra={"turn": self._record.id})
        finally:
            self.close(None)

    async def _run(self) -> None:
        while not self._ended:
            await self._bell.wait(None)
            if await self._log():
                self._announce()
                # The first batch went at once; what follows is gathered for the packing interval, unless somebody waits.
                await self._pause(self._packing, unless=lambda: self._flushing > 0)

    def close(self, reason: StopReason | None) -> None:
        """Take no more events; `run` ends after the batch that is under way. `reason`: what late emitters are told."""
        with self._change:
            self._closed = self._closed or reason or StopReason.LEASE_LOST
            self._ended = True
        self._bell.ring()
        self._tell()

    def seal(self) -> None:
        """Take no more events for now: a transaction that holds the pending ones is about to be committed."""
        with self._change:
            self._closed = self._closed or StopReason.LEASE_LOST

    def unseal(self) -> None:
        """That transaction was not committed: go on."""
        with self._change:
            if not self._ended:
                self._closed = None

    def pending(self) -> tuple[int, tuple[Emitted, ...]]:
        """(number of the last durable event, what may not be durable yet), for the final commit."""
        with self._change:
            self._pack_text(to_the_end=True)
            return self._durable, (*self._flight, *self._buffer)

    def discard(self) -> None:
        """Forget what could not be stored."""
        with self._change:
            self._text.clear()
            self._buffer, self._flight = [], ()

    def drop_text(self) -> None:
        """Forget text that is not logged yet (`partial="drop"`)."""
        with self._change:
            self._text.clear()
            self._buffer = [event for event in self._buffer if event.kind != kinds.TEXT]

    async def _log(self) -> bool:
        with self._change:
            if not self._flight:
                self._pack_text()
                self._flight, self._buffer = tuple(self._buffer), []
            flight, after = self._flight, self._durable
        if not flight:
            return False
        step = Append(
            tenant=self._record.identity.tenant,
            id=self._record.id,
            epoch=self._record.epoch or 0,
            after=after,
            events=flight,
        )
        try:
            answer = await self._records.append(step)
        except BackendUnavailable:
            await self._pause(1.0)
            self._bell.ring_here()
            return False
        await failpoint("emitter.logged")
        if isinstance(answer, Appended):
            with self._change:
                self._durable, self._flight = after + len(flight), ()
            self._tell()
            return True
        self.close(answer.record.reason if answer.record else None)
        self._gone(answer.record)
        return False

    async def _pause(self, seconds: float, *, unless: Callable[[], bool] = lambda: False) -> None:
        if seconds > 0:
            bell = Bell(self._clock)
            self._progress.append(bell)
            try:
                end = self._clock.monotonic() + seconds
                while not self._ended and not unless() and (left := end - self._clock.monotonic()) > 0:
                    await bell.wait(left)
            finally:
                self._progress.remove(bell)

    def _tell(self) -> None:
        for bell in tuple(self._progress):
            bell.ring()

    def _pack_text(self, *, to_the_end: bool = False) -> None:
        text, self._text = "".join(self._text), []
        if text and not text.isascii():
            text = self._whole_characters(text, to_the_end=to_the_end)
        # A quarter of the bound in characters stays below it in bytes, whatever the script and the escapes.
        size = self._max_event // 8
        for start in range(0, len(text), size):
            self._buffer.append(Emitted(kind=kinds.TEXT, data=encode({"delta": text[start : start + size]})))

    def _whole_characters(self, text: str, *, to_the_end: bool) -> str:
        # A model's stream may split an emoji in two: halves are joined, a half at the end waits for the next piece, and what
        # stays half becomes a replacement character. A lone surrogate cannot be stored.
        if not to_the_end and "\ud800" <= text[-1] <= "\udbff":
            self._text.append(text[-1])
            text = text[:-1]
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")

    def _refuse_if_closed(self) -> None:
        if self._closed is not None:
            raise Stopped(self._closed)


async def ended(task: asyncio.Task[None]) -> None:
    """Await the end of an emitter's `run`, whatever it was."""
    await asyncio.gather(task, return_exceptions=True)
