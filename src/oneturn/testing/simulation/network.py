"""The network between a host and the stores: delays, losses, late and doubled deliveries, and outages."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from oneturn.core.backend import Backend
from oneturn.core.errors import BackendUnavailable
from oneturn.core.signals import Signals, Wake
from oneturn.testing.link import Crashed
from oneturn.testing.simulation.loop import SimulatedLoop


@dataclass(slots=True)
class Weather:
    """How bad the network is; all probabilities are per call."""

    lost: float = 0.02
    """The request never arrives."""
    reply_lost: float = 0.02
    """It was applied, nobody hears of it."""
    late: float = 0.01
    """It is applied after the caller gave up."""
    doubled: float = 0.02
    """It is delivered twice."""
    delay: float = 0.02
    """Seconds, the mean of most calls."""
    slow: float = 0.01
    """The share of calls that take a hundred times as long."""
    signals_lost: float = 0.1
    away: set[str] = field(default_factory=set)
    """Ports that answer nobody now."""
    faults: int = 0
    """How many calls were hit so far."""

    def calm(self) -> None:
        """Heal everything."""
        self.lost = self.reply_lost = self.late = self.doubled = self.slow = self.signals_lost = 0.0
        self.away.clear()


class Wire:
    """One host's connections. `cut` kills it: whatever it still calls raises `Crashed`."""

    def __init__(self, backend: Backend, loop: SimulatedLoop, weather: Weather) -> None:
        self._backend = backend
        self._loop = loop
        self.weather = weather
        self.cut = False
        self.late: set[asyncio.Task[Any]] = set()

    def backend(self) -> Backend:
        """The ports as this host sees them."""

        async def close() -> None:
            return

        return replace(
            self._backend,
            leases=_Port(self, "leases", self._backend.leases),
            records=_Port(self, "records", self._backend.records),
            replay=_Port(self, "replay", self._backend.replay),
            signals=_Signals(self, self._backend.signals),
            close=close,
        )

    async def call(self, port: str, step: Callable[[], Any]) -> Any:
        """Send one call through the weather."""
        if self.cut:
            raise Crashed
        draw, weather = self._loop.random, self.weather
        if port in weather.away or draw.random() < weather.lost:
            return await self._unheard(None)
        await asyncio.sleep(self._delay())
        if draw.random() < weather.late:
            return await self._unheard(step)
        answer = await step()
        if draw.random() < weather.doubled:
            weather.faults += 1
            answer = await step()
        await asyncio.sleep(self._delay())
        if self.cut:
            raise Crashed
        if draw.random() < weather.reply_lost:
            return await self._unheard(None)
        return answer

    async def _unheard(self, step: Callable[[], Any] | None) -> Any:
        self.weather.faults += 1
        if step is not None:
            task = self._loop.create_task(self._later(step))
            self.late.add(task)
            task.add_done_callback(self.late.discard)
        await asyncio.sleep(self._loop.random.uniform(0.1, 2.0))
        if self.cut:
            raise Crashed
        raise BackendUnavailable("no answer came")

    async def _later(self, step: Callable[[], Any]) -> None:
        await asyncio.sleep(self._loop.random.uniform(0.0, 5.0))
        await step()

    def _delay(self) -> float:
        mean = self.weather.delay * (100 if self._loop.random.random() < self.weather.slow else 1)
        return self._loop.random.expovariate(1 / mean)


class _Port:
    def __init__(self, wire: Wire, name: str, port: Any) -> None:
        self._wire = wire
        self._name = name
        self._port = port

    def __getattr__(self, method: str) -> Any:
        real = getattr(self._port, method)

        async def call(*arguments: Any, **named: Any) -> Any:
            return await self._wire.call(self._name, lambda: real(*arguments, **named))

        return call


class _Signals:
    def __init__(self, wire: Wire, signals: Signals) -> None:
        self._wire = wire
        self._signals = signals

    def publish(self, topic: str) -> None:
        """Lost, or delivered after a moment."""
        loop, weather = self._wire._loop, self._wire.weather  # noqa: SLF001 - one noun, two classes
        if self._wire.cut or loop.random.random() < weather.signals_lost:
            weather.faults += 1
            return
        loop.call_later(loop.random.expovariate(1 / weather.delay), self._signals.publish, topic)

    def subscribe(self, topic: str, wake: Wake) -> Callable[[], None]:
        """As it is."""
        return self._signals.subscribe(topic, wake)
