"""`python -m querydata serve` as a newcomer meets it: what it prints works, and it ends when it is told to."""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest

from browser.serving import Site
from conftest import missing

pytestmark = pytest.mark.slow


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    site = Site(tmp_path)
    yield site
    site.close()


@pytest.fixture
async def dean(site: Site) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=site.url, timeout=30) as client:
        await client.post("/sign-in", data={"name": "dean", "password": "dean-demo"})
        yield client


def test_the_lines_that_it_prints_ask_a_question(site: Site) -> None:
    if shutil.which("curl") is None:
        missing("curl")
    printed = (site.folder / "server.log").read_text()
    assert site.url in printed
    assert "student-demo" in printed
    lines = printed[printed.index("  curl ") :]
    ran = subprocess.run(["bash", "-ec", lines], cwd=site.folder, capture_output=True, text=True, check=True)
    answer = json.loads(ran.stdout.strip().splitlines()[-1])
    assert answer["status"] == "succeeded"
    assert answer["result"]["rows"]


@pytest.mark.row("Q3")
async def test_fifty_posts_with_one_key_are_one_turn_with_fifty_equal_answers(dean: httpx.AsyncClient) -> None:
    made = (await dean.post("/api/conversations")).json()
    path = f"/api/conversations/{made['id']}/turns"

    async def post() -> httpx.Response:
        return await dean.post(path, json={"text": "查询当前仍有挂科的学生"}, headers={"Idempotency-Key": "k"})

    answers = await asyncio.gather(*(post() for _ in range(50)))
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.content for answer in answers}) == 1
    assert len((await dean.get(path)).json()["turns"]) == 1


async def test_it_ends_at_once_though_somebody_watches(site: Site, dean: httpx.AsyncClient) -> None:
    """The watcher is told to come back, and its line ends cleanly."""
    made = (await dean.post("/api/conversations")).json()
    async with dean.stream("GET", f"/api/conversations/{made['id']}/events") as stream:
        lines = stream.aiter_lines()
        await anext(lines)
        site.process.send_signal(signal.SIGINT)
        assert "event: reconnect" in [line async for line in lines]
    assert site.process.wait(10) == 0
    assert "Traceback" not in (site.folder / "server.log").read_text()
