"""The how-to pages' fragments, run as they stand in the surroundings that the pages describe."""

from __future__ import annotations

import re
import textwrap
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from sqlalchemy import select
from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from starlette.requests import Request

from asking import Ask
from oneturn import Gate, Principal, Settings, Turn
from oneturn.http import respond

PAGES = Path(__file__).parents[2] / "docs" / "how-to"


class Base(DeclarativeBase):
    pass


class MessageRow(Base):
    __tablename__ = "message"
    id: Mapped[int] = mapped_column(primary_key=True)
    conversation_id: Mapped[str]
    seq: Mapped[int]
    role: Mapped[str]
    body: Mapped[str]


def blocks(page: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", (PAGES / page).read_text(encoding="utf8"), re.MULTILINE | re.DOTALL)


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
    declared, asked = blocks("own-tables.md")
    exec(declared, names)
    exec("async def endpoint():\n" + textwrap.indent(asked, "    "), names)
    async with names["gate"]:
        answer = await names["endpoint"]()
        assert answer.status_code == 200
        assert b'"result":"about rain"' in answer.body
        async with names["Sessions"]() as session:
            rows = (await session.execute(select(MessageRow.role, MessageRow.seq, MessageRow.body))).all()
    assert [tuple(row) for row in rows] == [("user", 1, "rain"), ("assistant", 1, "about rain")]


async def test_threads_and_futures(names: dict[str, Any]) -> None:
    for block in blocks("threads-and-futures.md"):
        exec(block, names)
    async with names["gate"] as gate:
        for number, handler in enumerate((names["pipeline"], names["own_pool"])):
            handle = await gate.ask(handler, Ask(text="x"), conversation=f"c{number}", key="k", principal=names["who"])
            assert await handle.result() == "done"
            steps = [event.data["name"] async for event in handle.events() if event.kind == "step"]
            assert steps == ["retrieve", "sql", "chart"]
