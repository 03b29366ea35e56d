"""The turn: what a handler is given, and all that it may do while it answers."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from oneturn.core.identity import Principal
from oneturn.core.record import Record, StoredMessage
from oneturn.core.status import StopReason
from oneturn.runtime.lease import Lease

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncSession
    from sqlalchemy.orm import Session

    from oneturn.runtime.execution import Execution

P = TypeVar("P")
R = TypeVar("R")

_MISSING: Any = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class Message(Generic[P]):
    """A message of the conversation; `answer` is the JSON of its answer, None while it has none."""

    turn: str
    payload: P
    answer: bytes | None = None
    partial: bool = False
    """Whether `answer` is what a stopped turn had said, rather than an answer."""


class Turn(Generic[P]):
    """One execution in a conversation. Every method may be called from any thread, unless it is async."""

    def __init__(self, execution: Execution, *, payload: P, unanswered: tuple[Message[P], ...]) -> None:
        self._execution = execution
        record = execution.record
        self.id: str = record.id
        """The turn's public name."""
        self.key: str = record.identity.key
        self.conversation: str = record.identity.scope
        self.principal = Principal(
            tenant=record.identity.tenant, subject=record.identity.subject, claims=dict(record.claims)
        )
        """Who asked. Their permission was checked when they asked, not when a queued turn starts."""
        self.epoch: int = record.epoch or 0
        """The fencing token: every durable write of this turn is conditional on it."""
        self.sequence: int = record.sequence
        """The message's place in the conversation, from 1."""
        self.payload: P = payload
        self.unanswered: tuple[Message[P], ...] = unanswered
        """The messages to answer, in order; ends with this one."""
        self.lease: Lease = execution.lease

    @property
    def stopping(self) -> StopReason | None:
        """Why the work must stop, or None while it may go on. No I/O."""
        return self.lease.stopping

    def check(self) -> None:
        """Raise `Stopped(reason)` if the work may not go on. No I/O."""
        self.lease.check()

    async def history(self, *, limit: int = 50) -> tuple[Message[P], ...]:
        """The answered messages before this turn, oldest first, the newest `limit` of them; ValueError if that is below 1."""
        return await self._execution.history(limit=limit)

    def text(self, delta: str, /) -> None:
        """Stream a piece of the answer."""
        self._execution.emitter.text(delta)

    def emit(self, kind: str, data: Any, /) -> None:
        """Log an event for all watchers: "step" ({"name", "state", …}), "data" ({"name", "value"}), or your own kind."""
        self._execution.emitter.emit(kind, data)

    async def flush(self) -> int:
        """Wait until everything emitted so far is durable; the number of the last event."""
        self._execution.refuse_while_fenced("turn.flush()")
        return await self._execution.emitter.flush()

    def on_stop(self, hook: Callable[[], object], /) -> None:
        """Call `hook` once when the turn is told to stop (at once if it was): interrupt the SQL, close the stream."""
        self._execution.on_stop(hook)

    async def follow(self, future: concurrent.futures.Future[R] | asyncio.Future[R], /) -> R:
        """Await work that runs elsewhere. The turn is leased until that *future* ends, even if this await is cancelled."""
        self._execution.follow(future)
        if isinstance(future, concurrent.futures.Future):
            return await asyncio.wrap_future(future)
        return await asyncio.shield(future)

    def fence(self, session: Session | AsyncSession, /, *, result: Any = _MISSING) -> None:
        """Commit `session` only if this turn may still write; with `result`, finish the turn in the same commit.

        The check is the last statement before the commit; a stale turn raises `Stopped` there and nothing is written.
        With `result`, pending events, the final record and the terminal event are rows of that same transaction, and the
        handler's return value no longer matters. The records must live in the database of the session.
        """
        self._execution.fence(session, **({} if result is _MISSING else {"result": result}))


_current: ContextVar[Turn[Any]] = ContextVar("oneturn.current_turn")


def current_turn() -> Turn[Any]:
    """The turn that this code runs in; LookupError outside of one. Threads of your own get the object instead."""
    try:
        return _current.get()
    except LookupError:
        raise LookupError("there is no current turn here: pass the Turn to threads and tasks of your own") from None


def bind(turn: Turn[Any]) -> None:
    """Make `turn` the current one of this context."""
    _current.set(turn)


def to_message(stored: StoredMessage, load: Callable[[bytes], P]) -> Message[P] | None:
    """A stored message as the handler sees it; None if its text was not kept or no longer fits the handler."""
    if stored.payload is None:
        return None
    try:
        payload = load(stored.payload)
    except ValueError:
        return None
    return Message(turn=stored.turn, payload=payload, answer=stored.answer)


def message_of(record: Record, payload: P) -> Message[P]:
    """The message that a record brought."""
    return Message(turn=record.message or record.id, payload=payload)


Work = Callable[[Turn[Any]], Awaitable[Any] | Any]
