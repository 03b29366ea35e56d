"""The stream of a conversation: the events of all its turns in one, resumed by the pair epoch-number."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Final

from starlette.responses import Response

from oneturn.http.cursor import invalid_cursor
from oneturn.http.stream import EventStream
from oneturn.runtime.engine import Engine
from oneturn.runtime.reader import ConversationEvent, ConversationReader

_NEWEST: Final = 100
"""So many of the newest turns are looked at to tell a cursor from the future."""


class ConversationStream(EventStream[ConversationReader, ConversationEvent]):
    """Events after the cursor. Without one the client does not resume but subscribes, and may wait for what comes."""

    def __init__(self, engine: Engine, *, tenant: str, scope: str, after: tuple[int, int] | None) -> None:
        super().__init__(engine)
        self._tenant = tenant
        self._scope = scope
        self._after = after

    def open(self) -> AbstractAsyncContextManager[ConversationReader]:
        """See `EventStream.open`."""
        return self.engine.conversation(tenant=self._tenant, scope=self._scope, after=self._after)

    async def next(self, source: ConversationReader, wait: float) -> list[ConversationEvent]:
        """See `EventStream.next`."""
        return await source.next(wait)

    def framed(self, batch: list[ConversationEvent]) -> bytes:
        """See `EventStream.framed`."""
        return b"".join(_frame(event) for event in batch)

    def over(self, source: ConversationReader) -> bool:  # noqa: ARG002 - a conversation has no end
        """See `EventStream.over`."""
        return False

    async def instead(self, source: ConversationReader) -> Response | None:
        """204 when there is nothing to resume: an EventSource would reconnect for ever."""
        if self._after is None:
            return None
        self.held = await source.next(0)
        return Response(status_code=204) if not self.held and source.idle else None


async def refuse_future(engine: Engine, *, tenant: str, scope: str, after: tuple[int, int]) -> None:
    """`Problem` if the conversation has nothing at the cursor yet: a client that waits there would wait in vain."""
    epoch, seq = after
    records = await engine.turns(tenant=tenant, scope=scope, limit=_NEWEST)
    last = next((record.last_seq for record in records if record.epoch == epoch), None)
    if last is None:
        # An older turn than those, or one that retention removed; but no epoch is ever above the scope's own.
        newest = await engine.process.records.scope_epoch(tenant=tenant, scope=scope)
        known = 0 < epoch <= newest or after == (0, 0)
    else:
        known = seq <= last
    if not known:
        raise invalid_cursor(f"the conversation has no event {epoch}-{seq} yet")


def _frame(event: ConversationEvent) -> bytes:
    logged = event.event
    text = f'event: {logged.kind}\ndata: {{"turn":"{event.turn}","data":{logged.data}}}\n\n'
    # Without an epoch there is no place in the order to resume from, so no id.
    return text.encode() if event.epoch is None else f"id: {event.epoch}-{logged.seq}\n{text}".encode()
