"""While a question is being answered: other tabs, refreshes, Stop, the queue. The model waits until the test says so."""

from __future__ import annotations

import asyncio

import pytest
from playwright.async_api import BrowserContext, Page, Request, expect

from browser.screenplay import act, ask, is_now, key_of, sign_in, turn
from browser.serving import Held, Site

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

QUESTION = "查询当前仍有挂科的学生"


def streams(page: Page) -> list[str]:
    """The streams that a page opens from now on."""
    opened: list[str] = []

    def note(request: Request) -> None:
        if request.url.endswith("/events"):
            opened.append(request.url)

    page.on("request", note)
    return opened


@pytest.mark.row("Q2", "Q3")
@pytest.mark.case("T17")
async def test_a_second_tab_shows_the_same_turn_live_over_the_first_ones_stream(
    context: BrowserContext, page: Page, held: Held
) -> None:
    await sign_in(page, held.url)
    asked = await ask(page, QUESTION)
    await expect(asked.locator(".step").first).to_be_visible()
    await is_now(asked, "running")
    second = await context.new_page()
    opened = streams(second)
    await second.goto(page.url)
    seen = turn(second, await key_of(asked))
    await is_now(seen, "running")
    await expect(seen.locator(".step").first).to_be_visible()
    await expect(act(seen, "stop")).to_be_visible()
    held.release()
    await is_now(asked, "succeeded")
    await is_now(seen, "succeeded")
    await expect(seen.locator("table")).to_be_visible()
    assert opened == []


@pytest.mark.case("T17")
async def test_the_tab_that_holds_the_stream_is_closed_and_another_goes_on(
    context: BrowserContext, page: Page, held: Held
) -> None:
    await sign_in(page, held.url)
    asked = await ask(page, QUESTION)
    await is_now(asked, "running")
    key, address = await key_of(asked), page.url
    second = await context.new_page()
    await second.goto(address)
    seen = turn(second, key)
    await is_now(seen, "running")
    await page.close()
    held.release()
    await is_now(seen, "succeeded")
    await expect(seen.locator("table")).to_be_visible()


@pytest.mark.case("T17")
async def test_seven_tabs_of_one_conversation_and_none_hangs(context: BrowserContext, page: Page, held: Held) -> None:
    await sign_in(page, held.url)
    asked = await ask(page, QUESTION)
    await is_now(asked, "running")
    key = await key_of(asked)
    tabs = [await context.new_page() for _ in range(6)]
    opened = [streams(tab) for tab in tabs]
    for tab in tabs:
        await tab.goto(page.url)
        await is_now(turn(tab, key), "running")
    assert not any(opened)
    second = await ask(tabs[-1], "哪门课挂科率最高")
    await is_now(second, "queued")
    held.release()
    for tab in (page, *tabs):
        await is_now(turn(tab, key), "succeeded")


@pytest.mark.case("T17")
async def test_seven_tabs_of_seven_running_conversations_and_none_hangs(
    context: BrowserContext, page: Page, held: Held
) -> None:
    """A browser has six connections to a server: streams must not take them all."""
    await sign_in(page, held.url)
    held.expect(held=7)
    tabs = [page, *[await context.new_page() for _ in range(6)]]
    asked = []
    for tab in tabs:
        await tab.goto(f"{held.url}/#/")
        asked.append(await ask(tab, QUESTION))
        await is_now(asked[-1], "running")
    held.release()
    for each in asked:
        await is_now(each, "succeeded")


@pytest.mark.row("Q2")
@pytest.mark.case("T18")
async def test_a_refresh_in_the_middle_loses_nothing(page: Page, held: Held) -> None:
    await sign_in(page, held.url)
    asked = await ask(page, QUESTION)
    await expect(asked.locator(".step[data-state=running]")).to_be_visible()
    steps = await asked.locator(".step-name").all_text_contents()
    key = await key_of(asked)
    await page.reload()
    again = turn(page, key)
    await is_now(again, "running")
    await expect(again.locator(".question")).to_have_text(QUESTION)
    await expect(again.locator(".step-name")).to_have_text(steps)
    await expect(act(again, "stop")).to_be_visible()
    held.release()
    await is_now(again, "succeeded")
    await expect(again.locator("table")).to_be_visible()
    await expect(page.locator(".turn")).to_have_count(1)
    assert held.calls == 1


@pytest.mark.row("Q2")
async def test_a_closed_browser_finds_its_answer_when_it_is_opened_again(
    page: Page, held: Held, context: BrowserContext
) -> None:
    await sign_in(page, held.url)
    asked = await ask(page, QUESTION)
    await is_now(asked, "running")
    key, address = await key_of(asked), page.url
    await page.close()
    held.release()
    later = await context.new_page()
    await later.goto(address)
    await is_now(turn(later, key), "succeeded")
    assert held.calls == 1


@pytest.mark.case("T12", "T13")
async def test_stop_from_another_tab_ends_the_turn_and_retry_makes_a_new_key(
    page: Page, held: Held, context: BrowserContext
) -> None:
    await sign_in(page, held.url)
    asked = await ask(page, QUESTION)
    await is_now(asked, "running")
    key = await key_of(asked)
    held.reached()
    second = await context.new_page()
    await second.goto(page.url)
    await act(turn(second, key), "stop").click()
    for seen in (turn(second, key), asked):
        await is_now(seen, "stopped")
        await expect(seen.locator(".state")).to_have_text("已按你的要求停止")
    assert held.calls == 1
    await act(asked, "retry").click()
    await expect(page.locator(".turn")).to_have_count(2)
    retried = page.locator(".turn").last
    assert await key_of(retried) != key
    await is_now(retried, "succeeded")
    await is_now(asked, "stopped")


@pytest.mark.case("T10", "T11")
async def test_a_queued_question_shows_its_place_and_can_be_stopped(page: Page, held: Held) -> None:
    await sign_in(page, held.url)
    first = await ask(page, QUESTION)
    await is_now(first, "running")
    second = await ask(page, "哪门课挂科率最高")
    third = await ask(page, "本学期各院系的平均成绩")
    await expect(second.locator(".state")).to_have_text("排队中，前面还有 1 个问题")
    await expect(third.locator(".state")).to_have_text("排队中，前面还有 2 个问题")
    await act(second, "stop").click()
    await is_now(second, "stopped")
    await expect(third.locator(".state")).to_have_text("排队中，前面还有 1 个问题")
    held.release()
    await is_now(first, "succeeded")
    await is_now(third, "succeeded")
    assert held.calls == 2


async def test_a_conversation_that_is_not_open_is_marked_while_it_works(page: Page, held: Held) -> None:
    await sign_in(page, held.url)
    asked = await ask(page, QUESTION)
    await is_now(asked, "running")
    mark = page.locator(".conversation .mark")
    await expect(mark).to_have_count(1)
    await page.click(".new")
    await expect(page.locator("#welcome")).to_be_visible()
    await expect(mark).to_have_count(1)
    held.release()
    await expect(mark).to_have_count(0)


async def test_without_web_locks_every_tab_streams_for_itself(context: BrowserContext, page: Page, held: Held) -> None:
    """As on a page that came over plain http from another machine: no locks, no randomUUID."""
    await context.add_init_script(
        "Object.defineProperty(navigator, 'locks', { value: undefined });"
        "Object.defineProperty(crypto, 'randomUUID', { value: undefined });"
    )
    await sign_in(page, held.url)
    asked = await ask(page, QUESTION)
    await is_now(asked, "running")
    second = await context.new_page()
    opened = streams(second)
    await second.goto(page.url)
    seen = turn(second, await key_of(asked))
    await expect(seen.locator(".step[data-state=running]")).to_be_visible()
    held.release()
    await is_now(asked, "succeeded")
    await is_now(seen, "succeeded")
    assert len(opened) > 0


@pytest.mark.row("Q18")
async def test_a_dead_process_is_noticed_and_its_turn_is_shown_as_unavailable(page: Page, doomed: Held) -> None:
    """The page says that it reconnects, comes back by itself, and may ask again."""
    await sign_in(page, doomed.url)
    asked = await ask(page, QUESTION)
    await is_now(asked, "running")
    doomed.reached()
    site: Site = doomed.site
    site.kill()
    await expect(page.locator("#notice")).to_be_visible()
    await asyncio.get_running_loop().run_in_executor(None, site.start)
    await is_now(asked, "abandoned")
    await expect(asked.locator(".state")).to_have_text("结果不可用")
    await expect(page.locator("#notice")).not_to_be_visible()
    await act(asked, "retry").click()
    await is_now(page.locator(".turn").last, "succeeded")


async def test_a_long_history_opens_at_its_end_and_shows_what_was_before_on_demand(page: Page, site: Site) -> None:
    await sign_in(page, site.url)
    first = await ask(page, "第0个问题")
    await is_now(first, "succeeded")
    conversation = page.url.rsplit("/", 1)[-1]
    await page.evaluate(
        """async conversation => {
            for (let number = 1; number < 55; number++) {
                await fetch(`/api/conversations/${conversation}/turns`, {
                    method: "POST",
                    headers: { "Content-Type": "application/json", "Idempotency-Key": `key-${number}` },
                    body: JSON.stringify({ text: `第${number}个问题` }),
                });
            }
        }""",
        conversation,
    )
    await page.reload()
    await expect(page.locator(".turn")).to_have_count(50)
    await page.click("#earlier")
    await expect(page.locator(".turn")).to_have_count(55)
    await expect(page.locator(".question").first).to_have_text("第0个问题")
    await expect(page.locator("#earlier")).to_be_hidden()
