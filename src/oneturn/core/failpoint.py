"""Named places at every boundary, where tests crash, pause, cancel or lose a reply; nothing in production."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

Hook = Callable[[str], Awaitable[None]]

_hook: Hook | None = None


async def failpoint(name: str) -> None:
    """Call the installed hook with `name`; without one, do nothing."""
    if _hook is not None:
        await _hook(name)


def install(hook: Hook | None) -> Hook | None:
    """Make `hook` the one that every failpoint calls (None: none); answers the hook before it."""
    global _hook
    before, _hook = _hook, hook
    return before
