"""A planted bug: a small switchable mutation of the real code, and what has to be seen broken by it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

Mutation = Callable[[], AbstractContextManager[object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bug:
    """A planted bug, and the invariants of which at least one has to be seen broken."""

    name: str
    breaks: tuple[str, ...]
    """I1 to I16; "model" for a step that only the model can judge."""
    plant: Mutation
    """Makes the context in which the code has the bug."""


def patched(*changes: tuple[Any, str, Any]) -> Mutation:
    """Each change is (where, name, mutant). A mutation that only shows where a safeguard is missing too removes both."""

    @contextmanager
    def plant() -> Iterator[None]:
        with ExitStack() as stack:
            for target, name, mutant in changes:
                stack.enter_context(patch.object(target, name, mutant))
            yield

    return plant
