"""What a person does with the page, and where things are on it."""

from __future__ import annotations

from playwright.async_api import Locator, Page, expect


async def sign_in(page: Page, url: str, name: str = "dean") -> None:
    await page.goto(url)
    await page.fill("input[name=name]", name)
    await page.fill("input[name=password]", f"{name}-demo")
    await page.click("#sign-in-form button[type=submit]")
    await expect(page.locator("#app")).to_be_visible()


async def ask(page: Page, text: str) -> Locator:
    """Ask, and answer where the question stands now."""
    before = await page.locator(".turn").count()
    await page.fill("#question", text)
    await page.press("#question", "Enter")
    await expect(page.locator(".turn")).to_have_count(before + 1)
    return turn(page, await key_of(page.locator(".turn").last))


def turn(page: Page, key: str) -> Locator:
    return page.locator(f'.turn[data-key="{key}"]')


async def key_of(turn: Locator) -> str:
    key = await turn.get_attribute("data-key")
    assert key
    return key


async def is_now(turn: Locator, status: str) -> None:
    await expect(turn).to_have_attribute("data-status", status)


def act(turn: Locator, name: str) -> Locator:
    return turn.locator(f"button[data-action={name}]")
