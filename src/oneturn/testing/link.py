"""A process's link to a shared backend, which a test may cut: then that process is dead, whatever it still tries."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from oneturn.core.backend import Backend


class Crashed(BaseException):
    """Raised inside a process whose link was cut: no handler, no clean-up and no retry of it goes any further."""


class Link:
    """Hands out a backend's ports through a gate that can be shut for good."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.cut = False

    def backend(self) -> Backend:
        """The same ports, behind this link. Closing it leaves the shared backend open."""
        ports = ("leases", "records", "signals", "replay")
        return replace(
            self._backend,
            **{port: _Linked(getattr(self._backend, port), self) for port in ports},  # type: ignore[arg-type]
            close=_nothing,
        )


class _Linked:
    def __init__(self, port: Any, link: Link) -> None:
        self._port = port
        self._link = link

    def __getattr__(self, name: str) -> Any:
        if self._link.cut:
            raise Crashed
        return getattr(self._port, name)


async def _nothing() -> None:
    return
