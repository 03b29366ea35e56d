"""The page's rules that no story reaches by itself: frames cut anywhere, events twice, events missing."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.async_api import Page

from browser.serving import Site

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def run(page: Page, site: Site, module: str, body: str, argument: Any = None) -> Any:
    """Run `body` with `module` and `argument` in the page."""
    await page.goto(site.url)
    script = f"async argument => {{ const module = await import('/static/js/{module}'); {body} }}"
    return await page.evaluate(script, argument)


async def test_a_stream_may_be_cut_anywhere(page: Page, site: Site) -> None:
    """Whatever the pieces are, the events are the same; comments and `retry:` are none."""
    stream = 'retry: 1000\n\n: still here\n\nid: 3-1\nevent: text\ndata: {"delta":"挂科"}\n\nevent: stopped\r\ndata: {}\r\n\r\n'
    body = """
        const all = (pieces) => {
            const parser = new module.Parser();
            return JSON.stringify(pieces.flatMap((piece) => parser.feed(piece)));
        };
        const whole = all([argument]);
        const halves = [...argument].map((_, at) => all([argument.slice(0, at), argument.slice(at)]));
        return [JSON.parse(whole), halves.every((each) => each === whole), all([...argument]) === whole];
    """
    events, halves, letters = await run(page, site, "stream.js", body, stream)
    assert events == [
        {"id": "3-1", "kind": "text", "data": {"delta": "挂科"}},
        {"id": None, "kind": "stopped", "data": {}},
    ]
    assert halves
    assert letters


def frame(seq: int, kind: str, data: Any = None, *, epoch: int = 3) -> dict[str, Any]:
    return {"id": f"{epoch}-{seq}", "kind": kind, "turn": "t", "data": data or {}}


APPLY = """
    const turns = new module.Turns();
    const fates = argument.map((frame) => turns.apply(frame));
    const turn = turns.get("t");
    return { fates, text: turn.text, status: turn.status, cursor: turns.cursor(), steps: [...turn.steps.values()] };
"""


@pytest.mark.case("T16")
async def test_an_event_counts_once_and_none_is_skipped(page: Page, site: Site) -> None:
    frames = [
        frame(1, "started"),
        frame(2, "text", {"delta": "a"}),
        frame(2, "text", {"delta": "a"}),
        frame(4, "text", {"delta": "c"}),
        frame(3, "text", {"delta": "b"}),
    ]
    seen = await run(page, site, "turns.js", APPLY, frames)
    assert seen["fates"] == ["applied", "applied", "known", "gap", "applied"]
    assert (seen["text"], seen["status"], seen["cursor"]) == ("ab", "running", "3-3")


async def test_a_restart_and_a_snapshot_replace_what_was_before(page: Page, site: Site) -> None:
    step = {"name": "model", "state": "done"}
    frames = [
        frame(1, "started"),
        frame(2, "text", {"delta": "half"}),
        frame(3, "restarted"),
        frame(4, "text", {"delta": "again"}),
        frame(9, "snapshot", {"text": "all of it", "steps": [step], "data": {}}),
        frame(10, "stopped", {"reason": "cancelled"}),
    ]
    seen = await run(page, site, "turns.js", APPLY, frames)
    assert (seen["text"], seen["steps"], seen["status"]) == ("all of it", [step], "stopped")
    assert set(seen["fates"]) == {"applied"}


async def test_a_repair_keeps_the_step_that_failed_in_sight(page: Page, site: Site) -> None:
    failed = {"name": "guard", "state": "failed", "attempt": 1, "reason": "no"}
    done = {"name": "guard", "state": "done", "attempt": 2}
    frames = [frame(1, "started"), frame(2, "step", failed), frame(3, "step", done)]
    assert (await run(page, site, "turns.js", APPLY, frames))["steps"] == [failed, done]


async def test_a_history_that_was_read_too_early_takes_nothing_back(page: Page, site: Site) -> None:
    body = """
        const turns = new module.Turns();
        argument.frames.forEach((frame) => turns.apply(frame));
        turns.learn([argument.item]);
        return turns.get("t").status;
    """
    item = {"turn": "t", "key": "k", "sequence": 1, "epoch": None, "status": "queued", "payload": {"text": "x"}}
    started = [frame(1, "queued"), frame(2, "started")]
    assert await run(page, site, "turns.js", body, {"frames": started, "item": item}) == "running"
    ended = [*started, frame(3, "succeeded", {"result": {}})]
    assert await run(page, site, "turns.js", body, {"frames": ended, "item": item}) == "succeeded"
