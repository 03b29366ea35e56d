"""A client of simulated processes: a gate and handles whose every call is a request to one of them, over a connection that can drop."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, NoReturn, Self, TypeVar

from oneturn.core.errors import ConfigurationError
from oneturn.core.event import Event
from oneturn.core.identity import Principal
from oneturn.core.record import Record
from oneturn.gate import Gate, Handle
from oneturn.runtime.engine import Engine
from oneturn.runtime.handler import Handler
from oneturn.runtime.outcome import Outcome
from oneturn.testing.link import Crashed
from oneturn.testing.simulation.host import Dropped, Host

P = TypeVar("P")
R = TypeVar("R")
T = TypeVar("T")

Work = Callable[..., Any]

PATIENCE = 1e6
"""Virtual seconds after which a client leaves by itself: it is the scenario that says how long it waits."""


async def reach(host: Host, work: Coroutine[Any, Any, T]) -> T:
    """One request. `Dropped` if the process dies or has closed meanwhile."""
    try:
        return await host.request(work, patience=PATIENCE)
    except Crashed:
        raise Dropped from None
    except ConfigurationError:
        if host.open:
            raise
        raise Dropped from None


class ClientHandle(Handle[R]):
    """A handle on the process that gave it: when that process is gone, so is the connection."""

    def __init__(self, handle: Handle[R], host: Host) -> None:
        super().__init__(handle.ticket, engine=handle.engine, handler=handle._handler)  # noqa: SLF001 - the same class
        self._host = host

    async def outcome(self, *, wait: float | None = None) -> Outcome | None:
        """See `Handle.outcome`."""
        return await reach(self._host, super().outcome(wait=wait))

    async def result(self, *, wait: float | None = None) -> R:
        """See `Handle.result`."""
        return await reach(self._host, super().result(wait=wait))

    async def events(self, *, after: int = 0) -> AsyncIterator[Event]:
        """See `Handle.events`."""
        stream = super().events(after=after)

        async def one() -> Event | None:
            return await anext(stream, None)

        while (event := await reach(self._host, one())) is not None:
            yield event

    async def cancel(self) -> None:
        """See `Handle.cancel`."""
        await reach(self._host, super().cancel())


class ClientGate(Gate):
    """What `Gate` offers to those who ask, answered by the process that `pick` names at each call."""

    def __init__(self, pick: Callable[[], Host], *, works: dict[Work, Work], asking: Callable[[], None]) -> None:
        """`works`: each handler as its caller knows it → as it was declared on the processes. `asking`: told of each ask."""
        super().__init__(pick().gate.settings)
        self._pick = pick
        self._works = works
        self._asking = asking

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        return

    @property
    def engine(self) -> Engine:
        """The process's."""
        return self._pick().gate.engine

    @property
    def running(self) -> bool:
        """The process's."""
        return self._pick().gate.running

    @property
    def accepting(self) -> bool:
        """The process's."""
        return self._pick().gate.accepting

    def drain(self) -> None:
        """See `Gate.drain`."""
        self._pick().gate.drain()

    def turn(self, name: str, **_: Any) -> NoReturn:
        """Handlers are declared when the processes begin."""
        raise ConfigurationError(f"give the handler {name!r} to simulate(scenario, handler, …)")

    def handler(self, function: Work) -> Handler:
        """See `Gate.handler`."""
        return self._pick().gate.handler(self._works.get(function, function))

    async def ask(self, handler: Work, payload: Any, /, **options: Any) -> Handle[Any]:
        """See `Gate.ask`."""
        self._asking()
        host = self._pick()
        asking = host.gate.ask(self._works.get(handler, handler), payload, **options)
        return ClientHandle(await reach(host, asking), host)

    async def find(self, turn_id: str, /, *, principal: Principal) -> Handle[Any] | None:
        """See `Gate.find`."""
        host = self._pick()
        found = await reach(host, host.gate.find(turn_id, principal=principal))
        return None if found is None else ClientHandle(found, host)

    def handle(self, record: Record) -> Handle[Any]:
        """See `Gate.handle`."""
        host = self._pick()
        return ClientHandle(host.gate.handle(record), host)

    async def forget(self, *, tenant: str, conversation: str) -> int:
        """See `Gate.forget`."""
        host = self._pick()
        return await reach(host, host.gate.forget(tenant=tenant, conversation=conversation))
