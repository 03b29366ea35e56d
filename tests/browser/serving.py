"""QueryData as a real process on a private port, and a model that waits until a test lets it go on."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
from playwright.async_api import BrowserContext

SCRIPTED = Path(__file__).parents[1] / "querydata" / "scripted_openai.py"
SQL = (
    "SELECT d.name_zh AS 院系, count(*) AS 学生数 FROM department d JOIN major m ON m.department_id = d.id "
    "JOIN class c ON c.major_id = m.id JOIN student s ON s.class_id = c.id GROUP BY d.id, d.name_zh"
)
REPLY = json.dumps({"sql": SQL, "reading": "各院系的学生数"}, ensure_ascii=False)

NewContext = Callable[..., Awaitable[BrowserContext]]


class Site:
    """One QueryData process. Its leases are short, so that a test need not wait a minute for a death to be noticed."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._environment = {
            **os.environ,
            "ONETURN_TTL": "4",
            "ONETURN_RENEW_EVERY": "1",
            "ONETURN_MARGIN": "0.5",
            "ONETURN_CHECK_EVERY": "1",
            "ONETURN_SWEEP_EVERY": "1",
            "ONETURN_GRACE": "1",
            **environment,
        }
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "querydata", "serve", "--port", str(self.port), "--data", str(self.folder)]
        if fake := os.environ.get("QD_FAKE"):
            command = [sys.executable, fake, str(self.folder), str(self.port)]
        with (self.folder / "server.log").open("ab") as log:
            self.process = subprocess.Popen(command, env=self._environment, stdout=log, stderr=log)
        end = time.monotonic() + 120
        while not self._ready():
            assert self.process.poll() is None, (self.folder / "server.log").read_text()
            assert time.monotonic() < end, "the server did not become ready"
            time.sleep(0.05)

    def _ready(self) -> bool:
        try:
            return httpx.get(f"{self.url}/api/health/ready").status_code == 200
        except httpx.TransportError:
            return False

    def kill(self) -> None:
        """As `kill -9`."""
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


class Model:
    """The scripted endpoint as a process of its own: the page's server calls it, the test tells it what to do."""

    def __init__(self) -> None:
        self._process = subprocess.Popen([sys.executable, str(SCRIPTED)], stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().strip()
        self._control = self.url.removesuffix("/v1")

    def script(self, *faults: str | None) -> None:
        """Answer so many calls, each with its fault (None: none)."""
        reply: dict[str, Any] = {"text": REPLY}
        replies = [reply if fault is None else {**reply, "fault": fault} for fault in faults]
        httpx.post(f"{self._control}/_script", json=replies).raise_for_status()

    def release(self) -> None:
        """Let the calls go on that are held now."""
        httpx.post(f"{self._control}/_release").raise_for_status()

    @property
    def calls(self) -> int:
        return int(httpx.get(f"{self._control}/_calls").json()["calls"])

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


class Held:
    """A site whose model holds its first answer until the test releases it."""

    def __init__(self, folder: Path) -> None:
        self._model = Model()
        self.site = Site(
            folder,
            QUERYDATA_MODEL="openai",
            QUERYDATA_MODEL_BASE_URL=self._model.url,
            QUERYDATA_MODEL_API_KEY="none",
            QUERYDATA_MODEL_NAME="scripted",
        )
        self.url = self.site.url
        self.expect()

    def expect(self, *, held: int = 1) -> None:
        """Hold so many calls; those after them are answered at once."""
        self._held = held
        self._model.script(*["hold"] * held, *[None] * 5)

    def reached(self) -> None:
        """Wait until the calls that are to be held have arrived: a turn runs a moment before its model is asked."""
        end = time.monotonic() + 30
        while self.calls < self._held:
            assert time.monotonic() < end, "the model was not asked"
            time.sleep(0.02)

    def release(self) -> None:
        """Let the held calls go on."""
        self.reached()
        self._model.release()

    def abandon(self) -> None:
        """Let go of whatever is still held."""
        self._model.release()

    @property
    def calls(self) -> int:
        """How often the model was asked since the test began."""
        return self._model.calls

    def close(self) -> None:
        self._model.release()
        self.site.close()
        self._model.close()
