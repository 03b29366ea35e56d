"""QueryData's application in this process, on an empty data folder; nothing here asks the chain."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import httpx
import pytest
from argon2 import PasswordHasher
from fastapi import FastAPI

from querydata.settings import Settings
from querydata_app.starting import start

ORIGIN = "http://querydata.test"


@pytest.fixture(autouse=True)
def cheap_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A real hash takes a tenth of a second on purpose; which cost is right is not what these tests ask."""
    cheap = functools.partial(PasswordHasher, time_cost=1, memory_cost=64, parallelism=1)
    monkeypatch.setattr("querydata.accounts.PasswordHasher", cheap)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path, demo=True)


@pytest.fixture
async def app(settings: Settings) -> AsyncIterator[FastAPI]:
    app = start(settings)
    async with app.router.lifespan_context(app):
        yield app


Browse = Callable[[], httpx.AsyncClient]


@pytest.fixture
async def browse(app: FastAPI) -> AsyncIterator[Browse]:
    """Makes clients with a cookie jar each, as so many browsers."""
    clients: list[httpx.AsyncClient] = []

    def fresh() -> httpx.AsyncClient:
        clients.append(httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=ORIGIN))
        return clients[-1]

    yield fresh
    for client in clients:
        await client.aclose()


@pytest.fixture
async def client(browse: Browse) -> httpx.AsyncClient:
    """Nobody is signed in."""
    return browse()


async def signed_in(client: httpx.AsyncClient, name: str = "dean") -> httpx.AsyncClient:
    answer = await client.post("/sign-in", data={"name": name, "password": f"{name}-demo"})
    assert answer.status_code == 303
    return client


@pytest.fixture
async def dean(browse: Browse) -> httpx.AsyncClient:
    return await signed_in(browse())


@pytest.fixture
async def student(browse: Browse) -> httpx.AsyncClient:
    return await signed_in(browse(), "student")
