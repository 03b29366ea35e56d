"""A real server process on a private port, a real page in headless Chromium."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Page, async_playwright, expect

from browser.serving import Held, NewContext, Site
from conftest import missing

CHROMIUM = Path("/usr/bin/chromium")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PATIENCE = 30_000.0
"""Milliseconds. A busy machine may take long; nothing waits longer than it must."""

expect.set_options(timeout=PATIENCE)


@pytest.fixture(scope="package")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """With the embedded model."""
    site = Site(tmp_path_factory.mktemp("site"))
    yield site
    site.close()


@pytest.fixture(scope="package")
def holding(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Held]:
    held = Held(tmp_path_factory.mktemp("held"))
    yield held
    held.close()


@pytest.fixture
def held(holding: Held) -> Iterator[Held]:
    """With a model that holds its first answer until it is released."""
    holding.expect()
    yield holding
    holding.abandon()


@pytest.fixture
def doomed(tmp_path: Path) -> Iterator[Held]:
    """The same, for one test that kills its process."""
    held = Held(tmp_path)
    yield held
    held.close()


@pytest.fixture(scope="package")
def chromium() -> Path:
    if not CHROMIUM.exists():
        missing("chromium")
    return CHROMIUM


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def browser(chromium: Path) -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        yield browser
        await browser.close()


@pytest_asyncio.fixture(loop_scope="session")
async def new_context(browser: Browser) -> AsyncIterator[NewContext]:
    """Makes browser profiles. A script error on any of their pages fails the test."""
    contexts: list[BrowserContext] = []
    errors: list[str] = []

    async def fresh(*, locale: str = "zh-CN", width: int = 1200, height: int = 800) -> BrowserContext:
        context = await browser.new_context(locale=locale, viewport={"width": width, "height": height})
        context.set_default_timeout(PATIENCE)
        context.on("weberror", lambda error: errors.append(str(error.error)))
        contexts.append(context)
        return context

    yield fresh
    for context in contexts:
        await context.close()
    assert not errors


@pytest_asyncio.fixture(loop_scope="session")
async def context(new_context: NewContext) -> BrowserContext:
    return await new_context()


@pytest_asyncio.fixture(loop_scope="session")
async def page(context: BrowserContext) -> Page:
    return await context.new_page()
