"""A declaration is found from the function, whatever kind it is, and keeps nothing alive."""

from __future__ import annotations

import gc
import inspect
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from asking import Ask
from oneturn import Gate, Settings, Turn
from oneturn.core.errors import ConfigurationError
from oneturn.runtime.declaration import Declaration, declaration_of, remember


class Bot:
    async def reply(self, turn: Turn[Ask]) -> str:
        return ""

    @classmethod
    def of_the_class(cls, turn: Turn[Ask]) -> str:
        return ""


class Slotted:
    __slots__ = ()

    def reply(self, turn: Turn[Ask]) -> str:
        return ""


def _gate() -> Gate:
    return Gate(Settings(records="memory://"))


def test_the_name_and_the_options_are_those_of_the_decorator() -> None:
    @_gate().turn("answer", recovery="rerun", run_limit=7, client_may=("reject",))
    async def answer(turn: Turn[Ask]) -> str:
        return ""

    declaration = declaration_of(answer)
    assert declaration is not None
    assert declaration.name == "answer"
    given = {"recovery": "rerun", "run_limit": 7, "client_may": ("reject",)}
    assert declaration.options == {"on_busy": "enqueue", "partial": "keep", **given}


def test_the_options_are_all_that_the_decorator_takes() -> None:
    """So that declaring it again with them is the same declaration."""

    @_gate().turn("answer")
    def answer(turn: Turn[Ask]) -> str:
        return ""

    first = declaration_of(answer)
    assert first is not None
    taken = inspect.signature(Gate.turn).parameters.values()
    assert set(first.options) == {parameter.name for parameter in taken if parameter.kind is parameter.KEYWORD_ONLY}
    _gate().turn(first.name, **first.options)(answer)
    assert declaration_of(answer) == first


def test_of_several_declarations_the_newest_counts() -> None:
    def answer(turn: Turn[Ask]) -> str:
        return ""

    _gate().turn("one")(answer)
    _gate().turn("two")(answer)
    assert declaration_of(answer) == Declaration(name="two", options=declaration_of(answer).options)  # type: ignore[union-attr]


def test_a_method_is_declared_with_its_object() -> None:
    bots = Bot(), Bot()
    for number, bot in enumerate(bots):
        _gate().turn(f"bot {number}")(bot.reply)
    assert [declaration_of(bot.reply).name for bot in bots] == ["bot 0", "bot 1"]  # type: ignore[union-attr]
    assert declaration_of(Bot().reply) is None
    slotted = Slotted()
    for work in (Bot.of_the_class, slotted.reply):
        _gate().turn("again")(work)
        assert declaration_of(work).name == "again"  # type: ignore[union-attr]


def test_a_lambda_is_a_function() -> None:
    one, other = (lambda turn: ""), (lambda turn: "")
    one.__annotations__ = {"turn": Turn[Ask]}
    _gate().turn("short")(one)
    assert declaration_of(one).name == "short"  # type: ignore[union-attr]
    assert declaration_of(other) is None


def test_what_was_refused_is_not_declared() -> None:
    def answer(turn: Turn[Ask]) -> str:
        return ""

    with pytest.raises(ConfigurationError):
        _gate().turn("answer", run_limit=-1)(answer)
    assert declaration_of(answer) is None


@pytest.mark.parametrize("of", [lambda bot: bot.reply, lambda bot: lambda: bot])
def test_it_keeps_nothing_alive(of: Callable[[Bot], Callable[..., Any]]) -> None:
    bot = Bot()
    gone = weakref.ref(bot)
    remember(of(bot), Declaration(name="x", options={}))
    del bot
    gc.collect()
    assert gone() is None
