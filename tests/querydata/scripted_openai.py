"""A real HTTP endpoint that speaks OpenAI's streaming chat completions as a script says, with the faults real ones have.

In a test: `async with ScriptedOpenAI(said("SELECT 1", "one")) as endpoint: …`.
For another process: `python tests/querydata/scripted_openai.py --port 0` prints its URL; then
`POST /_script` (a JSON list of replies; starts afresh), `POST /_release`, `GET /_calls`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from types import TracebackType
from typing import Any, Literal, NotRequired, Self, TypedDict

Fault = Literal[
    "hold",  # the first piece comes after a release
    "hold-midway",  # the second half comes after a release
    "cut",  # the connection breaks after half of the pieces
    "no-finish",  # all pieces, [DONE], but no finish_reason
    "length",  # half of the pieces, then finish_reason "length"
    "filtered",  # finish_reason "content_filter"
    "broken-chunk",  # a chunk that is not JSON
    "error-event",  # an error object inside the stream
    "hang",  # the request is read and nothing is ever answered
    "hang-midway",  # half of the pieces, and nothing more
    "401",
    "429",
    "500",
]


class Reply(TypedDict):
    """What one call is answered: a text, and what goes wrong with it."""

    text: str
    fault: NotRequired[Fault]


def said(sql: str, reading: str = "as asked", *, fault: Fault | None = None) -> Reply:
    """A reply in the agreed format."""
    return _reply(json.dumps({"sql": sql, "reading": reading}, ensure_ascii=False), fault)


def declined(message: str) -> Reply:
    return _reply(json.dumps({"decline": message}, ensure_ascii=False), None)


def faulty(fault: Fault) -> Reply:
    return said("SELECT 1", fault=fault)


def raw(text: str) -> Reply:
    return _reply(text, None)


def _reply(text: str, fault: Fault | None) -> Reply:
    return {"text": text} if fault is None else {"text": text, "fault": fault}


class _HungUp(Exception):
    """The client closed its connection before its reply was complete."""


class ScriptedOpenAI:
    """The endpoint. `calls` and `hang_ups` count; `requests` are the bodies of the calls; `headers` what came with them."""

    def __init__(self, *script: Reply) -> None:
        self._conditions = asyncio.Condition()
        self._connections: dict[asyncio.Task[Any], asyncio.StreamWriter] = {}
        self._server: asyncio.Server | None = None
        self._gate = asyncio.Event()
        self.port = 0
        self.script(*script)

    def script(self, *replies: Reply) -> None:
        """Start afresh with these replies, one per call; a call too many is answered with status 500."""
        self._script = list(replies)
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.calls = 0
        self.hang_ups = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self, port: int = 0) -> None:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for writer in self._connections.values():
            writer.transport.abort()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await self._server.wait_closed()

    def release(self) -> None:
        """Let the replies that are held go on."""
        self._gate.set()
        self._gate = asyncio.Event()

    async def until(self, condition: Callable[[Self], bool]) -> None:
        """Wait until calls or hang-ups are as wanted; a test's own timeout bounds it."""
        async with self._conditions:
            await self._conditions.wait_for(lambda: condition(self))

    async def _changed(self) -> None:
        async with self._conditions:
            self._conditions.notify_all()

    # -- HTTP -------------------------------------------------------------------------------------------------------

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections[task] = writer
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                await self._serve(reader, writer)
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
            del self._connections[task]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = head.strip().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        method, path, _ = first.split(" ")
        match method, path:
            case "POST", "/v1/chat/completions":
                async with self._noticing_hang_ups(reader) as done:
                    await self._complete(json.loads(body), headers, writer, done)
            case "POST", "/_script":
                self.script(*json.loads(body))
                _whole(writer, 200, {})
            case "POST", "/_release":
                self.release()
                _whole(writer, 200, {})
            case "GET", "/_calls":
                _whole(writer, 200, {"calls": self.calls, "hang_ups": self.hang_ups, "requests": self.requests})
            case _:
                _whole(writer, 404, {"error": {"message": "no such path"}})
        await writer.drain()

    @asynccontextmanager
    async def _noticing_hang_ups(self, reader: asyncio.StreamReader) -> AsyncIterator[asyncio.Event]:
        done = asyncio.Event()

        async def watch() -> None:
            if not await reader.read(1) and not done.is_set():
                self.hang_ups += 1
                await self._changed()
                raise _HungUp

        try:
            async with asyncio.TaskGroup() as group:
                watcher = group.create_task(watch())
                yield done
                watcher.cancel()
        except* _HungUp:
            pass

    async def _complete(
        self, request: dict[str, Any], headers: dict[str, str], writer: asyncio.StreamWriter, done: asyncio.Event
    ) -> None:
        gate = self._gate
        self.calls += 1
        self.requests.append(request)
        self.headers.append(headers)
        reply = self._script.pop(0) if self._script else faulty("500")
        await self._changed()
        fault = reply.get("fault")
        if fault in {"401", "429", "500"}:
            done.set()
            # As real endpoints do, the message repeats what should not be shown to anybody.
            _whole(
                writer, int(fault), {"error": {"message": f"refused for {headers.get('authorization')}", "type": "x"}}
            )
            return
        if fault == "hang":
            await asyncio.Event().wait()
        if fault == "hold":
            await gate.wait()
        await self._stream(reply["text"], fault, writer, gate=gate, done=done)

    async def _stream(
        self, text: str, fault: str | None, writer: asyncio.StreamWriter, *, gate: asyncio.Event, done: asyncio.Event
    ) -> None:
        _head(writer, 200, "text/event-stream", "Transfer-Encoding: chunked")
        pieces = [text[start : start + 8] for start in range(0, len(text), 8)]
        half = len(pieces) // 2
        _event(writer, _chunk({"role": "assistant", "content": ""}))
        for index, piece in enumerate(pieces):
            if index == half:
                await writer.drain()
                match fault:
                    case "cut":
                        done.set()
                        return
                    case "hang-midway":
                        await asyncio.Event().wait()
                    case "hold-midway":
                        await gate.wait()
                    case "broken-chunk":
                        _event(writer, '{"id": "chatcmpl-1", "choi')
                    case "error-event":
                        _event(writer, json.dumps({"error": {"message": "the engine gave up", "type": "server_error"}}))
                    case "length":
                        break
            _event(writer, _chunk({"content": piece}))
        if fault != "no-finish":
            _event(
                writer, _chunk({}, finish={"length": "length", "filtered": "content_filter"}.get(fault or "", "stop"))
            )
        done.set()
        _event(writer, "[DONE]")
        writer.write(b"0\r\n\r\n")


def _chunk(delta: dict[str, str], *, finish: str | None = None) -> str:
    return json.dumps(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": 1_700_000_000,
            "model": "scripted",
            "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}],
        },
        ensure_ascii=False,
    )


def _event(writer: asyncio.StreamWriter, data: str) -> None:
    line = f"data: {data}\n\n".encode()
    writer.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")


def _whole(writer: asyncio.StreamWriter, status: int, value: Any) -> None:
    body = json.dumps(value, ensure_ascii=False).encode()
    _head(writer, status, "application/json", f"Content-Length: {len(body)}")
    writer.write(body)


def _head(writer: asyncio.StreamWriter, status: int, kind: str, length: str) -> None:
    writer.write(
        f"HTTP/1.1 {status} Scripted\r\nContent-Type: {kind}\r\n{length}\r\nConnection: close\r\n\r\n".encode()
    )


async def _main(port: int) -> None:
    endpoint = ScriptedOpenAI()
    await endpoint.start(port)
    sys.stdout.write(f"{endpoint.url}\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A scripted OpenAI-compatible endpoint on loopback.")
    parser.add_argument("--port", type=int, default=0)
    with suppress(KeyboardInterrupt):
        asyncio.run(_main(parser.parse_args().port))
