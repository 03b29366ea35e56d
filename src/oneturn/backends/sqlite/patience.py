"""How long a thread waits for somebody else's lock on a file, where SQLite's own waiting does not do."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE = 5.0
"""Seconds that a statement waits for another process's transaction before its outcome is called unknown."""


def patiently(step: Callable[[], T], *, pause: float) -> T:
    """What `step` answers; while a lock is in its way it is tried again, `pause` seconds apart, for as long as `PATIENCE`."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            return step()
        except sqlite3.Error as error:
            if not _busy(error) or time.monotonic() >= until:
                raise
        time.sleep(pause)


def _busy(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY
