"""The world of one run: several hosts of the real runtime on one store, a nemesis, clients, and what all of them saw."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from oneturn.backends.memory import MemoryLeases, memory_backend
from oneturn.core.decision import Decision
from oneturn.core.errors import BackendUnavailable, ConfigurationError, Refused, ResultUnavailable, Stopped, TurnFailed
from oneturn.core.identity import Principal
from oneturn.core.ids import SeededIds
from oneturn.gate import Gate, Handle
from oneturn.runtime.settings import Settings
from oneturn.runtime.turn import Turn
from oneturn.testing.link import Crashed
from oneturn.testing.simulation.loop import HOST, LoopClock, SimulatedLoop
from oneturn.testing.simulation.network import Weather, Wire

SETTINGS = Settings(
    records="memory://",
    ttl=10,
    renew_every=3,
    margin=1,
    run_limit=40,
    check_every=2,
    sweep_every=3,
    grace=0,
    hard_deadline=5,
    queue_limit=3,
)


class Ask(BaseModel):
    """A simulated message."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """The work was entered: by whom, under which right, and with which history."""

    turn: str
    epoch: int
    host: str
    time: float
    history: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a client was told about one key."""

    tenant: str
    scope: str
    key: str
    sent: str
    word: str
    turn: str = ""
    body: str = ""


@dataclass(slots=True)
class Saw:
    """Everything that was observed from outside; the checker reads it."""

    entries: list[Entry] = field(default_factory=list)
    told: list[Told] = field(default_factory=list)
    read: dict[str, list[list[int]]] = field(default_factory=dict)
    """Turn → the event ids that each reader was given, in order."""
    decisions: list[Decision] = field(default_factory=list)
    held: list[str] = field(default_factory=list)
    """Keys that were held when everything had ended."""
    faults: int = 0


class Host:
    """One process: a gate on the shared store, behind a wire of its own."""

    def __init__(self, world: World, name: str) -> None:
        self.name = name
        self._world = world
        self.wire = Wire(world.backend, world.loop, world.weather)
        self.gate = Gate(
            SETTINGS,
            backend=self.wire.backend(),
            clock=world.clock,
            ids=world.ids,
            decisions=world.saw.decisions.append,
            keeper_on="loop",
        )
        self.handlers = {name: world.declare(self.gate, name) for name in ("abandon", "rerun")}

    async def open(self) -> None:
        """Start it: everything that it does from here on carries its name."""

        async def begin() -> None:
            HOST.set(self.name)
            await self.gate.__aenter__()

        await asyncio.get_running_loop().create_task(begin())

    async def kill(self) -> None:
        """As `kill -9`."""
        self.wire.cut = True
        process = self.gate.engine.process
        self._world.loop.resume(self.name)
        await process.supervisor.close()
        process.pool.close()


class World:
    """See the module."""

    def __init__(self, loop: SimulatedLoop, *, hosts: int = 3) -> None:
        self.loop = loop
        self.clock = LoopClock(loop)
        self.ids = SeededIds(loop.random.randrange(2**62))
        self.backend = memory_backend(clock=self.clock)
        self.weather = Weather()
        self.saw = Saw()
        self._number = hosts
        self.hosts = [Host(self, f"h{number}") for number in range(hosts)]

    def declare(self, gate: Gate, name: str) -> Callable[..., Any]:
        """A handler whose answer tells what it was asked, and that writes down how it was entered."""
        loop, saw = self.loop, self.saw

        async def work(turn: Turn[Ask]) -> str:
            history = tuple(message.turn for message in await turn.history(limit=1000))
            host = HOST.get()
            entry = Entry(turn=turn.id, epoch=turn.epoch, host=host, time=loop.time(), history=history)
            saw.entries.append(entry)
            for number in range(loop.random.randrange(4)):
                await asyncio.sleep(loop.random.expovariate(1.0))
                turn.check()
                turn.text(f"{number} ")
            return f"answer to {turn.payload.text}"

        gate.turn(name, client_may=("reject",), recovery=name)(work)  # type: ignore[arg-type]
        return work

    # -- clients ------------------------------------------------------------------------------------------------------

    async def client(self, number: int) -> None:
        """Asks, asks again, asks other things under the same key, cancels, watches; from changing hosts."""
        draw = self.loop.random
        await asyncio.sleep(draw.uniform(0, 30))
        tenant, scope, key = draw.choice(("a", "b")), draw.choice(("s", "t")), f"k{draw.randrange(12)}"
        sent = f"{key}" if draw.random() < 0.9 else f"other {number}"  # noqa: PLR2004 - a tenth reuses the key
        for _ in range(6):
            if await self.ask(tenant=tenant, scope=scope, key=key, sent=sent):
                return
            await asyncio.sleep(draw.expovariate(0.5))

    async def ask(self, *, tenant: str, scope: str, key: str, sent: str, patient: bool = False) -> bool:  # noqa: PLR0911 - one per outcome
        """One attempt; True if its answer was final."""
        draw, host = self.loop.random, self.loop.random.choice(self.hosts)
        told = self._teller(tenant, scope, key, sent)
        try:
            handle = await host.gate.ask(
                host.handlers["rerun" if key.endswith("3") else "abandon"],
                Ask(text=sent),
                conversation=scope,
                key=key,
                principal=Principal(tenant=tenant, subject="u"),
                on_busy="reject" if key.endswith("5") else "enqueue",
            )
            if patient:
                return told(handle, await handle.result())
            if draw.random() < 0.15:  # noqa: PLR2004 - so many change their mind
                await asyncio.sleep(draw.expovariate(1.0))
                await handle.cancel()
            if draw.random() < 0.5:  # noqa: PLR2004 - half of them watch
                return await self._watch(handle, told)
            return told(handle, await handle.result(wait=draw.uniform(0, 60)))
        except (Crashed, asyncio.CancelledError, BackendUnavailable, ConfigurationError, TimeoutError):
            return False  # its host died, is closed, or did not answer: ask again
        except Stopped as stopped:
            return told(handle, stopped.reason.value, word="stopped")
        except TurnFailed as failed:
            return told(handle, failed.code, word="failed")
        except Refused as refused:
            told(None, refused.reason, word="refused")
            return refused.reason == "key-reused"
        except ResultUnavailable as gone:
            return told(None, gone.turn, word="unavailable")

    def _teller(self, tenant: str, scope: str, key: str, sent: str) -> Callable[..., bool]:
        def tell(handle: Handle[Any] | None, body: str, *, word: str = "succeeded") -> bool:
            self.saw.told.append(
                Told(
                    tenant=tenant,
                    scope=scope,
                    key=key,
                    sent=sent,
                    word=word,
                    turn=handle.id if handle else "",
                    body=body,
                )
            )
            return True

        return tell

    async def _watch(self, handle: Handle[Any], told: Callable[..., bool]) -> bool:
        seen: list[int] = []
        self.saw.read.setdefault(handle.id, []).append(seen)
        async with asyncio.timeout(120):
            while True:
                async for event in handle.events(after=seen[-1] if seen else 0):
                    seen.append(event.id)
                    if event.kind == "succeeded":
                        return told(handle, event.data["result"])
                    if event.kind in ("failed", "stopped", "abandoned"):
                        return True
                    if self.loop.random.random() < 0.1:  # noqa: PLR2004 - the stream drops
                        break

    # -- the nemesis --------------------------------------------------------------------------------------------------

    async def nemesis(self) -> None:
        """Kills, pauses, empties and cuts off, for as long as the clients are at work."""
        draw = self.loop.random
        for _ in range(draw.randrange(3, 9)):
            await asyncio.sleep(draw.uniform(0.5, 8))
            self.saw.faults += 1
            fault = draw.choice((self._kill, self._pause, self._empty, self._evict, self._outage))
            await fault()

    async def _kill(self) -> None:
        place = self.loop.random.randrange(len(self.hosts))
        await self.hosts[place].kill()
        self._number += 1
        self.hosts[place] = Host(self, f"h{self._number}")
        await self.hosts[place].open()

    async def _pause(self) -> None:
        host = self.loop.random.choice(self.hosts)
        self.loop.pause(host.name)
        await asyncio.sleep(SETTINGS.ttl * self.loop.random.uniform(0.3, 2.5))
        self.loop.resume(host.name)

    def _keys(self) -> dict[str, Any]:
        leases = self.backend.leases
        assert isinstance(leases, MemoryLeases)  # noqa: S101 - the simulated store is the reference
        return leases._keys._entries  # noqa: SLF001 - the nemesis sits inside of the server

    async def _empty(self) -> None:
        self._keys().clear()

    async def _evict(self) -> None:
        keys = sorted(self._keys())
        if keys:
            del self._keys()[self.loop.random.choice(keys)]

    async def _outage(self) -> None:
        port = self.loop.random.choice(("leases", "records"))
        self.weather.away.add(port)
        await asyncio.sleep(self.loop.random.uniform(0.5, 6))
        self.weather.away.discard(port)

    # -- one run ------------------------------------------------------------------------------------------------------

    async def run(self, *, clients: int) -> None:
        """Open, storm, heal, let everything end, ask every scope once more, and close."""
        for host in self.hosts:
            await host.open()
        storm = asyncio.get_running_loop().create_task(self.nemesis())
        await asyncio.gather(*(self.client(number) for number in range(clients)))
        await storm
        self.saw.faults += self.weather.faults
        self.weather.calm()
        await asyncio.sleep(4 * (SETTINGS.run_limit + SETTINGS.ttl))
        for tenant in ("a", "b"):
            for scope in ("s", "t"):
                await self.ask(tenant=tenant, scope=scope, key="last", sent="last", patient=True)
        await asyncio.sleep(2)
        now = self.clock.monotonic()
        self.saw.held.extend(key for key, entry in self._keys().items() if entry.owner and entry.until > now)
        await asyncio.sleep(SETTINGS.run_limit + 3 * SETTINGS.ttl)
        for host in self.hosts:
            await host.gate.__aexit__(None, None, None)
