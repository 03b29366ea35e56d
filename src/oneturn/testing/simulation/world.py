"""The world of one run: several processes of the real runtime on shared servers, a nemesis, and what all of them saw."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from oneturn.core.ids import SeededIds
from oneturn.core.status import Status
from oneturn.core.steps import Abandon, Claim, Start
from oneturn.gate import Gate
from oneturn.runtime.settings import Settings
from oneturn.testing.evidence import Belief, Bounds, Evidence, Left, Step
from oneturn.testing.finals import finals_of, unfinished
from oneturn.testing.simulation.application import notes
from oneturn.testing.simulation.host import Host
from oneturn.testing.simulation.loop import SimulatedLoop, Stuck
from oneturn.testing.simulation.nemesis import Nemesis
from oneturn.testing.simulation.network import KINDS, Weather
from oneturn.testing.simulation.servers import Servers

SETTINGS = Settings(
    records="memory://",
    ttl=10,
    renew_every=3,
    margin=1,
    run_limit=40,
    check_every=2,
    sweep_every=3,
    grace=2,
    hard_deadline=5,
    queue_limit=4,
    worker_threads=2,
)


class World:
    """See the module. `without` names items of the plan that are left out: that is how a failure is shrunk."""

    def __init__(
        self,
        loop: SimulatedLoop,
        *,
        seed: int,
        hosts: int = 3,
        settings: Settings = SETTINGS,
        database: bool = False,
        without: frozenset[str] = frozenset(),
    ) -> None:
        self.loop = loop
        self.seed = seed
        self.settings = settings
        self.without = without
        self.ids = SeededIds(self.stream("ids").randrange(2**62))
        self.servers = Servers(loop, database=database)
        self.servers.watch = self._believers
        self.servers.seen = self._believed
        self.weather = self._weather()
        self.nemesis = Nemesis(self)
        self.evidence = Evidence(
            bounds=Bounds(
                ttl=settings.ttl,
                renew_every=settings.renew_every,
                margin=settings.margin,
                check_every=settings.check_every,
                sweep_every=settings.sweep_every,
                run_limit=settings.run_limit,
                hard_deadline=settings.hard_deadline,
            ),
            steps=self.servers.journal,
        )
        self.weather.incidents = self.evidence.incidents
        self.asked = self.admissions = 0
        self.declare: Callable[[Gate], None] = lambda gate: None  # noqa: ARG005
        self.hosts: list[Host] = []
        self.dead: list[Host] = []
        self._how_many = hosts
        self._number = 0

    def stream(self, name: str) -> random.Random:
        """Randomness of its own for each part, so that leaving one out changes the others as little as can be."""
        return random.Random(f"{self.seed}/{name}")  # noqa: S311 - reproducible on purpose

    def _weather(self) -> Weather:
        draw = self.stream("weather")
        severity = draw.choice((0.0, 0.3, 1.0, 1.0))
        weather = Weather(draw=draw)
        for kind in KINDS:
            setattr(weather, kind, 0.0 if f"network {kind}" in self.without else getattr(weather, kind) * severity)
        return weather

    # -- processes ----------------------------------------------------------------------------------------------------

    async def open(self) -> None:
        """Start the processes."""
        for _ in range(self._how_many):
            self.hosts.append(await self._start())

    async def _start(self) -> Host:
        host = Host(self, f"h{self._number}")
        self._number += 1
        self.declare(host.gate)
        await host.start()
        return host

    async def replace(self, host: Host) -> None:
        """A fresh process instead of one that has ended."""
        fresh = await self._start()
        self.dead.append(host)
        self.hosts[self.hosts.index(host)] = fresh

    def host_named(self, name: str) -> Host | None:
        """The process of this name, if it was not replaced."""
        return next((host for host in self.hosts if host.name == name), None)

    def handlers(self, host: Host) -> dict[str, Any]:
        """What a process has registered, by name."""
        return {name: handler.function for name, handler in host.gate._handlers.items()}  # noqa: SLF001 - as its own test would

    # -- who believes what --------------------------------------------------------------------------------------------

    def _believers(self, port: str, method: str, asked: Any) -> list[tuple[Host, Any, float]]:
        """Before a step that may end or outbid somebody: which attempts believe that they may go on."""
        if port == "leases" and method == "acquire":
            wanted = frozenset(asked)
            return [
                (host, execution, self._vouched(execution))
                for host, execution in self._executions()
                if wanted.intersection(execution.lease.grant.keys)
            ]
        dead = asked.id if isinstance(asked, Abandon) else asked.dead if isinstance(asked, Claim | Start) else None
        if dead is None:
            return []
        return [
            (host, execution, self._vouched(execution))
            for host, execution in self._executions()
            if execution.record.id == dead
        ]

    def _executions(self) -> list[tuple[Host, Any]]:
        return [
            (host, execution)
            for host in self.hosts
            if host.alive and host.gate.running
            for execution in host.process.executions.values()
            if execution.lease.stopping is None
        ]

    def _vouched(self, execution: Any) -> float:
        identity, turn = execution.record.identity, execution.record.id
        record = self.servers.look(self.servers.records.read(tenant=identity.tenant, id=turn))
        if record is None or record.status is not Status.RUNNING or record.epoch != execution.record.epoch:
            return -1.0
        return record.remaining

    def _believed(self, step: Step, kept: list[tuple[Host, Any, float]]) -> None:
        if not kept:
            return
        holders = self.servers.holders()
        self.evidence.beliefs.extend(
            Belief(
                step=step.seq,
                time=step.time,
                host=host.name,
                turn=execution.record.id,
                epoch=execution.record.epoch or 0,
                keys={key: holders.get(key, "") for key in execution.lease.grant.keys},
                owner=execution.lease.grant.owner,
                vouched=vouched,
            )
            for host, execution, vouched in kept
            if step.method != "acquire" or step.named["owner"] != execution.lease.grant.owner
        )

    # -- ends ---------------------------------------------------------------------------------------------------------

    async def heal(self) -> None:
        """From here on nothing is done to the system any more."""
        self.weather.calm()
        self.evidence.healed_at = self.loop.time()

    async def quiet(self, *, bound: float) -> bool:
        """Whether every record was final, and nobody worked any more, within `bound` seconds."""
        until = self.loop.time() + bound
        while self.loop.time() < until:
            servers = self.servers
            if not any(host.process.executions for host in self.hosts) and not servers.look(
                unfinished(servers.records, servers.scopes)
            ):
                return True
            await asyncio.sleep(1)
        return False

    def keys_left(self) -> None:
        """Nobody works: whoever still holds a key has forgotten it."""
        self.evidence.left += [
            Left(what="key", name=key, where=owner, when="idle") for key, owner in self.servers.holders().items()
        ]

    async def close(self) -> None:
        """End every process in good order, and see what stays behind."""
        for host in self.hosts:
            self.evidence.left += await host.drain()
        await asyncio.sleep(1)
        evidence = self.evidence
        for host in (*self.dead, *self.hosts):
            evidence.left += host.threads_left()
        mine = asyncio.current_task()
        evidence.left += [
            Left(what="task", name=name, where="", when="closed")
            for name in sorted(task.get_name() for task in asyncio.all_tasks(self.loop) if task is not mine)
        ]
        evidence.left += [
            Left(what="subscription", name=topic, where="", when="closed")
            for topic in sorted(self.servers.signals.topics)
        ]
        if self.servers.database is not None:
            evidence.fenced = notes(self.servers.database)
        evidence.finals = self.servers.look(finals_of(self.servers.records, self.servers.scopes))

    def give_up(self) -> None:
        """A run that broke off leaves work under way: end it here, or it ends whenever it is collected, in somebody else's run."""
        for host in (*self.dead, *self.hosts):
            host.cut_off()
        tasks = asyncio.all_tasks(self.loop)
        for task in tasks:
            task.cancel()
        if tasks:
            with suppress(Stuck):
                self.loop.run_until_complete(asyncio.wait(tasks, timeout=60))

    @property
    def faults(self) -> int:
        """All that were done: planned ones, and calls that the network hit."""
        return self.nemesis.struck + self.weather.faults
