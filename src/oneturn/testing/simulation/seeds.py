"""Seeds of a user's scenario: each is one storm over the user's own handlers; the first that fails is shrunk and told."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from oneturn.core.errors import ConfigurationError
from oneturn.gate import Gate
from oneturn.runtime.settings import Settings
from oneturn.testing.simulation.run import LAST, Run, simulated, told
from oneturn.testing.simulation.scenario import NoScenario, NotEnded, Player, Scenario, declared, named
from oneturn.testing.simulation.shrink import shrink
from oneturn.testing.simulation.world import SETTINGS, World

LENGTHS = (0.0, 3.0, 3.0, 10.0, 10.0, 40.0)
"""Virtual seconds in which faults begin: a short scenario would miss most of a long storm. 0: a calm day, without any."""
FAULTS = 10
"""At most so many in a storm."""
ENOUGH = 10
"""From so many seeds on, a scenario that never came to its end has shown nothing."""


class SimulationFailed(AssertionError):
    """A seed broke an invariant or an assertion of the scenario's; the message says what, why, and how to run it again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Played:
    """One seed, with some items of its plan left out."""

    run: Run
    error: BaseException | None
    cut: BaseException | None
    asked: bool
    """Whether the scenario asked any turn."""
    handlers: tuple[str, ...]
    """What handlers did wrong, a sentence each."""

    @property
    def signs(self) -> set[str]:
        """What failed, in short; empty if nothing did."""
        signs = {violation.invariant for violation in self.run.violations}
        return signs if self.error is None else {*signs, type(self.error).__qualname__}

    @property
    def what(self) -> list[str]:
        """What failed, a line each."""
        violations = [f"{violation.invariant}: {violation.what}" for violation in self.run.violations]
        error = self.error
        raised = (
            f"{error}" if isinstance(error, NotEnded) else f"the scenario raised {type(error).__qualname__}: {error}"
        )
        return [*([] if error is None else [raised]), *self.handlers, *violations]


def simulate(
    scenario: Scenario,
    *handlers: Callable[..., Any],
    seeds: int = 100,
    base: int = 1,
    settings: Settings | None = None,
    reset: Callable[[], object] | None = None,
) -> None:
    """Run a scenario against your handlers in a simulated world, once per seed; raises `SimulationFailed` if one fails.

    `handlers`: declared on a gate of yours (name and options are taken from there, the gate is not opened), or plain
    functions. `seeds`: how many, from `base` on. `settings`: of the simulated processes; the stores are simulated whatever
    they name. `reset`: called before each run, to put back what your handlers keep outside of their turns.
    ConfigurationError: what was given cannot be run.
    """
    if seeds < 1 or not handlers:
        raise ConfigurationError("simulate(scenario, handler, …, seeds=…) needs at least a handler and a seed")
    if not callable(scenario):
        raise ConfigurationError(
            f"{scenario!r} is no scenario: give the function itself, simulate(scenario, handler, …)"
        )
    _refuse_a_running_loop()
    chosen = (settings or SETTINGS).model_copy(update={"leases": None})
    gate = Gate(chosen)  # says at once, and in its own words, what cannot be declared
    for handler in handlers:
        declaration = declared(handler)
        gate.turn(declaration.name, **declaration.options)(handler)

    def play(seed: int, without: frozenset[str] = frozenset()) -> _Played:
        if reset is not None:
            reset()
        return _play(seed, scenario, handlers, settings=chosen, without=without)

    more = {"settings": settings, "reset": reset}
    names = [named(function) for function in (scenario, *handlers)]
    options = [f"{name}=..." for name, given in more.items() if given is not None]
    cuts: list[BaseException] = []
    asked = False
    with _silence():
        for seed in range(base, base + seeds):
            played = play(seed)
            if played.signs:
                again = ", ".join((*names, "seeds=1", f"base={seed}", *options))
                raise SimulationFailed(_told(played, _shrunk(play, played), f"simulate({again})")) from played.error
            asked = asked or played.asked
            cuts += [played.cut] if played.cut is not None else []
    if not asked:
        raise SimulationFailed(
            f"the scenario asked no turn in any of {seeds} seeds, so it shows nothing: await h.gate.ask(handler, …) in it"
        )
    if len(cuts) == seeds >= ENOUGH:
        raise SimulationFailed(
            f"the scenario came to its end in none of {seeds} seeds, so it shows nothing: {cuts[-1]!r} each time or the like; "
            'catch it where it may happen, or declare recovery="rerun"'
        ) from cuts[-1]


def _refuse_a_running_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise ConfigurationError("simulate runs event loops of its own: call it from a plain `def test_…`")


def _play(
    seed: int,
    scenario: Scenario,
    handlers: tuple[Callable[..., Any], ...],
    *,
    settings: Settings,
    without: frozenset[str],
) -> _Played:
    with simulated(seed, without=without, settings=settings) as world:
        player = Player(world, scenario, handlers)
        plan = world.loop.run_until_complete(_storm(world, player))
        if isinstance(player.error, NoScenario):
            raise player.error
        return _Played(
            run=told(world, plan),
            error=player.error,
            cut=player.cut,
            asked=player.asked,
            handlers=(*player.raised, *_endless(world, player)),
        )


def _endless(world: World, player: Player) -> Iterator[str]:
    """Of the threads that were left: who is in them."""
    where = {left.where for left in world.evidence.left if left.what == "thread"}
    for host, name in player.threads:
        if host in where:
            yield f"the handler {name!r} was still in its thread at {host}: it neither asks turn.check() nor ends"


async def _storm(world: World, player: Player) -> list[str]:
    """Open, storm, heal, let everything end, close."""
    draw, quiet = world.stream("scenario"), 2 * player.run_limit + 4 * world.settings.ttl
    length = draw.choice(LENGTHS)
    planned = world.nemesis.plan(most=FAULTS, length=length) if length else []
    faults = [fault for fault in planned if fault.name not in world.without]
    if not length:
        world.weather.calm()
    world.declare = player.declare
    await world.open()
    await asyncio.gather(world.nemesis.run(faults), player.play(draw, start=draw.uniform(0, length / 2)))
    await world.heal()
    await world.quiet(bound=quiet)
    if not player.ended:
        await player.once(last=True)
        await world.quiet(bound=quiet)
    await asyncio.sleep(_until_free(world))
    world.keys_left()
    await world.close()
    return [*player.did, *map(str, faults)]


def _until_free(world: World) -> float:
    """Seconds after the last execution in which its keys are free: soon, or by their TTL if anything was done to anybody."""
    if not world.faults and not world.evidence.incidents:
        return 1.0
    jumps = sum(incident.kind == "clock jump" for incident in world.evidence.incidents)  # each back by a TTL at most
    return (1 + jumps) * world.settings.ttl + world.settings.margin


def _shrunk(play: Callable[[int, frozenset[str]], _Played], played: _Played) -> _Played:
    """The same failure with as little of the plan as it needs."""
    smallest = played

    def fails(without: frozenset[str]) -> bool:
        nonlocal smallest
        again = play(played.run.seed, without)
        if again.signs.isdisjoint(played.signs):
            return False
        smallest = again
        return True

    shrink(fails, played.run.items)
    return smallest


def _told(played: _Played, small: _Played, again: str) -> str:
    def block(lines: list[str] | tuple[str, ...]) -> str:
        return "".join(f"    {line}\n" for line in lines)

    return (
        f"seed {played.run.seed} failed\n{block(played.what)}"
        f"what was done (shrunk from {len(played.run.plan)} to {len(small.run.plan)} lines):\n{block(small.run.plan)}"
        f"the last decisions then (virtual seconds, process, what, turn, epoch):\n{block(small.run.trace[-LAST:])}"
        f"again: {again}"
    )


@contextmanager
def _silence() -> Iterator[None]:
    """What a storm makes the library log, and asyncio of a killed process's tasks, is no news."""
    levels = {logger: logger.level for logger in map(logging.getLogger, ("oneturn", "asyncio"))}
    for logger in levels:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in levels.items():
            logger.setLevel(level)
