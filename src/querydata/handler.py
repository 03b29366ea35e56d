"""The one turn handler: a question in, the chain's answer out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated

from pydantic import BaseModel, Field, StringConstraints

from oneturn import Gate, Turn, TurnFailed
from querydata import chain
from querydata.model import Model

_REMEMBERED = 10
"""So many earlier turns are given to the chain as context."""


class Ask(BaseModel):
    """What a client sends."""

    text: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1), Field(max_length=2000)]


AskHandler = Callable[[Turn[Ask]], Awaitable[chain.Answer]]


def ask_handler(gate: Gate, *, source: chain.Source, model: Model) -> AskHandler:
    """Declare the handler on `gate`: it asks `source` (the campus database) with the help of `model`."""

    @gate.turn("ask", on_busy="enqueue", client_may=("reject",))
    async def ask(turn: Turn[Ask]) -> chain.Answer:
        history = await turn.history(limit=_REMEMBERED)
        try:
            return await chain.answer(
                turn.payload.text,
                history=history,
                trace=turn,
                source=source,
                model=model,
                claims=turn.principal.claims,
            )
        except chain.ChainFailed as error:
            raise TurnFailed(error.message, code=error.code) from error

    return ask
