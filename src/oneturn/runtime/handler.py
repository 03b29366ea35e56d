"""A handler: the named function that answers, with what was declared about it and the types of what goes in and out."""

from __future__ import annotations

import inspect
import math
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import TypeAdapter
from pydantic.errors import PydanticUserError

from oneturn.core.errors import ConfigurationError
from oneturn.core.status import OnBusy, Recovery
from oneturn.runtime.turn import Turn

MAX_NAME = 255

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
    _refuse_options(name, policies=(on_busy, *client_may), partial=partial, recovery=recovery, run_limit=run_limit)
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ConfigurationError(f"{name!r} is a generator: return the answer, and stream with turn.text")
    try:
        hints = typing.get_type_hints(function)
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, NameError) as error:
        raise ConfigurationError(f"the annotations of {name!r} cannot be read: {error}") from error
    first = hints.get(parameters[0].name) if parameters else None
    arguments = typing.get_args(first)
    needed = [parameter for parameter in parameters[1:] if parameter.default is parameter.empty]
    if typing.get_origin(first) is not Turn or len(arguments) != 1 or needed:
        raise ConfigurationError(f"{name!r} must take one argument annotated Turn[YourPayload]")
    try:
        result: TypeAdapter[Any] = TypeAdapter(hints.get("return", Any))
        payload: TypeAdapter[Any] = TypeAdapter(arguments[0])
    except PydanticUserError as error:
        raise ConfigurationError(f"the payload or the result of {name!r} cannot be JSON: {error}") from error
    return Handler(
        name=name,
        function=function,
        asynchronous=inspect.iscoroutinefunction(function),
        payload=payload,
        result=result,
        on_busy=on_busy,
        client_may=client_may,
        partial=partial,
        recovery=recovery,
        run_limit=run_limit,
    )


def _refuse_options(
    name: str, *, policies: tuple[OnBusy, ...], partial: Partial, recovery: Recovery, run_limit: float
) -> None:
    for policy in policies:
        if policy not in ("reject", "enqueue"):
            raise ConfigurationError(f"on_busy={policy!r} is not available in this version: use 'enqueue' or 'reject'")
    if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME:
        raise ConfigurationError(f"a handler's name is a text of 1 to {MAX_NAME} characters, not {name!r}")
    if partial not in ("keep", "drop"):
        raise ConfigurationError(f"partial={partial!r} is not available in this version: use 'keep' or 'drop'")
    if recovery not in ("abandon", "rerun"):
        raise ConfigurationError(f"recovery must be 'abandon' or 'rerun', not {recovery!r}")
    if isinstance(run_limit, bool) or not isinstance(run_limit, int | float) or not 0 < run_limit < math.inf:
        raise ConfigurationError(f"run_limit must be a finite number of seconds above 0, not {run_limit!r}")
