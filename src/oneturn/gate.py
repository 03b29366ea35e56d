"""The gate: what an application constructs, declares its handlers on, and asks."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Any, Generic, Literal, Self, TypeVar, overload

from oneturn.core.backend import Backend
from oneturn.core.clock import Clock
from oneturn.core.decision import DecisionSink, log_decision
from oneturn.core.errors import ConfigurationError, ResultUnavailable, Stopped, TurnFailed
from oneturn.core.event import Event
from oneturn.core.identity import Principal
from oneturn.core.ids import Ids, SystemIds
from oneturn.core.record import Record
from oneturn.core.status import OnBusy, Recovery, Status, StopReason
from oneturn.runtime.admission import Admitted, Ticket
from oneturn.runtime.clock import SystemClock
from oneturn.runtime.declaration import Declaration, remember
from oneturn.runtime.engine import Engine
from oneturn.runtime.handler import Handler, describe
from oneturn.runtime.outcome import Outcome, outcome_of
from oneturn.runtime.pool import Threads, real_threads
from oneturn.runtime.settings import Settings
from oneturn.runtime.turn import Turn
from oneturn.wiring import connect

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncSession

P = TypeVar("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])


class Handle(Generic[R]):
    """An admitted message. It watches; dropping it changes nothing."""

    def __init__(self, ticket: Ticket, *, engine: Engine, handler: Handler | None) -> None:
        self.ticket = ticket
        self.engine = engine
        self._handler = handler
        self.id: str = ticket.record.id
        self.key: str = ticket.record.identity.key
        self.sequence: int = ticket.record.sequence
        self.admission: Admitted = ticket.admission
        self.new: bool = ticket.new
        """Started or queued by this call, rather than found."""

    async def outcome(self, *, wait: float | None = None) -> Outcome | None:
        """The final record, once there is one; None if there is none after `wait` seconds (None: wait for ever).

        Raises ResultUnavailable if it was forgotten, BackendUnavailable if the gate was closed meanwhile.
        """
        record = await self.engine.outcome(self.ticket.record, wait=wait, through_drain=True)
        return outcome_of(record, replayed=self.admission == "replayed") if record.status.final else None

    async def result(self, *, wait: float | None = None) -> R:
        """The handler's result.

        Raises TurnFailed, Stopped, ResultUnavailable, TimeoutError if it is not there after `wait` seconds, or
        BackendUnavailable if the gate was closed meanwhile.
        """
        record = await self.engine.outcome(self.ticket.record, wait=wait, through_drain=True)
        body = record.body.decode() or "{}"
        if record.expired:
            raise ResultUnavailable("the result of this turn is no longer kept", why="expired", turn=record.id)
        match record.status:
            case Status.SUCCEEDED:
                value: R = self._handler.result.validate_json(body) if self._handler else json.loads(body)
                return value
            case Status.FAILED:
                failure = json.loads(body)
                raise TurnFailed(failure["message"], code=failure["code"])
            case Status.STOPPED:
                raise Stopped(record.reason or StopReason.CANCELLED)
            case Status.ABANDONED:
                raise ResultUnavailable("the turn's process died", why="abandoned", turn=record.id)
            case _:
                raise TimeoutError(f"turn {self.id} is still {record.status.value} after {wait} s")

    async def events(self, *, after: int = 0) -> AsyncIterator[Event]:
        """Its events with a greater id, as they come, up to the terminal one. Leaving early is fine.

        Ends as well when there is nothing to read any more: it was forgotten, expired, or its admission rolled back.
        Goes on while the process drains; raises BackendUnavailable if the gate was closed meanwhile.
        """
        async with self.engine.reader(self.ticket.record, after=max(after, 0), through_drain=True) as reader:
            while not reader.done:
                for logged in await reader.next(self.engine.settings.check_every):
                    yield Event(id=logged.seq, kind=logged.kind, data=json.loads(logged.data))

    async def cancel(self) -> None:
        """Stop it, wherever it runs or waits. What is final stays final."""
        await self.engine.cancel(self.ticket.record)


class Gate:
    """Where messages are admitted. Constructing it reads settings and opens nothing; `async with` or a router opens it."""

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        backend: Backend | None = None,
        clock: Clock | None = None,
        ids: Ids | None = None,
        decisions: DecisionSink = log_decision,
        keeper_on: Literal["thread", "loop"] = "thread",
        threads: Threads = real_threads,
    ) -> None:
        """Take settings (default: from the environment).

        The other parameters are seams for tests: an open backend, a clock that can be moved, seeded names, a sink for the
        decision log, a keeper on the test's own loop, and worker threads whose order a simulation draws.
        """
        self.settings = settings or Settings()
        self._handlers: dict[str, Handler] = {}
        self._engine: Engine | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._opened = 0
        self._backend = backend
        self._clock = clock or SystemClock()
        self._ids = ids or SystemIds()
        self._decisions = decisions
        self._keeper_on = keeper_on
        self._threads = threads
        self._opening = asyncio.Lock()

    # -- life ---------------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        async with self._opening:
            if self._opened == 0:
                self._engine = await self._open()
                self._loop = asyncio.get_running_loop()
            self._opened += 1
        return self

    async def __aexit__(self, *exc: object) -> None:
        async with self._opening:
            self._opened -= 1
            if self._opened == 0 and self._engine is not None:
                engine, self._engine = self._engine, None
                await engine.close()

    async def _open(self) -> Engine:
        settings = self.settings
        records = self._backend or await connect(settings.records, setting="ONETURN_RECORDS")
        leases = records
        try:
            if settings.leases is not None:
                leases = await connect(settings.leases, setting="ONETURN_LEASES")
            engine = Engine(
                settings=settings,
                records=records,
                leases=leases,
                handlers=self._handlers,
                clock=self._clock,
                ids=self._ids,
                sink=self._decisions,
                keeper_on=self._keeper_on,
                threads=self._threads,
            )
            await engine.open()
        except BaseException:
            for backend in {id(records): records, id(leases): leases}.values():
                await backend.close()
            raise
        return engine

    def abandon_without_closing(self) -> None:
        """Forget the open engine as a crash would: for tests, which have ended its tasks themselves."""
        self._engine, self._opened = None, 0

    @property
    def engine(self) -> Engine:
        """The open engine; raises if the gate was never opened."""
        if self._engine is None:
            raise ConfigurationError(
                "this Gate is not open: include turn_router(gate, …) in your app, or use `async with gate:` around its use"
            )
        return self._engine

    @property
    def running(self) -> bool:
        """Whether it is open."""
        return self._engine is not None

    @property
    def accepting(self) -> bool:
        """False once draining, and while not open."""
        return self._engine is not None and self._engine.accepting

    def drain(self) -> None:
        """Admit nothing new from now on; work goes on. Callable from any thread."""
        if self._engine is not None and self._loop is not None:
            self._loop.call_soon_threadsafe(self._engine.drain)

    # -- declaring ----------------------------------------------------------------------------------------------------

    def turn(
        self,
        name: str,
        *,
        on_busy: OnBusy = "enqueue",
        client_may: tuple[OnBusy, ...] = (),
        partial: Literal["keep", "drop", "next"] = "keep",
        recovery: Recovery = "abandon",
        run_limit: float | None = None,
    ) -> Callable[[F], F]:
        """Declare a handler under a name that is stored with its records: keep it when you rename the function.

        `on_busy`: what happens to a message while its conversation is busy; `client_may`: what a request may choose instead.
        `partial`: whether what a stopped turn had said stays in its log. `recovery="rerun"`: start it again, at most twice,
        if its process dies. `run_limit`: the most it may take, in seconds.
        """

        def register(function: F) -> F:
            if name in self._handlers:
                raise ConfigurationError(f"two handlers are named {name!r}: names are stored, they must be unique")
            self._handlers[name] = describe(
                function,
                name=name,
                on_busy=on_busy,
                client_may=client_may,
                partial=partial,
                recovery=recovery,
                run_limit=self.settings.run_limit if run_limit is None else run_limit,
            )
            options = {
                "on_busy": on_busy,
                "client_may": client_may,
                "partial": partial,
                "recovery": recovery,
                "run_limit": run_limit,
            }
            remember(function, Declaration(name=name, options=options))
            return function

        return register

    def handler(self, function: Callable[..., Any]) -> Handler:
        """The registration of a decorated function, before or after opening."""
        for handler in self._handlers.values():
            if handler.function == function:
                return handler
        raise ConfigurationError(f'{function!r} is not registered: decorate it with @gate.turn("a-name")')

    # -- asking -------------------------------------------------------------------------------------------------------

    @overload
    async def ask(
        self,
        handler: Callable[[Turn[P]], Awaitable[R]],
        payload: P,
        /,
        *,
        conversation: str,
        key: str,
        principal: Principal,
        on_busy: OnBusy | None = None,
        regenerate: str | None = None,
        session: AsyncSession | None = None,
    ) -> Handle[R]: ...

    @overload
    async def ask(
        self,
        handler: Callable[[Turn[P]], R],
        payload: P,
        /,
        *,
        conversation: str,
        key: str,
        principal: Principal,
        on_busy: OnBusy | None = None,
        regenerate: str | None = None,
        session: AsyncSession | None = None,
    ) -> Handle[R]: ...

    async def ask(
        self,
        handler: Callable[[Turn[P]], Any],
        payload: P,
        /,
        *,
        conversation: str,
        key: str,
        principal: Principal,
        on_busy: OnBusy | None = None,
        regenerate: str | None = None,
        session: AsyncSession | None = None,
    ) -> Handle[Any]:
        """Admit a message: started, queued, or found (attached, replayed).

        Raises ValueError (a part that cannot be taken), Refused (reused key, busy, limit, draining, too large), ResultUnavailable (abandoned, expired),
        BackendUnavailable (nothing was run). With `session` the message is queued by that session's commit and starts
        after it, in any process; the session's database must hold the records.
        """
        engine, spec = self.engine, self.handler(handler)
        payload = spec.payload.validate_python(payload)
        sent = spec.payload.dump_python(payload, mode="json", exclude_unset=True)
        asked = engine.asked(
            spec,
            payload=spec.payload.dump_json(payload),
            sent=sent if regenerate is None else {"payload": sent, "regenerate": regenerate},
            conversation=conversation,
            key=key,
            principal=principal,
            on_busy=on_busy,
            regenerate=regenerate,
        )
        ticket = await (engine.admit(asked) if session is None else engine.ask_in(session, asked))
        return Handle(ticket, engine=engine, handler=spec)

    async def find(self, turn_id: str, /, *, principal: Principal) -> Handle[Any] | None:
        """A turn of the principal's tenant, to watch or to cancel; None if there is none. Permission is yours to check."""
        record = await self.engine.find(turn_id, principal=principal)
        return None if record is None else self.handle(record)

    def handle(self, record: Record) -> Handle[Any]:
        """A handle for a record that was found."""
        ticket = Ticket(record=record, admission="replayed" if record.status.final else "attached")
        return Handle(ticket, engine=self.engine, handler=self._handlers.get(record.handler))

    async def forget(self, *, tenant: str, conversation: str) -> int:
        """End what runs there, erase prompts, answers, events and cached copies; how many turns were erased."""
        return await self.engine.forget(tenant=tenant, conversation=conversation)
