"""The nemesis: what is done to processes and servers, planned from the seed, item by item, so that a plan can be shrunk."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from oneturn.testing.evidence import Incident
from oneturn.testing.simulation.loop import LANE, host_of
from oneturn.testing.simulation.network import OUTSIDE
from oneturn.testing.simulation.servers import Port

if TYPE_CHECKING:
    from oneturn.testing.simulation.host import Host
    from oneturn.testing.simulation.world import World

Kind = Literal[
    "kill",
    "pause",
    "block",
    "drain",
    "kill here",
    "pause here",
    "drain here",
    "outage",
    "restart",
    "emptied",
    "rolled back",
    "evicted",
    "clock jump",
    "revoked",
]

FAULTS: tuple[Kind, ...] = ("kill", *get_args(Kind))
"""What seeds draw from. "here": at a boundary (a failpoint, a call's two ends) of whoever gets there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One planned fault: what, when (virtual seconds), and a stream of its own for the rest."""

    name: str
    kind: Kind
    at: float
    seed: str

    def __str__(self) -> str:
        return f"{self.name}: {self.kind} at {self.at:.2f} s"


@dataclass(slots=True)
class Armed:
    """A fault that waits for the n-th boundary from now."""

    kind: str
    countdown: int
    draw: random.Random


class Nemesis:
    """Carries out the plan."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._armed: list[Armed] = []
        self._tasks: dict[asyncio.Task[None], None] = {}
        self.boundaries: dict[str, int] = {}
        """How often each was reached."""
        self.struck = 0
        """How many faults had an effect: one that found nothing to strike is none, and excuses nothing."""

    def plan(self, *, most: int, length: float) -> list[Fault]:
        """What this seed does, in order of time."""
        draw = self._world.stream("plan")
        faults = [
            Fault(
                name=f"fault {number}",
                kind=draw.choice(FAULTS),
                at=draw.uniform(0.5, length),
                seed=f"{self._world.seed}/fault {number}",
            )
            for number in range(draw.randrange(3, most + 1))
        ]
        return sorted(faults, key=lambda fault: fault.at)

    async def run(self, faults: list[Fault]) -> None:
        """Strike at each fault's time, and return when the last one is over."""
        loop = self._world.loop
        for fault in faults:
            await asyncio.sleep(max(fault.at - loop.time(), 0))
            self._begin(self._strike(fault.kind, random.Random(fault.seed)))  # noqa: S311 - reproducible on purpose
        while self._tasks:
            await asyncio.wait(list(self._tasks))
        self._armed.clear()

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._world.loop.create_task(work, context=OUTSIDE.copy())
        self._tasks[task] = None
        task.add_done_callback(lambda ended: self._tasks.pop(ended, None))

    async def _strike(self, kind: Kind, draw: random.Random) -> None:
        host = self._somebody(draw)
        match kind:
            case "kill here" | "pause here" | "drain here":
                self._armed.append(
                    Armed(kind=kind.removesuffix(" here"), countdown=int(draw.expovariate(0.03)) + 1, draw=draw)
                )
            case "kill" | "pause" | "drain":
                await self._do(kind, host, draw)
            case "block":
                await self._freeze(kind, host, host.lanes[:1], draw)
            case _:
                await self._at_a_server(kind, draw)

    def _somebody(self, draw: random.Random) -> Host:
        """Rather one that has work: an idle process hardly minds."""
        hosts = self._world.hosts
        busy = [host for host in hosts if host.alive and host.gate.running and host.process.executions]
        return draw.choice(busy if busy and draw.random() < 0.7 else hosts)  # noqa: PLR2004 - mostly

    # -- processes ----------------------------------------------------------------------------------------------------

    async def _do(self, kind: str, host: Host, draw: random.Random) -> None:
        if kind == "pause":
            await self._freeze(kind, host, host.lanes, draw)
        elif host.alive and host.open:
            began = self._world.loop.time()
            if kind == "kill":
                await host.kill()
            else:
                self._world.evidence.left += await host.drain()
            self._note(kind, host.name, began)
            await asyncio.sleep(draw.uniform(0, 3))
            await self._world.replace(host)

    async def _freeze(self, kind: Any, host: Host, lanes: tuple[str, ...], draw: random.Random) -> None:
        loop, began = self._world.loop, self._world.loop.time()
        loop.pause(*lanes)
        await asyncio.sleep(self._world.settings.ttl * draw.uniform(0.3, 2.5))
        loop.resume(*lanes)
        self._note(kind, host.name, began)

    async def boundary(self, name: str) -> None:
        """Whoever gets here may be the one that an armed fault waits for."""
        if self._world.servers.looking:
            return
        self.boundaries[name] = self.boundaries.get(name, 0) + 1
        if not self._armed or not (lane := LANE.get()):
            return
        armed = self._armed[0]
        armed.countdown -= 1
        host = self._world.host_named(host_of(lane))
        if armed.countdown > 0 or host is None or not (host.alive and host.open):
            return
        self._armed.pop(0)
        if armed.kind == "pause":
            # From here on: whoever runs this is stopped before its next step.
            self._begin(self._do("pause", host, armed.draw))
            await asyncio.sleep(0)
        elif armed.kind == "kill":
            self._begin(self._do("kill", host, armed.draw))
            await self._world.loop.create_future()  # it never comes back from here
        else:
            self._begin(self._do("drain", host, armed.draw))

    # -- servers ------------------------------------------------------------------------------------------------------

    async def _at_a_server(self, kind: Kind, draw: random.Random) -> None:
        servers, began = self._world.servers, self._world.loop.time()
        port: Port = draw.choice(("leases", "leases", "records", "replay"))
        match kind:
            case "outage":
                servers.leave(port)
                long = draw.random() < 0.3  # noqa: PLR2004 - some outlast every voucher
                ttl = self._world.settings.ttl
                lasts = draw.uniform(0.6 * ttl, 3 * ttl) if long else draw.uniform(0.5, 6)
                await asyncio.sleep(lasts)
                servers.come_back(port)
                self._note(kind, port, began)
            case "restart":
                await self._restart(port, draw)
            case "rolled back":
                take_over = servers.snapshot()
                await asyncio.sleep(draw.uniform(0.2, 5))
                began, held = self._world.loop.time(), dict(servers.entries())
                servers.restart("leases")
                take_over()
                self._note("rolled back" if servers.entries() != held else "restart", "leases", began)
            case "clock jump":
                clock = servers.clocks[draw.choice(("leases", "records"))]
                jump = self._world.settings.ttl * draw.uniform(-1.0, 2.0)
                clock.offset += jump
                clock.wall_offset += jump
                self._note(kind, "leases" if clock is servers.clocks["leases"] else "records", began)
            case _:
                self._at_the_keys(kind, draw)

    async def _restart(self, port: Port, draw: random.Random) -> None:
        servers, began = self._world.servers, self._world.loop.time()
        servers.leave(port)
        servers.restart(port)
        await asyncio.sleep(draw.uniform(0.05, 2))
        if port == "leases" and draw.random() < 0.5:  # noqa: PLR2004 - half of them come back empty
            self._at_the_keys("emptied", draw)
        servers.come_back(port)
        self._note("restart", port, began)

    def _at_the_keys(self, kind: Kind, draw: random.Random) -> None:
        servers = self._world.servers
        keys = sorted(servers.entries())
        if not keys:
            return
        if kind == "emptied":
            servers.entries().clear()
        elif kind == "evicted":
            del servers.entries()[draw.choice(keys)]
        else:
            named = {"mark_for": self._world.settings.ttl}
            servers.apply("operator", "leases", "revoke", (draw.choice(keys),), named)
        self._note(kind, "leases", self._world.loop.time())

    def _note(self, kind: Any, target: str, began: float) -> None:
        self.struck += 1
        self._world.evidence.incidents.append(
            Incident(kind=kind, target=target, time=began, until=self._world.loop.time())
        )
