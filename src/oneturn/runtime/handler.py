"""A handler: the named function that answers, with what was declared about it and the types of what goes in and out."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import TypeAdapter

from oneturn.core.errors import ConfigurationError
from oneturn.core.status import OnBusy, Recovery

Partial = Literal["keep", "drop", "next"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Handler:
    """One registered handler. Its name is stored in records; any process that registered it may run them."""

    name: str
    function: Callable[..., Any]
    asynchronous: bool
    payload: TypeAdapter[Any]
    result: TypeAdapter[Any]
    on_busy: OnBusy
    client_may: tuple[OnBusy, ...]
    partial: Partial
    recovery: Recovery
    run_limit: float

    def policy(self, wanted: OnBusy | None) -> OnBusy:
        """The policy for one request; ValueError if the client may not choose it."""
        if wanted is None or wanted == self.on_busy:
            return self.on_busy
        if wanted not in self.client_may:
            allowed = ", ".join(sorted({self.on_busy, *self.client_may}))
            raise ValueError(f"on_busy={wanted!r} is not offered by {self.name!r}: one of {allowed}")
        return wanted


def describe(
    function: Callable[..., Any],
    *,
    name: str,
    on_busy: OnBusy,
    client_may: tuple[OnBusy, ...],
    partial: Partial,
    recovery: Recovery,
    run_limit: float,
) -> Handler:
    """Read a handler's annotations: `Turn[Payload]` in, any JSON-able type out."""
    for policy in (on_busy, *client_may):
        if policy not in ("reject", "enqueue"):
            raise ConfigurationError(f"on_busy={policy!r} is not available in this version: use 'enqueue' or 'reject'")
    if partial == "next":
        raise ConfigurationError("partial='next' is not available in this version: use 'keep' or 'drop'")
    if not run_limit > 0:
        raise ConfigurationError(f"run_limit must be more than 0 seconds, not {run_limit!r}")
    try:
        hints = typing.get_type_hints(function)
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, NameError) as error:
        raise ConfigurationError(f"the annotations of {name!r} cannot be read: {error}") from error
    first = hints.get(parameters[0].name) if parameters else None
    arguments = typing.get_args(first)
    if first is None or len(arguments) != 1:
        raise ConfigurationError(f"{name!r} must take one argument annotated Turn[YourPayload]")
    return Handler(
        name=name,
        function=function,
        asynchronous=inspect.iscoroutinefunction(function),
        payload=TypeAdapter(arguments[0]),
        result=TypeAdapter(hints.get("return", Any)),
        on_busy=on_busy,
        client_may=client_may,
        partial=partial,
        recovery=recovery,
        run_limit=run_limit,
    )
