"""The programs that the pages print: they run as they stand, and do what the page says of them."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from asking import Ask
from browser.serving import Site
from conftest import missing
from docs.pages import ROOT, blocks, run, text_of
from oneturn import Settings, Turn
from oneturn.backends.memory import memory_backend
from oneturn.testing import Harness, SimulationFailed
from oneturn.testing.clock import ManualClock

ASK = """
import asyncio

import httpx

async def main() -> None:
    transport = httpx.ASGITransport(app=app)
    async with app.router.lifespan_context(app), httpx.AsyncClient(transport=transport, base_url="http://t") as client:
        async def ask(text: str) -> httpx.Response:
            return await client.post(
                "/api/conversations/c1/turns", headers={"Idempotency-Key": "one", "X-User": "ada"}, json={"text": text}
            )
        for _ in range(2):
            answer = await ask("world")
            assert answer.status_code == 200, answer.text
            print(answer.json()["result"], answer.headers.get("idempotency-replayed"))
        print((await ask("other")).status_code)

asyncio.run(main())
"""


def program(page: str) -> str:
    (code,) = blocks(page, "python")
    return code


@pytest.mark.parametrize("page", ["README.md", "docs/tutorial/first-turn.md"])
def test_the_first_app_runs_and_answers_a_retry_with_a_replay(page: str, tmp_path: Path) -> None:
    """The very block of the page, as a program of its own in an empty folder."""
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", program(page) + ASK],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": ""},
    )
    assert ran.returncode == 0, ran.stderr
    first, second, other = ran.stdout.splitlines()
    assert "world" in first
    assert first.endswith("None")
    assert second == first.replace("None", "true")
    assert other == "422"


def test_the_readme_numbers_three_lines() -> None:
    marked = re.findall(r"#.*?\b([123])\b", program("README.md"))
    assert marked == ["1", "2", "3"]


def test_the_programs_pass_mypy_in_strict_mode(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(program("docs/tutorial/first-turn.md"))
    (tmp_path / "serve.py").write_text(program("docs/how-to/deploy.md"))
    (tmp_path / "readme.py").write_text(program("README.md"))
    (tmp_path / "storm.py").write_text(program("docs/how-to/test-your-handlers.md"))
    (tmp_path / "mypy.ini").write_text("[mypy]\nstrict = true\nplugins = pydantic.mypy\n")
    ran = subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            "--cache-dir",
            str(tmp_path / "cache"),
            "app.py",
            "serve.py",
            "readme.py",
            "storm.py",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


class Twice(Harness):
    """A process in which the replay seems to have called the handler again."""

    def calls(self, function: Callable[..., Any]) -> int:
        return super().calls(function) + 1


@pytest.mark.parametrize("kind", [Harness, Twice])
async def test_the_test_of_contributing_is_a_test(kind: type[Harness]) -> None:
    """It passes as printed, it can fail, and it names rows that exist."""
    names: dict[str, Any] = {"pytest": pytest, "Harness": Harness, "Ask": Ask, "Turn": Turn}
    run(program("CONTRIBUTING.md"), names)
    test = next(found for name, found in names.items() if name.startswith("test_"))
    marks = {mark.name: mark.args for mark in test.pytestmark}
    assert set(marks) == {"row", "case"}
    requirements = text_of("docs/reference/requirements.md")
    assert all(f"| {row} |" in requirements for args in marks.values() for row in args)
    clock = ManualClock()
    settings = Settings(records="memory://", grace=0, hard_deadline=5)
    async with kind(memory_backend(clock=clock), clock=clock, settings=settings) as anywhere:
        with pytest.raises(AssertionError) if kind is Twice else contextlib.nullcontext():
            await test(anywhere)


def test_the_test_of_a_handler_under_a_storm_is_a_test() -> None:
    """Twenty lines; it passes as printed, and finds the bug that its comment names."""
    code = program("docs/how-to/test-your-handlers.md")
    assert len([line for line in code.splitlines() if line]) <= 20
    names: dict[str, Any] = {"__name__": "page"}
    run(code, names)
    names["test_an_order_survives_anything"]()
    right = "if turn.id not in sent:"
    assert right in code
    run(code.replace(right, "if True:"), names)
    with pytest.raises(SimulationFailed, match=r"again: simulate\(order, answer, seeds=1, base=\d+, reset=\.\.\.\)"):
        names["test_an_order_survives_anything"]()


@pytest.fixture
def deployed(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The tutorial's application, served by the deploy page's program."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    (tmp_path / "app.py").write_text(program("docs/tutorial/first-turn.md"))
    code = program("docs/how-to/deploy.md")
    assert "port=8000" in code
    (tmp_path / "serve.py").write_text(code.replace("port=8000", f"port={port}"))
    process = subprocess.Popen(
        [sys.executable, "serve.py"], cwd=tmp_path, stderr=subprocess.PIPE, text=True, env={"PATH": os.environ["PATH"]}
    )
    url = f"http://127.0.0.1:{port}/api"
    end = time.monotonic() + 30
    while not _ready(url):
        assert process.poll() is None
        assert time.monotonic() < end, "not ready"
    yield process, url
    process.kill()
    process.communicate()


def _ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health/ready").status_code == 200
    except httpx.TransportError:
        return False


@pytest.mark.slow
def test_the_deployed_program_ends_though_a_stream_is_open(deployed: tuple[subprocess.Popen[str], str]) -> None:
    """It tells its watchers to come back, lets work end, and logs no error."""
    process, url = deployed
    with httpx.stream("GET", f"{url}/conversations/c1/events", timeout=30) as stream:
        lines = stream.iter_lines()
        assert next(lines).startswith("retry:")
        asked = httpx.post(
            f"{url}/conversations/c1/turns",
            json={"text": "a b c"},
            headers={"Idempotency-Key": "k", "Prefer": "wait=0"},
        )
        assert asked.status_code == 202
        process.send_signal(signal.SIGTERM)
        assert "event: reconnect" in list(lines)
    _, log = process.communicate(timeout=15)
    assert "Application shutdown complete" in log
    assert "ERROR" not in log
    assert "Traceback" not in log


@pytest.mark.slow
def test_fifty_clicks_as_the_readme_types_them(tmp_path: Path) -> None:
    """The transcript's commands against a real QueryData; its output where the page prints some."""
    for tool in ("curl", "md5sum", "bash"):
        if shutil.which(tool) is None:
            missing(tool)
    (transcript,) = [block for block in blocks("README.md", "console") if "fifty-clicks" in block]
    joined = transcript.replace("\\\n", " ")
    script = "\n".join(line.removeprefix("$ ") for line in joined.splitlines() if line.startswith("$ "))
    printed = [line for line in joined.splitlines() if not line.startswith("$ ")]
    site = Site(tmp_path)
    try:
        assert "U=http://127.0.0.1:8000\n" in script
        script = script.replace("http://127.0.0.1:8000", site.url)
        ran = subprocess.run(
            ["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True
        )
    finally:
        site.close()
    count, status = ran.stdout.splitlines()
    pattern = re.escape(printed[0]).replace("…", "[0-9a-f]{32}")
    assert re.fullmatch(pattern, count), count
    assert status == printed[1]
    assert printed[2:] == []


def test_the_screenshot_is_small_enough() -> None:
    for picture in (ROOT / "docs" / "images").glob("*"):
        assert picture.suffix == ".png"
        assert picture.stat().st_size < 200_000
        assert f"docs/images/{picture.name}" in text_of("README.md")
