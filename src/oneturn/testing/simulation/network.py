"""The network between a process and the servers: delays, losses, late and doubled deliveries, and outages."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from oneturn.core.backend import Backend
from oneturn.core.errors import BackendUnavailable
from oneturn.core.signals import Wake
from oneturn.core.steps import Claim, Ended, Finish, Gone
from oneturn.core.store import EnqueueAnswer, Execute, TransactionalRecords
from oneturn.testing.evidence import Incident, Violation
from oneturn.testing.link import Crashed
from oneturn.testing.simulation.loop import SimulatedLoop, lane_context
from oneturn.testing.simulation.servers import PORTS, Port, Servers

OUTSIDE = lane_context("")

LATEST = 15.0
"""Seconds after which a late request has arrived: longer than a TTL of the simulated settings."""
SLOW = 0.5
"""Seconds from which on one way counts as a fault."""

KINDS = ("lost", "reply_lost", "late", "doubled", "slow", "signals_lost")
"""What the network may do to a call; each can be switched off."""


@dataclass(slots=True)
class Weather:
    """How bad the network is; all probabilities are per call."""

    draw: random.Random
    lost: float = 0.02
    """The request never arrives."""
    reply_lost: float = 0.02
    """It was applied, nobody hears of it."""
    late: float = 0.01
    """It is applied after the caller gave up."""
    doubled: float = 0.02
    """It is delivered twice."""
    delay: float = 0.02
    """Seconds, the mean of most calls, each way."""
    slow: float = 0.01
    """The share of calls that take a hundred times as long."""
    signals_lost: float = 0.1
    hits: dict[str, int] = field(default_factory=dict)
    """How many calls were hit so far, by kind."""
    incidents: list[Incident] = field(default_factory=list)
    """… and when, and at which port."""

    def calm(self) -> None:
        """Heal everything."""
        for kind in KINDS:
            setattr(self, kind, 0.0)

    def strikes(self, kind: str, chance: float) -> bool:
        """Draw; counted if so."""
        if chance and self.draw.random() < chance:
            self.hits[kind] = self.hits.get(kind, 0) + 1
            return True
        return False

    def trip(self) -> float:
        """How long one way takes."""
        mean = self.delay * (100 if self.strikes("slow", self.slow) else 1)
        return self.draw.expovariate(1 / mean)

    def note(self, port: str, began: float, until: float) -> None:
        """A call of this port was hit."""
        self.incidents.append(Incident(kind="network", target=port, time=began, until=until))

    @property
    def faults(self) -> int:
        """All that were hit."""
        return sum(self.hits.values())


async def _nowhere(_: str) -> None:
    return


class Wire:
    """One process's connections. Once `cut` its process is dead: whatever it still calls raises `Crashed`."""

    def __init__(
        self,
        host: str,
        *,
        servers: Servers,
        loop: SimulatedLoop,
        weather: Weather,
        boundary: Callable[[str], Awaitable[None]] = _nowhere,
    ) -> None:
        self.host = host
        self.weather = weather
        self.cut = False
        self._servers = servers
        self._loop = loop
        self._boundary = boundary

    def backend(self) -> Backend:
        """The ports as this process sees them."""

        async def close() -> None:
            return

        ports: dict[str, Any] = {port: _Port(self, port) for port in PORTS}
        database = self._servers.database
        transactional = None if database is None else _Transactional(self, self._servers, database.transactional)
        return replace(
            self._servers.backend,
            **ports,
            signals=_Signals(self, self._servers),
            transactional=transactional,
            close=close,
        )

    async def call(self, port: Port, method: str, asked: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
        """Send one call through the weather. What has left arrives, whatever becomes of the process meanwhile."""
        await self._boundary(f"{port}.{method}.sent")
        self.live()
        loop, weather = self._loop, self.weather
        answer: asyncio.Future[Any] = loop.create_future()
        patience = weather.draw.uniform(0.1, 2.0)
        lost, late = weather.strikes("lost", weather.lost), weather.strikes("late", weather.late)
        now = loop.time()
        if lost or late:
            weather.note(port, now, now + patience)
            loop.call_later(patience, self._give_up, answer, context=OUTSIDE)
        if not lost:
            trip = patience + weather.draw.uniform(0.0, LATEST) if late else weather.trip()
            if trip > SLOW:
                weather.note(port, now, now + trip)
            loop.call_later(trip, self._arrive, answer, port, method, asked, named, context=OUTSIDE)
        got = await answer
        self.live()
        await self._boundary(f"{port}.{method}.heard")
        return got

    def _arrive(
        self, answer: asyncio.Future[Any], port: Port, method: str, asked: tuple[Any, ...], named: Mapping[str, Any]
    ) -> None:
        servers, weather = self._servers, self.weather
        if port in servers.away:
            self._loop.call_later(weather.draw.uniform(0.1, 2.0), self._give_up, answer, context=OUTSIDE)
            return
        try:
            got = servers.apply(self.host, port, method, asked, named)
            if weather.strikes("doubled", weather.doubled):
                got = servers.apply(self.host, port, method, asked, named)
        except Exception as error:  # noqa: BLE001 - whoever asked hears it; else the call would wait for ever
            if not isinstance(error, ValueError | BackendUnavailable):
                what = f"{port}.{method} raised {type(error).__name__}: {error}"
                servers.errors.append(Violation(invariant="port", what=what))
            self._settle(answer, servers.generation[port], port, error)
            return
        now = self._loop.time()
        if weather.strikes("reply_lost", weather.reply_lost):
            weather.note(port, now, now)
            self._loop.call_later(weather.draw.uniform(0.1, 2.0), self._give_up, answer, context=OUTSIDE)
            return
        trip = weather.trip()
        if trip > SLOW:
            weather.note(port, now, now + trip)
        self._loop.call_later(trip, self._settle, answer, servers.generation[port], port, got, context=OUTSIDE)

    def _settle(self, answer: asyncio.Future[Any], generation: int, port: Port, got: Any) -> None:
        if generation != self._servers.generation[port]:
            self._give_up(answer)
        elif not answer.done():
            if isinstance(got, Exception):
                answer.set_exception(got)
            else:
                answer.set_result(got)

    def _give_up(self, answer: asyncio.Future[Any]) -> None:
        if not answer.done():
            answer.set_exception(BackendUnavailable("no answer came"))

    def live(self) -> None:
        """`Crashed` in a dead process."""
        if self.cut:
            raise Crashed

    def publish(self, topic: str) -> None:
        """Lost, or delivered after a moment."""
        weather = self.weather
        if self.cut:
            return
        if weather.strikes("signals_lost", weather.signals_lost):
            weather.note("signals", self._loop.time(), self._loop.time())
        else:
            self._loop.call_later(
                weather.draw.expovariate(1 / weather.delay), self._servers.signals.publish, topic, context=OUTSIDE
            )


class _Port:
    """Any port: each of its methods is a call over the wire."""

    def __init__(self, wire: Wire, name: Port) -> None:
        self._wire = wire
        self._name = name

    def __getattr__(self, method: str) -> Any:
        async def call(*asked: Any, **named: Any) -> Any:
            return await self._wire.call(self._name, method, asked, named)

        setattr(self, method, call)
        return call


class _Signals:
    def __init__(self, wire: Wire, servers: Servers) -> None:
        self.publish = wire.publish
        self._servers = servers

    def subscribe(self, topic: str, wake: Wake) -> Callable[[], None]:
        """As it is: who listens is known at once."""
        return self._servers.signals.subscribe(topic, wake)


class _Transactional:
    """The steps in an application's own transaction, which talks to the database by itself; none of a dead process."""

    def __init__(self, wire: Wire, servers: Servers, real: TransactionalRecords) -> None:
        self._wire = wire
        self._servers = servers
        self._real = real

    def check_in(self, run: Execute, *, tenant: str, id: str, epoch: int) -> Gone | None:  # noqa: A002 - the port's word
        """See the port."""
        self._wire.live()
        return self._real.check_in(run, tenant=tenant, id=id, epoch=epoch)

    def finish_in(self, run: Execute, finish: Finish) -> Ended | Gone:
        """See the port."""
        self._wire.live()
        answer = self._real.finish_in(run, finish)
        self._servers.in_transaction(self._wire.host, "finish", finish, answer)
        return answer

    def enqueue_in(self, run: Execute, claim: Claim) -> EnqueueAnswer:
        """See the port."""
        self._wire.live()
        answer = self._real.enqueue_in(run, claim)
        self._servers.in_transaction(self._wire.host, "enqueue", claim, answer)
        return answer
