"""The page makes a question's key before it sends, and keeps it until it has seen the question taken."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, Route, expect

from browser.screenplay import ask, is_now, key_of, sign_in, turn
from browser.serving import Site

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

QUESTION = "查询当前仍有挂科的学生"


class Line:
    """The connection between the page and the server, as far as asking goes."""

    def __init__(self, *, delivers: bool) -> None:
        self.delivers = delivers
        self.cut = True
        self.keys: list[str] = []

    async def __call__(self, route: Route) -> None:
        if route.request.method != "POST":
            await route.continue_()
            return
        self.keys.append(route.request.headers["idempotency-key"])
        if not self.cut:
            await route.continue_()
            return
        if self.delivers:
            await route.fetch()
        await route.abort("connectionreset")


async def keeps(page: Page, count: int) -> None:
    """Wait until the outbox holds so many questions."""
    await page.wait_for_function(
        "count => Object.keys(localStorage).filter(name => name.startsWith('querydata:outbox:')).length === count",
        arg=count,
    )


@pytest.mark.row("Q3")
@pytest.mark.case("O6")
@pytest.mark.parametrize("delivers", [True, False], ids=["the reply is lost", "the question is lost"])
async def test_the_key_survives_a_reload_when_no_reply_came(page: Page, site: Site, delivers: bool) -> None:
    """Whether or not the question arrived, it is asked once, under the key that was made first."""
    line = Line(delivers=delivers)
    await page.route("**/api/conversations/*/turns", line)
    await sign_in(page, site.url)
    asked = await ask(page, QUESTION)
    await expect(asked.locator(".state")).to_contain_text("暂时无法连接服务器")
    key = await key_of(asked)
    await keeps(page, 1)
    await page.reload()
    line.cut = False
    again = turn(page, key)
    await is_now(again, "succeeded")
    await expect(page.locator(".turn")).to_have_count(1)
    await keeps(page, 0)
    assert set(line.keys) == {key}
    assert len(line.keys) > 1


async def test_a_lost_reply_is_made_good_without_a_reload(page: Page, site: Site) -> None:
    line = Line(delivers=True)
    await page.route("**/api/conversations/*/turns", line)
    await sign_in(page, site.url)
    asked = await ask(page, QUESTION)
    await expect(asked.locator(".state")).to_contain_text("暂时无法连接服务器")
    line.cut = False
    await is_now(asked, "succeeded")
    await expect(page.locator(".turn")).to_have_count(1)
    assert set(line.keys) == {await key_of(asked)}


async def test_questions_arrive_in_the_order_in_which_they_were_asked(page: Page, site: Site) -> None:
    """The second waits until the first is known to be taken, however long that takes."""
    line = Line(delivers=False)
    await page.route("**/api/conversations/*/turns", line)
    await sign_in(page, site.url)
    keys = [await key_of(await ask(page, text)) for text in (QUESTION, "哪门课挂科率最高", "张伟的绩点是多少")]
    await expect(page.locator(".turn .state").first).to_contain_text("暂时无法连接服务器")
    assert set(line.keys) == {keys[0]}
    line.cut = False
    for key in keys:
        await is_now(turn(page, key), "succeeded")
    await page.reload()
    await expect(page.locator(".turn[data-status=succeeded]")).to_have_count(3)
    assert [await key_of(each) for each in await page.locator(".turn").all()] == keys


async def test_a_question_waits_for_the_next_sign_in(page: Page, site: Site) -> None:
    await sign_in(page, site.url)
    await page.context.clear_cookies()
    await page.fill("#question", QUESTION)
    await page.press("#question", "Enter")
    await expect(page.locator("#sign-in")).to_be_visible()
    await expect(page.locator("#sign-in-error")).to_have_text("登录已过期，请重新登录。")
    await sign_in(page, page.url)
    await is_now(page.locator(".turn"), "succeeded")
    await expect(page.locator(".question")).to_have_text(QUESTION)
