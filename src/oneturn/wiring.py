"""The composition root: which backend stands behind which URL. Nothing else in the library knows a backend's name."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any
from urllib.parse import urlsplit

from oneturn.core.backend import Backend, Connect
from oneturn.core.errors import ConfigurationError

BACKENDS = "oneturn.backends"
MIGRATIONS = "oneturn.migrations"


async def connect(url: str, *, setting: str) -> Backend:
    """Open the backend of a URL's scheme (what follows a `+` names a driver and does not matter here).

    ConfigurationError names the setting and the schemes that are installed.
    """
    opens: Connect = _load(BACKENDS, url, setting=setting)
    return await opens(url)


def migrations(url: str, *, setting: str) -> str:
    """The statements that make the schema of a URL's backend, from nothing to this version. Opens nothing."""
    text: Callable[[], str] = _load(MIGRATIONS, url, setting=setting)
    return text()


def _load(group: str, url: str, *, setting: str) -> Any:
    scheme = urlsplit(url).scheme.split("+")[0]
    found = {point.name: point for point in entry_points(group=group)}
    if scheme not in found:
        known = ", ".join(f"{name}://" for name in sorted(found)) or "none: is oneturn itself installed?"
        kind = "backend" if group == BACKENDS else "schema"
        raise ConfigurationError(
            f"{setting}={url!r}: no {kind} for {scheme or 'no scheme'!r}; there is one for {known}"
        )
    return found[scheme].load()
