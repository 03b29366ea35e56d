"""Real server processes on private ports: started, watched, killed by the tests that own them."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import httpx

T = TypeVar("T")

PATIENCE = 30.0


def until(look: Callable[[], T | None], *, what: str) -> T:
    """Look again until there is something to see."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if (seen := look()) is not None:
            return seen
        time.sleep(0.01)
    raise AssertionError(f"after {PATIENCE} s still waiting for {what}")


class Server:
    """One process of the chat service."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("chat_app.py")), str(self.port)],
            env={**os.environ, "CHAT_FOLDER": str(folder)},
        )

    def ready(self) -> Server:
        until(self._live, what=f"the server on {self.port}")
        return self

    def _live(self) -> bool | None:
        assert self.process.poll() is None, "the server ended before it was ready"
        try:
            return True if httpx.get(f"{self.url}/health/ready").status_code == 200 else None
        except httpx.TransportError:
            return None

    def kill(self) -> None:
        """As `kill -9`: nothing is finished, released or told."""
        self.process.kill()
        self.process.wait()

    def pause(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        if self.process.poll() is None:
            self.resume()
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.kill()


def calls(folder: Path) -> list[str]:
    """One line per call of the model: conversation, key, process id."""
    file = folder / "calls"
    return file.read_text().splitlines() if file.exists() else []
