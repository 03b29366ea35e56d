"""The event stream: a response that watches, keeps the line alive, says goodbye on a drain, and leaves nothing behind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, aclosing
from typing import Final, Generic, TypeVar

import anyio
from starlette.background import BackgroundTask
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from oneturn.core.errors import BackendUnavailable, OneturnError
from oneturn.http.problem import NO_STORE, problem_of
from oneturn.runtime.engine import Engine

HEARTBEAT: Final = 12.0
"""Seconds of silence after which a comment is sent. The promise is 15: a proxy's and a loop's lateness are ours to bear."""

_HEARTBEAT_FRAME: Final = b": still here\n\n"

B = TypeVar("B")


S = TypeVar("S")


class _Left(Exception):
    """The client has left."""


class EventStream(Response, ABC, Generic[S, B]):
    """A server-sent-event response. It opens its reader when it is sent and closes it when the client leaves.

    Nothing is subscribed before the server calls it, so a response that is never sent leaks nothing; and what it
    watches does not learn that it left.
    """

    media_type = "text/event-stream"

    def __init__(self, engine: Engine, *, headers: Mapping[str, str] | None = None) -> None:
        # Not Response.__init__: that would render an empty body and declare its length.
        self.engine = engine
        self.status_code = 200
        self.background: BackgroundTask | None = None
        self.init_headers({**NO_STORE, "X-Accel-Buffering": "no", **(headers or {})})
        self.held: list[B] = []
        """Read before the status was known; sent first."""

    # -- what one kind of stream decides --------------------------------------------------------------------------

    @abstractmethod
    def open(self) -> AbstractAsyncContextManager[S]:
        """Subscribe; closed when the response ends, however it ends."""

    @abstractmethod
    async def next(self, source: S, wait: float) -> list[B]:
        """What has gathered."""

    @abstractmethod
    def framed(self, batch: list[B]) -> bytes:
        """The frames of a batch, as one piece."""

    @abstractmethod
    def over(self, source: S) -> bool:
        """Whether nothing can follow."""

    async def instead(self, source: S) -> Response | None:  # noqa: ARG002 - a hook
        """Another response, decided before the first byte is sent; None: stream."""
        return None

    async def beside(self) -> bytes:
        """Unlogged frames that are due now."""
        return b""

    def patience(self, wait: float) -> float:
        """How long to wait for events at the most, if less than `wait`."""
        return wait

    # -- the response -----------------------------------------------------------------------------------------------

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Stream until the end, a drain, or until the client has left."""
        failure: Exception | None = None
        async with anyio.create_task_group() as group:

            async def until_gone() -> None:
                # A silent stream writes nothing that could fail: only the server's own word tells that nobody reads.
                while (await receive())["type"] != "http.disconnect":
                    pass
                group.cancel_scope.cancel()

            group.start_soon(until_gone)

            async def told(message: Message) -> None:
                try:
                    await send(message)
                except OSError as error:  # the same word, from a server of ASGI 2.4 and later
                    raise _Left from error

            try:
                await self._serve(scope, receive, told)
            except _Left:
                pass
            except Exception as error:  # noqa: BLE001 - raised below, outside of the group that would wrap it
                failure = error
            group.cancel_scope.cancel()
        if failure is not None:
            raise failure
        if self.background is not None:
            await self.background()

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False
        try:
            async with self.open() as source:
                if (other := await self.instead(source)) is not None:
                    await other(scope, receive, send)
                    return
                begun = True
                await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
                async with aclosing(self._chunks(source)) as chunks:
                    async for chunk in chunks:
                        await send({"type": "http.response.body", "body": chunk, "more_body": True})
        except OneturnError as error:
            if not begun:
                if (problem := problem_of(error)) is None:
                    raise
                await problem.response()(scope, receive, send)
                return
            if not isinstance(error, BackendUnavailable):
                raise
            # The status is sent: a clean end makes the client come back with its last event id, here or elsewhere.
            await send({"type": "http.response.body", "body": self._reconnect(), "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _chunks(self, source: S) -> AsyncGenerator[bytes, None]:
        clock = self.engine.process.clock
        yield b"retry: %d\n\n" % self._retry()
        spoken = clock.monotonic()
        batch, self.held = self.held, []
        while True:
            chunk = self.framed(batch) + await self.beside()
            if chunk:
                yield chunk
                spoken = clock.monotonic()
            if self.over(source):
                return
            if not self.engine.accepting:
                yield self._reconnect()
                return
            left = spoken + HEARTBEAT - clock.monotonic()
            if left <= 0:
                yield _HEARTBEAT_FRAME
                spoken, left = clock.monotonic(), HEARTBEAT
            batch = await self.next(source, self.patience(left))

    def _reconnect(self) -> bytes:
        return b"retry: %d\nevent: reconnect\ndata: {}\n\n" % self._retry()

    def _retry(self) -> int:
        # Milliseconds, spread: the clients of a process that went away must not come back in one instant.
        return 1000 + int(2000 * self.engine.process.ids.jitter())
