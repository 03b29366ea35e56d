"""The model port: what a model is asked, and the three ways it may reply."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

Language = Literal["zh", "en"]

TRANSPORT = frozenset({"model-rate-limited", "model-unavailable", "model-timeout", "model-cut"})
"""Failures on the way to or from a model: asking the same once more may help, telling the model about them does not."""

CORRECTABLE = frozenset({"model-malformed", "model-too-long"})
"""Failures of the reply itself: the model can do better when it is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """A finished turn before this one."""

    question: str
    reading: str
    sql: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """An earlier reply to this question, and why it did not serve; `sql` is empty where there was none."""

    sql: str
    message: str
    code: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """All that a model is told."""

    question: str
    tables: str = ""
    """The tables that bear on the question, as schema text."""
    knowledge: tuple[str, ...] = ()
    """Business terms that bear on it."""
    history: tuple[Exchange, ...] = ()
    """Finished turns of the conversation, oldest first."""
    errors: tuple[Attempt, ...] = ()
    """Earlier attempts at this question, oldest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """SQL that should answer the question. Nobody has checked it yet."""

    sql: str
    reading: str
    """How the question was understood, in the asker's words."""
    language: Language


@dataclass(frozen=True, slots=True, kw_only=True)
class Declined:
    """The question is not one for this data, or not clear enough; `message` says so to the asker."""

    message: str
    language: Language


class ModelFailed(Exception):
    """There is no usable reply. `message` is plain and holds no secret; `code` says which kind of failure."""

    def __init__(self, message: str, *, code: str) -> None:
        super().__init__(message)
        self.message = message
        self.code = code


class Model(Protocol):
    """Whatever writes SQL."""

    async def propose(self, request: Request, *, delta: Callable[[str], None]) -> Proposal | Declined:
        """Ask once, without retries of its own.

        - `delta` is called with each raw piece of the reply as it comes; an error it raises ends the call.
        - Cancelling ends the call and closes the connection to the model.
        - No usable reply raises `ModelFailed`.
        """
        ...

    async def aclose(self) -> None:
        """Give back what the model holds, such as open connections. No `propose` follows."""
        ...


def language_of(text: str) -> Language:
    """The asker's language: Chinese as soon as there is a Chinese character."""
    return "zh" if any("\u4e00" <= letter <= "\u9fff" for letter in text) else "en"
