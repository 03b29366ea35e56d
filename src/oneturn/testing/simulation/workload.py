"""The workload: handlers of every kind, and clients that retry, reuse keys, cancel, watch, leave, regenerate and come back."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from oneturn.core.errors import BackendUnavailable, ConfigurationError, Refused, ResultUnavailable, Stopped, TurnFailed
from oneturn.core.event import TERMINAL, Event
from oneturn.core.identity import Principal
from oneturn.gate import Gate, Handle
from oneturn.runtime.turn import Turn
from oneturn.testing.evidence import ConversationRead, Entry, Fenced, Read, Said, Told
from oneturn.testing.simulation.application import note, transaction
from oneturn.testing.simulation.host import Dropped, Host
from oneturn.testing.simulation.shape import Shape
from oneturn.testing.simulation.threads import sleep

if TYPE_CHECKING:
    from oneturn.testing.simulation.world import World

TENANTS = ("a", "b")
HANDLERS = ("abandon", "abandon", "rerun", "rerun", "thread", "fails", "fenced")
NO_ANSWER = "no-answer"
LAST_KEY = "l2"
"""Of the question that each scope is asked once everything has healed."""
PIECES = ("0 ", "1 ", "2 ", "3 ")


class Ask(BaseModel):
    """A simulated message."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A logical request: asked again, it is the same in every part."""

    tenant: str
    subject: str
    scope: str
    key: str
    text: str
    regenerate: str | None = None

    @property
    def handler(self) -> str:
        """The key decides who answers, so that a retry asks the same one."""
        return HANDLERS[_number(self.key) % len(HANDLERS)]

    @property
    def on_busy(self) -> Any:
        """The key decides this, too."""
        return "reject" if _number(self.key) % 5 == 0 else "enqueue"

    @property
    def expected(self) -> bytes:
        """What an answer must say."""
        return json.dumps(f"{self.tenant} {self.text}").encode()


def _number(key: str) -> int:
    return int(key.strip("klr") or 0)


class Workload:
    """What a world does when nobody brings a scenario."""

    def __init__(self, world: World, shape: Shape) -> None:
        self._world = world
        self._shape = shape
        self.succeeded: dict[Question, None] = {}
        """What was answered, in the order in which somebody was first told so."""
        world.evidence.codes = frozenset((NO_ANSWER,))
        self._first_key = world.stream("keys").randrange(
            len(HANDLERS)
        )  # so that few keys are not always the same handlers'

    # -- handlers -----------------------------------------------------------------------------------------------------

    def declare(self, gate: Gate) -> None:
        """Handlers whose answers tell what they were asked, and which write down how they were entered."""
        for name, work, recovery in (
            ("abandon", self._answer, "abandon"),
            ("rerun", self._answer, "rerun"),
            ("thread", self._in_a_thread, "abandon"),
            ("fails", self._fails, "abandon"),
            ("fenced", self._fenced, "abandon"),
        ):
            gate.turn(name, client_may=("reject",), recovery=recovery)(_named(work, name))  # type: ignore[arg-type]

    async def _answer(self, turn: Turn[Ask]) -> str:
        draw, said = self._enter(turn)
        await self._read(turn)
        # What is asked last is answered at once: how long it takes then is the library's doing.
        pace = 0.15 if draw.random() < 0.15 else 1.0  # noqa: PLR2004 - so many take their time
        for piece in PIECES[: draw.randrange(5)]:
            await asyncio.sleep(0.1 if turn.key == LAST_KEY else draw.expovariate(pace))
            turn.check()
            turn.text(piece)
            said.texts.append(piece)
            if draw.random() < 0.1:  # noqa: PLR2004 - so many want to be sure
                said.flushed.append((await turn.flush(), len(self._world.servers.journal)))
        return f"{turn.principal.tenant} {turn.payload.text}"

    def _in_a_thread(self, turn: Turn[Ask]) -> str:
        draw, said = self._enter(turn)
        for piece in PIECES[: draw.randrange(5)]:
            # One in thirty hangs for longer than a TTL, without asking whether it may go on.
            hangs = draw.random() < 0.03  # noqa: PLR2004
            sleep(draw.uniform(0, 1.5 * self._world.settings.ttl) if hangs else draw.expovariate(1.0))
            if not hangs:
                turn.check()
            turn.text(piece)
            said.texts.append(piece)
        return f"{turn.principal.tenant} {turn.payload.text}"

    async def _fails(self, turn: Turn[Ask]) -> str:
        draw, _ = self._enter(turn)
        await self._read(turn)
        await asyncio.sleep(draw.expovariate(1.0))
        turn.emit("step", {"name": "half"})
        if draw.random() < 0.5:  # noqa: PLR2004 - half of them
            raise TurnFailed("no answer this time", code=NO_ANSWER)
        return f"{turn.principal.tenant} {turn.payload.text}"

    def _fenced(self, turn: Turn[Ask]) -> str:
        """Writes a row of its own under the fence, and now and then finishes with it."""
        answer = self._in_a_thread(turn)
        database = self._world.servers.database
        if database is not None:
            draw = self._stream(turn, "rows")
            if draw.random() < 0.3:  # noqa: PLR2004 - so many get to their rows late, and do not ask first
                sleep(draw.uniform(0, 1.5 * self._world.settings.ttl))
            finishes = turn.epoch % 2 == 0
            row = Fenced(
                tenant=turn.principal.tenant, scope=turn.conversation, turn=turn.id, epoch=turn.epoch, finishes=finishes
            )
            try:
                with transaction(self._world, database) as session:
                    turn.fence(session, **({"result": answer} if finishes else {}))
                    sleep(draw.expovariate(5.0))
                    note(session, row)
            except Stopped:
                self._world.evidence.refused_by_fence.append(row)
                raise
        return answer

    def _enter(self, turn: Turn[Ask]) -> tuple[random.Random, Said]:
        """The very first thing that work does: write down that it was entered, and by what right."""
        world = self._world
        entry = Entry(
            turn=turn.id,
            epoch=turn.epoch,
            host=world.loop.host(),
            time=world.loop.time(),
            stopping=turn.stopping.value if turn.stopping else "",
        )
        world.evidence.entries.append(entry)
        said = Said(turn=turn.id, epoch=turn.epoch)
        world.evidence.said.append(said)
        return self._stream(turn, "work"), said

    async def _read(self, turn: Turn[Ask]) -> None:
        """Read the context, and write down which it was."""
        history = tuple(message.turn for message in await turn.history(limit=1000))
        entries = self._world.evidence.entries
        place = next(n for n, entry in enumerate(entries) if (entry.turn, entry.epoch) == (turn.id, turn.epoch))
        entries[place] = replace(entries[place], history=history)

    def _stream(self, turn: Turn[Ask], what: str) -> random.Random:
        return self._world.stream(f"{what} {turn.principal.tenant} {turn.conversation} {turn.key} {turn.epoch}")

    # -- clients ------------------------------------------------------------------------------------------------------

    def clients(self) -> dict[str, Callable[[], Awaitable[None]]]:
        """Name → what it does, in the order in which they are told of."""
        kinds: tuple[Callable[[random.Random], Awaitable[None]], ...] = (self._asker,) * 10 + (
            self._listener,
            self._operator,
        )
        made: dict[str, Callable[[], Awaitable[None]]] = {}
        for number in range(self._shape.clients):
            name = f"client {number}"
            draw = self._world.stream(name)
            made[name] = partial(draw.choice(kinds), draw)
        return made

    async def _asker(self, draw: random.Random) -> None:
        """Asks one question, again and again, of one process after another, until its answer is final."""
        await asyncio.sleep(draw.uniform(0, self._shape.spread))
        key = f"k{self._first_key + draw.randrange(self._shape.keys)}"
        question = Question(
            tenant=draw.choice(TENANTS),
            subject="v" if draw.random() < 0.2 else "u",  # noqa: PLR2004 - a fifth is somebody else
            scope=draw.choice(self._shape.scopes),
            key=key,
            text=key if draw.random() < 0.9 else f"{key} otherwise {draw.randrange(9)}",  # noqa: PLR2004 - a tenth reuses the key
        )
        told = await self.until_told(question, draw)
        if told is not None and told.word == "succeeded" and draw.random() < 0.15:  # noqa: PLR2004 - so many want another answer
            again = Question(
                tenant=question.tenant,
                subject=question.subject,
                scope=question.scope,
                key=key + "r" * draw.randrange(1, 3),
                text=question.text,
                regenerate=told.turn,
            )
            await self.until_told(again, draw)

    async def until_told(self, question: Question, draw: random.Random, *, tries: int = 6) -> Told | None:
        """Ask until told something final."""
        for _ in range(tries):
            if (told := await self.ask(question, draw)) is not None:
                return told
            await asyncio.sleep(draw.expovariate(0.5))
        return None

    async def ask(self, question: Question, draw: random.Random, *, final: bool = False) -> Told | None:
        """One attempt at one process; None if nothing final came of it."""
        host = draw.choice(self._world.hosts)
        leaves = not final and draw.random() < 0.2  # noqa: PLR2004 - a fifth leaves soon
        patience = 300.0 if final else draw.expovariate(1.0) if leaves else 70.0
        try:
            told = await host.request(self._attempt(host, question, draw, final=final), patience=patience)
        except (Dropped, BackendUnavailable, ConfigurationError, TimeoutError):
            return None  # it died, is closed, or did not answer: ask again
        if told.word in ("busy", "limit", "draining", "not-regenerable"):
            return None
        return told

    async def _attempt(self, host: Host, question: Question, draw: random.Random, *, final: bool) -> Told:
        world = self._world

        def tell(word: str, body: bytes = b"", turn: str = "") -> Told:
            told = Told(
                tenant=question.tenant,
                subject=question.subject,
                scope=question.scope,
                key=question.key,
                sent=f"{question.text}|{question.regenerate}",
                word=word,
                time=world.loop.time(),
                turn=turn,
                body=body,
                expected=question.expected if word == "succeeded" else None,
                final=final,
            )
            world.evidence.told.append(told)
            return told

        handle: Handle[Any] | None = None
        try:
            in_session = world.servers.database is not None and draw.random() < 0.3  # noqa: PLR2004 - so many applications do
            handle = await (self._ask_in_session if in_session else self._ask)(host, question)
            world.admissions += 1
            if not final and draw.random() < 0.12:  # noqa: PLR2004 - so many change their mind
                await asyncio.sleep(draw.expovariate(1.0))
                await handle.cancel()
            if not final and draw.random() < 0.4:  # noqa: PLR2004 - so many watch
                await self._watch(host, handle, draw)
            result = await handle.result(wait=None if final else draw.uniform(0, 60))
            self.succeeded[question] = None
            return tell("succeeded", json.dumps(result, ensure_ascii=False).encode(), handle.id)
        except Stopped as stopped:
            return tell("stopped", stopped.reason.value.encode(), handle.id if handle else "")
        except TurnFailed as failed:
            return tell("failed", failed.code.encode(), handle.id if handle else "")
        except Refused as refused:
            world.admissions += 1
            return tell(refused.reason, turn=refused.turn or "")
        except ResultUnavailable as gone:
            world.admissions += handle is None
            return tell(gone.why, turn=gone.turn)

    async def _ask(self, host: Host, question: Question, **session: Any) -> Handle[Any]:
        return await host.gate.ask(
            self._world.handlers(host)[question.handler],
            Ask(text=question.text),
            conversation=question.scope,
            key=question.key,
            principal=Principal(tenant=question.tenant, subject=question.subject),
            on_busy=question.on_busy,
            regenerate=question.regenerate,
            **session,
        )

    async def _ask_in_session(self, host: Host, question: Question) -> Handle[Any]:
        database = self._world.servers.database
        assert database is not None  # noqa: S101 - the caller has looked
        with transaction(self._world, database) as session:
            return await self._ask(host, question, session=session)

    async def _watch(self, host: Host, handle: Handle[Any], draw: random.Random) -> None:
        """Read its events, dropping and resuming, to the terminal one or until bored."""
        read = Read(turn=handle.id, host=host.name)
        self._world.evidence.reads.append(read)
        while True:
            async for event in handle.events(after=read.events[-1].id if read.events else 0):
                read.events.append(Event(id=event.id, kind=event.kind, data=event.data))
                if event.kind in TERMINAL:
                    return
                if draw.random() < 0.1:  # noqa: PLR2004 - the stream drops
                    break
            else:
                return
            if draw.random() < 0.1:  # noqa: PLR2004 - and so many do not come back
                return

    async def _listener(self, draw: random.Random) -> None:
        """A page that follows a whole conversation, from one process and then from another."""
        await asyncio.sleep(draw.uniform(0, self._shape.spread))
        read = ConversationRead(tenant=draw.choice(TENANTS), scope=draw.choice(self._shape.scopes))
        self._world.evidence.conversations.append(read)
        for _ in range(draw.randrange(1, 5)):
            host = draw.choice(self._world.hosts)
            try:
                await host.request(self._listen(host, read, draw), patience=draw.uniform(1, 40))
            except (Dropped, BackendUnavailable, ConfigurationError):
                continue

    async def _listen(self, host: Host, read: ConversationRead, draw: random.Random) -> None:
        after = (read.events[-1][1], read.events[-1][2].seq) if read.events else None
        async with host.gate.engine.conversation(tenant=read.tenant, scope=read.scope, after=after) as reader:
            for _ in range(draw.randrange(3, 40)):
                for told in await reader.next(self._world.settings.check_every):
                    if told.epoch is not None:
                        read.events.append((told.turn, told.epoch, told.event))

    async def _operator(self, draw: random.Random) -> None:
        """Looks at what is there, sweeps, and forgets a conversation that others do not use."""
        await asyncio.sleep(draw.uniform(0, self._shape.spread))
        host = draw.choice(self._world.hosts)
        try:
            await host.request(self._operate(host, draw), patience=draw.uniform(1, 60))
        except (Dropped, BackendUnavailable, ConfigurationError, Refused, ResultUnavailable, Stopped):
            return

    async def _operate(self, host: Host, draw: random.Random) -> None:
        engine, world = host.gate.engine, self._world
        await engine.ready()
        await engine.recovery.retain()
        handle = await host.gate.ask(
            world.handlers(host)["abandon"],
            Ask(text="soon forgotten"),
            conversation="z",
            key=f"k{draw.randrange(6)}",
            principal=Principal(tenant="a", subject="u"),
        )
        await engine.position(handle.ticket.record)
        await engine.turns(tenant="a", scope="z")
        await handle.outcome(wait=draw.uniform(0, 10))
        await host.gate.forget(tenant="a", conversation="z")


def _named(work: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The same work as a function of its own, so that one function can be two handlers."""
    if asyncio.iscoroutinefunction(work):

        async def answer(turn: Turn[Ask]) -> str:
            answered: str = await work(turn)
            return answered

        named: Callable[..., Any] = answer
    else:

        def in_a_thread(turn: Turn[Ask]) -> str:
            answered: str = work(turn)
            return answered

        named = in_a_thread
    named.__name__ = name
    return named
