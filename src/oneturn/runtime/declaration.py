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


_Found = Callable[[], Callable[..., Any] | None]

_declared: dict[int, tuple[_Found, Declaration]] = {}
"""In the order of declaring. It keeps no function alive: what is gone is forgotten."""
_numbers = itertools.count()


def remember(function: Callable[..., Any], declaration: Declaration) -> None:
    """Keep the declaration for as long as the function lives; of a bound method, for as long as its object does."""
    number = next(_numbers)

    def forget(_: object) -> None:
        _declared.pop(number, None)

    found: _Found
    try:
        found = weakref.WeakMethod(function, forget) if inspect.ismethod(function) else weakref.ref(function, forget)
    except TypeError:  # of an object that takes no weak references
        found = lambda: function  # noqa: E731
    _declared[number] = found, declaration


def declaration_of(function: Callable[..., Any]) -> Declaration | None:
    """The newest declaration of this function; None if it was never declared."""
    for found, declaration in reversed(list(_declared.values())):
        if found() == function:
            return declaration
    return None
