"""A declaration: under which name, and with which options, a function was last declared on any gate of this process."""

from __future__ import annotations

import inspect
import itertools
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """What was written at `@gate.turn(name, …)`."""

    name: str
    options: Mapping[str, Any]


_Found = Callable[[], object]

_declared: dict[int, tuple[_Found, _Found, Declaration]] = {}
"""In the order of declaring. It keeps no function alive: what is gone is forgotten."""
_numbers = itertools.count()


def remember(function: Callable[..., Any], declaration: Declaration) -> None:
    """Keep the declaration for as long as the function lives; of a bound method, for as long as its object does."""
    number, kept = next(_numbers), _declared

    def forget(_: object) -> None:
        kept.pop(number, None)

    owner, plain = _parts(function)
    try:
        found: _Found = weakref.ref(owner, forget)
    except TypeError:  # an object that takes no weak references
        found = lambda: owner  # noqa: E731
    _declared[number] = found, weakref.ref(plain), declaration


def declaration_of(function: Callable[..., Any]) -> Declaration | None:
    """The newest declaration of this function; None if it was never declared."""
    owner, plain = _parts(function)
    for found, found_plain, declaration in reversed(list(_declared.values())):
        if found() is owner and found_plain() is plain:
            return declaration
    return None


def _parts(function: Callable[..., Any]) -> tuple[object, object]:
    """Whose it is, and what: a bound method is a new object each time it is named."""
    return (function.__self__, function.__func__) if inspect.ismethod(function) else (function, function)
