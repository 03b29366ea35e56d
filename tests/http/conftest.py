from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import httpx
import pytest
import uvicorn
from fastapi import FastAPI, Header, HTTPException
from pydantic import BaseModel

from oneturn import Gate, Principal, Settings, Turn, TurnFailed
from oneturn.http import turn_router

Open = Callable[..., AbstractAsyncContextManager["Service"]]


class Ask(BaseModel):
    text: str
    value: Any = None


class Frame(NamedTuple):
    """One server-sent event, or a comment."""

    id: str | None
    event: str | None
    data: Any
    comment: str | None = None


class Service:
    """An application with one handler that does what the text says, and what a test wants to see of it."""

    def __init__(self, gate: Gate) -> None:
        self.gate = gate
        self.app = FastAPI()
        self.calls: list[str] = []
        self.entered = asyncio.Event()
        self.release = asyncio.Event()
        self.stopped: list[str] = []
        chat = gate.turn("chat", client_may=("reject",))(self.chat)
        self.app.include_router(turn_router(gate, chat, principal=me, effect_headers=("X-Model",)), prefix="/api")
        self.client = httpx.AsyncClient()

    async def chat(self, turn: Turn[Ask]) -> Any:
        ask = turn.payload
        self.calls.append(ask.text)
        match ask.text:
            case "hold":
                turn.text("…")
                await turn.flush()
                await self.held(turn)
            case "silent":
                await self.held(turn)
            case "fail":
                raise TurnFailed("The model gave no answer.", code="empty-answer")
            case "boom":
                raise RuntimeError("a secret")
            case "fail late":
                for delta in "abc":
                    turn.text(delta)
                    await turn.flush()
                raise TurnFailed("Lost the thread.", code="late")
            case "talk":
                turn.text("a")
                turn.emit("step", {"name": "sql", "state": "done"})
                turn.text("b")
            case _:
                pass
        return ask.value if "value" in ask.model_fields_set else f"re: {ask.text}"

    async def held(self, turn: Turn[Ask]) -> None:
        self.entered.set()
        try:
            await self.release.wait()
        except asyncio.CancelledError:
            self.stopped.append(turn.id)
            raise

    async def ask(
        self, body: dict[str, Any] | bytes, *, key: str | None = None, conversation: str = "c", **headers: str
    ) -> httpx.Response:
        """POST a message; `headers` in words_like_this."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if key is not None:
            named["Idempotency-Key"] = key
        content = {"content": body} if isinstance(body, bytes) else {"json": body}
        return await self.client.post(self.path(conversation), headers=named, **content)

    def path(self, conversation: str = "c") -> str:
        return f"/api/conversations/{conversation}/turns"

    async def running(self, text: str = "hold", *, key: str = "k", conversation: str = "c") -> str:
        """Ask something that does not end before `release`; answers its id once the work has begun."""
        self.entered.clear()
        answer = await self.ask({"text": text}, key=key, conversation=conversation, Prefer="wait=0")
        assert answer.status_code == 202, answer.text
        await self.entered.wait()
        return str(answer.json()["turn"])

    async def state(self, turn: str, conversation: str = "c") -> dict[str, Any]:
        answer = await self.client.get(f"{self.path(conversation)}/{turn}")
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    async def final(self, turn: str, conversation: str = "c") -> dict[str, Any]:
        """The turn's state, once it is final: waits on its own stream, which ends then."""
        await self.client.get(f"{self.path(conversation)}/{turn}/events")
        return await self.state(turn, conversation)

    @staticmethod
    def frames(text: str) -> list[Frame]:
        """All that a body of an event stream holds, except `retry:`."""
        found = []
        for block in text.split("\n\n"):
            fields = dict(line.split(": ", 1) for line in block.split("\n") if line and not line.startswith(":"))
            comment = next((line[2:] for line in block.split("\n") if line.startswith(":")), None)
            if "event" in fields:
                found.append(Frame(fields.get("id"), fields["event"], json.loads(fields["data"])))
            elif comment is not None:
                found.append(Frame(None, None, None, comment))
        return found

    @staticmethod
    async def each(response: httpx.Response) -> AsyncIterator[Frame]:
        """The same, while it is written."""
        block = ""
        async for line in response.aiter_lines():
            block += line + "\n"
            if not line:
                for frame in Service.frames(block):
                    yield frame
                block = ""

    @staticmethod
    async def until(look: Callable[[], Any], bound: float = 20) -> None:
        """Look until it is so; in between, let everything else have its turn."""
        async with asyncio.timeout(bound):
            while not look():  # noqa: ASYNC110 - what is looked at rings no bell
                await asyncio.sleep(0)


async def me(
    conversation_id: str, x_tenant: Annotated[str, Header()] = "t", x_user: Annotated[str, Header()] = "ann"
) -> Principal:
    if x_user == "nobody":
        raise HTTPException(401, headers={"WWW-Authenticate": "Bearer"})
    if conversation_id.startswith("not-mine"):
        raise HTTPException(404)
    return Principal(tenant=x_tenant, subject=x_user)


@pytest.fixture(params=["memory", "sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return "memory://" if request.param == "memory" else f"sqlite:///{tmp_path / 'oneturn.db'}"


@pytest.fixture
def open_service(url: str) -> Open:
    """Open a service with settings, without a server."""

    @asynccontextmanager
    async def opened(**settings: Any) -> AsyncIterator[Service]:
        service = Service(Gate(Settings(**{"records": url, "grace": 0, "hard_deadline": 5, **settings})))
        async with service.app.router.lifespan_context(service.app):
            transport = httpx.ASGITransport(service.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://test") as service.client:
                yield service

    return opened


@pytest.fixture
async def service(open_service: Open) -> AsyncIterator[Service]:
    async with open_service() as service:
        yield service


@pytest.fixture
async def served(url: str) -> AsyncIterator[Service]:
    """The same behind a real uvicorn, for streams that are read while they are written."""
    service = Service(Gate(Settings(records=url, grace=0, hard_deadline=5)))
    async with serving(service.app) as base, httpx.AsyncClient(base_url=base, timeout=30) as service.client:
        await service.client.get("/api/health/live")  # answered once the lifespan has opened the gate
        yield service


class _Quiet(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@asynccontextmanager
async def serving(app: FastAPI) -> AsyncIterator[str]:
    """Serve on a private loopback port. The socket listens before the server runs, so nobody has to wait for it."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = _Quiet(uvicorn.Config(app, log_config=None, lifespan="on", timeout_graceful_shutdown=5))
    running = asyncio.get_running_loop().create_task(server.serve(sockets=[listener]))
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        await running
        listener.close()
