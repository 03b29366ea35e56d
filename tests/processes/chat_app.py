"""A chat service as a user would write it, run as a real process by the tests. Its "model" counts its calls in a file."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path
from typing import Annotated

import uvicorn
from fastapi import FastAPI, Header
from pydantic import BaseModel

from oneturn import Gate, OneturnError, Principal, Settings, Turn
from oneturn.http import problem_response, turn_router

FOLDER = Path(os.environ["CHAT_FOLDER"])


class Ask(BaseModel):
    text: str


gate = Gate(
    Settings(
        records=f"sqlite:///{FOLDER / 'chat.db'}",
        ttl=3,
        renew_every=1,
        margin=0.2,
        check_every=1,
        sweep_every=1,
        grace=1,
    )
)


async def me(x_user: Annotated[str, Header()] = "acme/ada") -> Principal:
    tenant, subject = x_user.split("/")
    return Principal(tenant=tenant, subject=subject)


async def released(name: str) -> None:
    """Wait until the test makes the file `name`."""
    while not (FOLDER / name).exists():  # noqa: ASYNC110 - the test's way to hold a process at a known place
        await asyncio.sleep(0.01)


@gate.turn("chat", client_may=("reject",))
async def chat(turn: Turn[Ask]) -> str:
    with (FOLDER / "calls").open("a") as calls:
        calls.write(f"{turn.conversation} {turn.key} {os.getpid()}\n")
    turn.text("half ")
    await turn.flush()
    if turn.payload.text == "block":
        time.sleep(2 * gate.settings.ttl)  # noqa: ASYNC251 - user code that blocks the application's loop
        turn.check()
    if turn.payload.text.startswith("wait"):
        await released(turn.payload.text)
    turn.text("done")
    return f"{turn.payload.text} done"


app = FastAPI()
app.include_router(turn_router(gate, chat, principal=me))
app.add_exception_handler(OneturnError, problem_response)

if __name__ == "__main__":
    uvicorn.run(app, port=int(sys.argv[1]), log_level="warning", timeout_graceful_shutdown=2)
