"""The how-to pages' fragments, run as they stand in the surroundings that the pages describe."""

from __future__ import annotations

import textwrap
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any

import httpx
import pytest
from fastapi import Depends, FastAPI
from sqlalchemy import select
from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from starlette.requests import Request

from asking import Ask
from docs.pages import blocks, run
from oneturn import Gate, Principal, Settings, Turn
from oneturn.http import respond, turn_router


class Base(DeclarativeBase):
    pass


class MessageRow(Base):
    __tablename__ = "message"
    id: Mapped[int] = mapped_column(primary_key=True)
    conversation_id: Mapped[str]
    seq: Mapped[int]
    role: Mapped[str]
    body: Mapped[str]


@pytest.fixture
async def names(tmp_path: Path) -> AsyncIterator[dict[str, Any]]:
    """What the fragments take for granted: a gate, a database with a table of its own, a request."""
    url = f"sqlite+aiosqlite:///{tmp_path / 'app.db'}"
    engine = create_async_engine(url)
    async with engine.begin() as connection:
        await connection.run_sync(Base.metadata.create_all)
    gate = Gate(Settings(records=url, grace=0))

    async def think(text: str) -> str:
        return f"about {text}"

    request = Request(
        {"type": "http", "method": "POST", "path": "/", "query_string": b"", "headers": [], "app": FastAPI()}
    )
    with ThreadPoolExecutor(1) as pool:
        yield {
            "Ask": Ask,
            "Turn": Turn,
            "gate": gate,
            "MessageRow": MessageRow,
            "Sessions": async_sessionmaker(engine),
            "think": think,
            "pool": pool,
            "respond": respond,
            "request": request,
            "body": Ask(text="rain"),
            "conversation_id": "c",
            "key": "k",
            "who": Principal(tenant="acme", subject="ada"),
        }
    await engine.dispose()


async def test_own_tables(names: dict[str, Any]) -> None:
    """The question's row with the admission, the answer's row with the final record."""
    declared, asked = blocks("docs/how-to/own-tables.md", "python")
    run(declared, names)
    run("async def endpoint():\n" + textwrap.indent(asked, "    "), names)
    async with names["gate"]:
        answer = await names["endpoint"]()
        assert answer.status_code == 200
        assert b'"result":"about rain"' in answer.body
        async with names["Sessions"]() as session:
            rows = (await session.execute(select(MessageRow.role, MessageRow.seq, MessageRow.body))).all()
    assert [tuple(row) for row in rows] == [("user", 1, "rain"), ("assistant", 1, "about rain")]


async def test_threads_and_futures(names: dict[str, Any]) -> None:
    for block in blocks("docs/how-to/threads-and-futures.md", "python"):
        run(block, names)
    async with names["gate"] as gate:
        for number, handler in enumerate((names["pipeline"], names["own_pool"])):
            handle = await gate.ask(handler, Ask(text="x"), conversation=f"c{number}", key="k", principal=names["who"])
            assert await handle.result() == "done"
            steps = [event.data["name"] async for event in handle.events() if event.kind == "step"]
            assert steps == ["retrieve", "sql", "chart"]


async def test_forget(names: dict[str, Any]) -> None:
    """The page's claims: how many, 410 for the same request, an empty history for a new one."""
    gate: Gate = names["gate"]
    app = FastAPI()

    async def me(conversation_id: str) -> Principal:
        return Principal(tenant="acme", subject="ada")

    @gate.turn("chat")
    async def chat(turn: Turn[Ask]) -> int:
        return len(await turn.history())

    app.include_router(turn_router(gate, chat, principal=me))
    (block,) = blocks("docs/how-to/forget.md", "python")
    run(block, {**names, "app": app, "me": me, "Principal": Principal, "Annotated": Annotated, "Depends": Depends})
    async with app.router.lifespan_context(app), httpx.AsyncClient(transport=httpx.ASGITransport(app)) as client:

        async def ask(key: str) -> httpx.Response:
            url = "http://test/conversations/c/turns"
            return await client.post(url, headers={"Idempotency-Key": key}, json={"text": "rain"})

        assert [(await ask(key)).json()["result"] for key in "ab"] == [0, 1]
        assert (await client.delete("http://test/chats/c")).json() == 2
        again = await ask("a")
        assert (again.status_code, again.json()["type"]) == (410, "urn:oneturn:problem:result-expired")
        assert (await ask("c")).json()["result"] == 0


async def test_a_history_without_kept_payloads_is_empty() -> None:
    """What the page says of ONETURN_KEEP_PAYLOADS=until_answered."""
    gate = Gate(Settings(records="memory://", grace=0, keep_payloads="until_answered"))
    who = Principal(tenant="acme", subject="ada")

    @gate.turn("chat")
    async def chat(turn: Turn[Ask]) -> int:
        return len(await turn.history())

    async with gate:
        for key in "ab":
            handle = await gate.ask(chat, Ask(text="rain"), conversation="c", key=key, principal=who)
            assert await handle.result() == 0
