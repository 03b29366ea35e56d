"""The real runtime under a seeded scheduler: `run_seed(seed)` is one run, repeatable bit for bit."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from oneturn.testing.simulation.check import Violation, check
from oneturn.testing.simulation.loop import SimulatedLoop
from oneturn.testing.simulation.world import World

__all__ = ["Run", "Violation", "run_seed"]

_CLIENTS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What one seed gave."""

    seed: int
    violations: tuple[Violation, ...]
    admissions: int
    faults: int
    steps: int
    trace: tuple[str, ...]
    """The decision log in short: equal for equal seeds."""


def run_seed(seed: int) -> Run:
    """Run one seed from the first to the last step."""
    loop = SimulatedLoop(seed)
    asyncio.set_event_loop(loop)
    try:
        world = World(loop)
        loop.run_until_complete(world.run(clients=_CLIENTS))
        decisions = world.saw.decisions
        return Run(
            seed=seed,
            violations=tuple(check(world)),
            admissions=sum(decision.event in ("started", "queued", "replayed") for decision in decisions),
            faults=world.saw.faults,
            steps=loop.steps,
            trace=tuple(f"{d.time:.6f} {d.process} {d.event} {d.execution} {d.epoch}" for d in decisions),
        )
    finally:
        asyncio.set_event_loop(None)
        loop.close()
