"""The scenarios of the sweep, by the name of the public coroutine that they call; and the discovery of those."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any

from stage import Stage

import oneturn.gate
import oneturn.runtime

Call = Callable[[], Awaitable[Any]]
Prepare = Callable[[Stage], Awaitable[Call]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """`prepare` sets the stage and answers the call that is swept."""

    name: str
    """The coroutine: `Class.method`, or a function."""
    how: str
    prepare: Prepare
    endless: float | None = None
    """A coroutine that never returns is swept for so many seconds, and cut at their end as well."""
    dies: bool = False
    """The call is an executor itself: cancelled, it may leave a record that runs in name only, as a killed process does."""
    needs: str = ""
    """The backend that it needs; "": any."""

    @property
    def sqlite(self) -> bool:
        """Whether it takes steps of a store, and so may be cut while one is under way on a thread."""
        return self.name in ON_A_THREAD

    def __str__(self) -> str:
        return f"{self.name}-{self.how}".replace(" ", "-").rstrip("-")


ON_A_THREAD = {
    "Admission.admit",
    "Emitter.run",
    "Engine.forget",
    "Execution.run",
    "Gate.ask",
    "Handle.cancel",
    "Process.acquire",
    "Process.release",
    "Queue.start",
    "Recovery.sweep",
}
"""Every step that changes a store is taken by one of these."""

SCENARIOS: list[Scenario] = []


def scenario(
    name: str, how: str = "", *, endless: float | None = None, dies: bool = False, needs: str = ""
) -> Callable[[Prepare], Prepare]:
    def register(prepare: Prepare) -> Prepare:
        SCENARIOS.append(Scenario(name=name, how=how, prepare=prepare, endless=endless, dies=dies, needs=needs))
        return prepare

    return register


def public_coroutines() -> set[str]:
    """All public coroutines, asynchronous generators and context managers of the runtime and the gate."""
    modules = [oneturn.gate, *_modules()]
    return {name for module in modules for name in _of(module)}


def _modules() -> Iterator[Any]:
    for found in pkgutil.iter_modules(oneturn.runtime.__path__, "oneturn.runtime."):
        yield importlib.import_module(found.name)


def _of(module: Any) -> Iterator[str]:
    for name, value in vars(module).items():
        if name.startswith("_") or getattr(value, "__module__", None) != module.__name__:
            continue
        if inspect.isclass(value):
            for method, function in vars(value).items():
                if (not method.startswith("_") or method in ("__aenter__", "__aexit__")) and _is_awaited(function):
                    yield f"{name}.{method}"
        elif _is_awaited(value):
            yield name


def _is_awaited(function: Any) -> bool:
    function = inspect.unwrap(getattr(function, "__func__", function))
    return (
        inspect.iscoroutinefunction(function)
        or inspect.isasyncgenfunction(function)
        or "AsyncContextManager" in str(getattr(function, "__annotations__", {}).get("return"))
    )
