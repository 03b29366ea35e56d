"""One seed, from the first step to the last: open, storm, heal, let everything end, ask everything once more, close, judge."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from oneturn.core import failpoint
from oneturn.runtime.settings import Settings
from oneturn.testing.checker import check
from oneturn.testing.evidence import Evidence, Violation
from oneturn.testing.model import conform
from oneturn.testing.simulation.loop import WALL, SimulatedLoop
from oneturn.testing.simulation.network import KINDS
from oneturn.testing.simulation.shape import SHAPES, Shape
from oneturn.testing.simulation.workload import LAST_KEY, TENANTS, Question, Workload
from oneturn.testing.simulation.world import SETTINGS, World

WITH_DATABASE = 10
"""One seed in so many keeps its records in an SQLite file, with an application's own table beside them."""
LAST = 20
"""Lines of the trace that are told of a failure."""
LONGER = 1.3
"""The last fault begins so many times as late as the last client comes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What one seed gave."""

    seed: int
    violations: tuple[Violation, ...]
    admissions: int
    """Decided ones: started, queued, attached, replayed or refused."""
    faults: int
    hosts: int
    steps: int
    boundaries: dict[str, int]
    """How often each failpoint, and each end of a call, was reached."""
    plan: tuple[str, ...]
    """What was done, line by line; what can be left out has a name, before its colon."""
    trace: tuple[str, ...]
    """The decision log in short (virtual seconds, process, what, turn, epoch): equal for equal seeds."""
    evidence: Evidence = field(repr=False)

    @property
    def items(self) -> list[str]:
        """The names of what can be left out (`without`)."""
        return [name for name, colon, _ in (line.partition(":") for line in self.plan) if colon]


Judge = Callable[[Evidence], Sequence[Violation]]


def judge(evidence: Evidence) -> list[Violation]:
    """By the checker's invariants, and by the model: each step that a store applied is one that the model allows."""
    kinds = {incident.kind for incident in evidence.incidents}
    return [
        *check(evidence),
        *conform(
            evidence.steps,
            # A replica that takes over brings back keys with the times that they had.
            clock_may_jump=not kinds.isdisjoint(("clock jump", "rolled back")),
            keys_may_vanish=not kinds.isdisjoint(("emptied", "evicted", "rolled back")),
        ),
    ]


def run_seed(seed: int, *, without: frozenset[str] = frozenset(), judge: Judge = judge) -> Run:
    """Run one seed, leaving out the plan's items named by `without`."""
    with simulated(seed, database=seed % WITH_DATABASE == 0, without=without) as world:
        return told(world, world.loop.run_until_complete(_run(world)), judge)


@contextmanager
def simulated(
    seed: int, *, database: bool = False, without: frozenset[str] = frozenset(), settings: Settings = SETTINGS
) -> Iterator[World]:
    """A world on a loop of its own, with its nemesis at every boundary."""
    loop = SimulatedLoop(seed)
    asyncio.set_event_loop(loop)
    world = World(loop, seed=seed, database=database, without=without, settings=settings)
    before = failpoint.install(world.nemesis.boundary)
    try:
        yield world
    finally:
        failpoint.install(before)
        world.give_up()
        world.servers.close()
        asyncio.set_event_loop(None)
        loop.close()


def told(world: World, plan: Sequence[str], judge: Judge = judge) -> Run:
    """What a world gave that has come to its end."""
    return Run(
        seed=world.seed,
        violations=(*world.servers.errors, *judge(world.evidence)),
        admissions=world.admissions,
        faults=world.faults,
        hosts=world._number,  # noqa: SLF001 - one package
        steps=world.loop.steps,
        boundaries=world.nemesis.boundaries,
        plan=(*plan, *network(world)),
        trace=tuple(
            f"{d.time - WALL:.6f} s {d.process} {d.event} {d.execution} {d.epoch}" for d in world.evidence.decisions
        ),
        evidence=world.evidence,
    )


def network(world: World) -> list[str]:
    """What the network did, as items of the plan."""
    hits = world.weather.hits
    return [f"network {kind}: {hits[kind]} times" for kind in KINDS if kind in hits]


async def _run(world: World) -> list[str]:
    settings = world.settings
    shape = world.stream("shape").choice(SHAPES)
    workload = Workload(world, shape)
    world.declare = workload.declare
    await world.open()
    clients = {name: act for name, act in workload.clients().items() if name not in world.without}
    faults = [
        fault
        for fault in world.nemesis.plan(most=shape.faults, length=LONGER * shape.spread)
        if fault.name not in world.without
    ]
    storm = world.loop.create_task(world.nemesis.run(faults))
    await asyncio.gather(*(act() for act in clients.values()))
    await storm
    await world.heal()
    healed = world.loop.time()
    await world.quiet(bound=2 * settings.run_limit + 4 * settings.ttl)
    # Keys of the dead, and of those who had released them before a replica took over, lapse; later, if a clock was set back.
    jumped = any(incident.kind == "clock jump" for incident in world.evidence.incidents)
    await asyncio.sleep(max(healed + (1 + jumped) * settings.ttl + settings.margin - world.loop.time(), 0))
    await _ask_again(world, workload, shape)
    await world.quiet(bound=settings.run_limit + settings.ttl)
    await asyncio.sleep(1)
    world.keys_left()
    await world.close()
    return [*(str(fault) for fault in faults), *(f"{name}:" for name in clients)]


async def _ask_again(world: World, workload: Workload, shape: Shape) -> None:
    """Every scope serves a fresh question; whatever was told before is told again, by any process."""
    draw, bound = world.stream("final"), world.settings.ttl + 1

    async def fresh(tenant: str, scope: str) -> None:
        began = world.loop.time()
        question = Question(tenant=tenant, subject="u", scope=scope, key=LAST_KEY, text="last")
        told = await workload.ask(question, draw, final=True)
        slow = world.loop.time() - began > bound + 1  # which is more than the work itself takes
        if told is None or told.word != "succeeded" or slow:
            world.evidence.unserved.append(f"{tenant}/{scope}: {told.word if told else None}")

    await asyncio.gather(*(fresh(tenant, scope) for tenant in TENANTS for scope in shape.scopes))
    for question in tuple(workload.succeeded):
        await workload.ask(question, draw, final=True)
