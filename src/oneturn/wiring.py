"""The composition root: which backend stands behind which URL. Nothing else in the library knows a backend's name."""

from __future__ import annotations

from importlib.metadata import entry_points
from urllib.parse import urlsplit

from oneturn.core.backend import Backend, Connect
from oneturn.core.errors import ConfigurationError

GROUP = "oneturn.backends"


async def connect(url: str, *, setting: str) -> Backend:
    """Open the backend of a URL's scheme (what follows a `+` names a driver and does not matter here).

    ConfigurationError names the setting and the schemes that are installed.
    """
    scheme = urlsplit(url).scheme.split("+")[0]
    found = {point.name: point for point in entry_points(group=GROUP)}
    if scheme not in found:
        known = ", ".join(f"{name}://" for name in sorted(found)) or "none: is oneturn itself installed?"
        raise ConfigurationError(f"{setting}={url!r}: no backend for {scheme or 'no scheme'!r}; installed are {known}")
    opens: Connect = found[scheme].load()
    return await opens(url)
