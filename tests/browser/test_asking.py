"""Asking in the page: the whole way from the question to table and chart, and what is refused."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from browser.screenplay import act, ask, is_now, key_of, sign_in
from browser.serving import NewContext, Site

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


@pytest.mark.row("Q1")
async def test_a_question_is_answered_with_steps_a_table_and_a_chart(page: Page, site: Site) -> None:
    await sign_in(page, site.url, "admin")
    turn = await ask(page, "查询当前仍有挂科的学生")
    await is_now(turn, "succeeded")
    await expect(turn.locator(".reading")).to_be_visible()
    await expect(turn.locator("table tbody tr").first).to_be_visible()
    await expect(turn.locator(".chart svg .bar").first).to_be_visible()
    await turn.locator(".fold summary").click()
    await expect(turn.locator(".step").first).to_be_visible()
    await turn.locator(".sql summary").click()
    await expect(turn.locator(".sql pre")).to_contain_text("SELECT")
    await expect(page.locator(".conversation[aria-current]")).to_have_text("查询当前仍有挂科的学生")


@pytest.mark.case("D10")
async def test_an_answer_says_that_the_rows_of_others_were_left_out(page: Page, site: Site) -> None:
    await sign_in(page, site.url)
    turn = await ask(page, "查询当前仍有挂科的学生")
    await is_now(turn, "succeeded")
    await expect(turn.locator(".wording")).to_contain_text("只统计了本院系的")


async def test_a_question_outside_what_is_covered_is_refused_in_words(page: Page, site: Site) -> None:
    await sign_in(page, site.url)
    turn = await ask(page, "今天天气怎么样")
    await is_now(turn, "succeeded")
    await expect(turn.locator(".wording.refused")).to_be_visible()
    await expect(turn.locator("table")).to_have_count(0)


async def test_the_page_speaks_the_browsers_language_and_can_be_switched(new_context: NewContext, site: Site) -> None:
    page = await (await new_context(locale="en-GB")).new_page()
    await sign_in(page, site.url)
    await expect(page.locator("#welcome h1")).to_have_text("What would you like to know?")
    await page.click(".side-foot [data-action=language]")
    await expect(page.locator("#welcome h1")).to_have_text("想查询什么？")
    await page.reload()
    await expect(page.locator("#welcome h1")).to_have_text("想查询什么？")


async def test_the_page_fits_a_phone(new_context: NewContext, site: Site) -> None:
    page = await (await new_context(width=390, height=780)).new_page()
    await sign_in(page, site.url)
    turn = await ask(page, "查询当前仍有挂科的学生")
    await expect(turn.locator("table")).to_be_visible()
    assert await page.evaluate("document.documentElement.scrollWidth") <= 390
    assert await page.evaluate("document.getElementById('scroll').scrollWidth") <= 390
    await page.click("[data-action=open-side]")
    await expect(page.locator("#side")).to_be_visible()
    await page.click("#side [data-action=close-side]")
    await expect(page.locator("#side")).not_to_be_visible()


async def test_enter_that_ends_the_choice_of_a_word_does_not_send(page: Page, site: Site) -> None:
    """An input method takes Enter for itself; browsers tell by isComposing, or by key code 229 alone."""
    await sign_in(page, site.url)
    await page.focus("#question")
    keyboard = await page.context.new_cdp_session(page)
    enter = {"type": "rawKeyDown", "key": "Enter", "code": "Enter"}
    await keyboard.send("Input.imeSetComposition", {"text": "guake", "selectionStart": 5, "selectionEnd": 5})
    await keyboard.send("Input.dispatchKeyEvent", {**enter, "windowsVirtualKeyCode": 13})
    await keyboard.send("Input.insertText", {"text": "挂科"})
    await keyboard.send("Input.dispatchKeyEvent", {**enter, "windowsVirtualKeyCode": 229})
    # Chromium gives both signs at once; others give this one alone.
    await page.dispatch_event("#question", "keydown", {"key": "Enter", "keyCode": 13, "isComposing": True})
    await expect(page.locator("#question")).to_have_value("挂科")
    await page.keyboard.press("Shift+Enter")
    await expect(page.locator("#question")).to_have_value("挂科\n")
    await expect(page.locator(".turn")).to_have_count(0)
    await page.keyboard.press("Enter")
    await expect(page.locator(".turn .question")).to_have_text("挂科")


async def test_a_question_is_text_whatever_it_looks_like(page: Page, site: Site) -> None:
    await sign_in(page, site.url)
    markup = "<img src=x onerror=\"document.title='owned'\"><b>挂科</b>"
    turn = await ask(page, markup)
    await expect(turn.locator(".question")).to_have_text(markup)
    assert await turn.locator("img, b").count() == 0


async def test_signing_out_and_in_again_shows_the_same_conversation(page: Page, site: Site) -> None:
    await sign_in(page, site.url)
    key = await key_of(await ask(page, "查询当前仍有挂科的学生"))
    title = page.locator(".conversation[aria-current]")
    conversation = await title.get_attribute("data-conversation")
    await page.click("[data-action=sign-out]")
    await expect(page.locator("#sign-in")).to_be_visible()
    await sign_in(page, site.url)
    await page.click(f"[data-conversation='{conversation}']")
    await expect(page.locator(f'.turn[data-key="{key}"][data-status=succeeded]')).to_be_visible()


async def test_a_wrong_password_is_told_in_words(page: Page, site: Site) -> None:
    await page.goto(site.url)
    await page.fill("input[name=name]", "admin")
    await page.fill("input[name=password]", "wrong")
    await page.press("input[name=password]", "Enter")
    await expect(page.locator("#sign-in-error")).to_have_text("账号或密码不正确。")


async def test_a_failed_post_is_shown_with_its_reason_and_can_be_discarded(page: Page, site: Site) -> None:
    await sign_in(page, site.url)
    problem = {"type": "urn:oneturn:problem:limit-reached", "title": "Too many", "status": 429, "detail": "full"}
    await page.route(
        "**/turns",
        lambda route: route.fulfill(status=429, json=problem) if route.request.method == "POST" else route.continue_(),
    )
    turn = await ask(page, "问题太多")
    await is_now(turn, "refused")
    await expect(turn.locator(".state")).to_have_text("排队的问题太多，请稍后再试。")
    await act(turn, "discard").click()
    await expect(page.locator(".turn")).to_have_count(0)
