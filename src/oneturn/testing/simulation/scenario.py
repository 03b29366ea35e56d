"""A scenario: a user's client against a simulated world. It begins again when the storm interrupts it, as a client would."""

from __future__ import annotations

import asyncio
import functools
import inspect
import random
import traceback
from collections.abc import Awaitable, Callable
from typing import Any, NoReturn

from pydantic import TypeAdapter

from oneturn.core.errors import BackendUnavailable, ConfigurationError, Refused, ResultUnavailable, Stopped, TurnFailed
from oneturn.core.status import StopReason
from oneturn.gate import Gate
from oneturn.runtime.declaration import Declaration, declaration_of
from oneturn.testing.evidence import Entry, Incident
from oneturn.testing.harness import Harness
from oneturn.testing.simulation.client import ClientGate, Work
from oneturn.testing.simulation.host import Dropped, Host
from oneturn.testing.simulation.loop import LANE, LoopClock, SimulatedLoop, lane_context
from oneturn.testing.simulation.network import OUTSIDE
from oneturn.testing.simulation.world import World

Scenario = Callable[[Harness], Awaitable[object]]

CLIENT = "client"
"""The lane of the scenario, and of the tasks that it makes."""
TRIES = 4
"""How often it is run while the storm goes on."""
LONGEST = 20
"""How many run limits it may take."""


class NoScenario(ConfigurationError):
    """What was given as the scenario is none; the message says what to write."""


class NotEnded(TimeoutError):
    """The scenario went on for longer than it may; the message says for how long, and where it was."""


class SimulatedHarness(Harness):
    """The harness over a world: `gate` is a live process, drawn from the seed; another one once that is dead."""

    def __init__(self, world: World, *, works: dict[Work, Work], did: list[str]) -> None:
        self._world = world
        self._works = works
        self._did = did
        self._draw = world.stream("client")
        self._host = self._draw.choice(world.hosts)
        self._deaths: list[asyncio.Task[None]] = []
        super().__init__(world.servers.backend, clock=LoopClock(world.loop), settings=world.settings)
        self.decisions = world.evidence.decisions

    def _new_gate(self) -> Gate:
        return ClientGate(self._pick, works=self._works, asking=self._asking)

    def _pick(self) -> Host:
        if not _live(self._host):
            self._host = self._another() or self._host
        return self._host

    def _another(self) -> Host | None:
        others = [host for host in self._world.hosts if _live(host) and host is not self._host]
        return self._draw.choice(others) if others else None

    def move(self) -> None:
        """Go to another process, if one is there."""
        self._host = self._another() or self._host

    def turn(self, name: str, **options: Any) -> NoReturn:
        """Handlers are given to `simulate`."""
        raise ConfigurationError(f"give the handler {name!r} to simulate(scenario, handler, …), not {sorted(options)}")

    def _asking(self) -> None:
        self._world.asked += 1

    async def another(self) -> Gate:
        """A live process that is not the current one."""
        other = self._another()
        if other is None:
            raise Dropped
        return ClientGate(lambda: other, works=self._works, asking=self._asking)

    async def crash(self) -> None:
        """Kill the current process as `kill -9` would; another one takes over, and a fresh one begins."""
        host = self._pick()
        if _live(host):
            # Whoever leaves meanwhile leaves a killed process behind that still is replaced.
            death = self._world.loop.create_task(self._die(host), context=OUTSIDE.copy())
            self._deaths.append(death)
            await asyncio.shield(death)

    async def _die(self, host: Host) -> None:
        if not _live(host):
            return  # somebody was faster, and replaces it
        began = self._world.loop.time()
        self._did.append(f"the scenario killed {host.name} at {began:.2f} s")
        await host.kill()
        incident = Incident(kind="kill", target=host.name, time=began, until=self._world.loop.time())
        self._world.evidence.incidents.append(incident)
        await self._world.replace(host)

    async def elapse(self, seconds: float) -> None:
        """Let virtual time pass; everything else goes on."""
        await asyncio.sleep(seconds)

    async def buried(self) -> None:
        """Wait until every process that was killed here has been replaced."""
        await asyncio.gather(*self._deaths)


def _live(host: Host) -> bool:
    return host.alive and host.open


class Player:
    """Runs a scenario against a world."""

    def __init__(self, world: World, scenario: Scenario, handlers: tuple[Work, ...]) -> None:
        self._world = world
        self._scenario = scenario
        self.raised: dict[str, None] = {}
        """What handlers raised that no client is shown: a sentence each, in the order in which it first was."""
        self._results: dict[str, TypeAdapter[Any]] = {}
        self.threads: list[tuple[str, str]] = []
        """Who is in a worker thread now: the process, and the handler's name."""
        self._works = {handler: self._recorded(handler) for handler in handlers}
        self._declared = [(self._works[handler], declared(handler)) for handler in handlers]
        self._mine: list[asyncio.Task[Any]] = []
        self.did: list[str] = []
        """What was done here, of which nothing can be left out."""
        self.run_limit = max(
            declaration.options.get("run_limit") or world.settings.run_limit for _, declaration in self._declared
        )
        """Seconds: the longest of the handlers'."""
        self.ended = False
        """It returned, was told an end that a storm may bring, or failed."""
        self.error: BaseException | None = None
        """What fails the seed."""
        self.cut: BaseException | None = None
        """The end that a storm may bring: the scenario did not get further."""

    @property
    def asked(self) -> bool:
        """Whether a turn was asked: of a gate, or of the engine within it."""
        return self._world.asked > 0 or any(decision.execution for decision in self._world.evidence.decisions)

    def declare(self, gate: Gate) -> None:
        """The handlers, as their user's gate has them."""
        for work, declaration in self._declared:
            gate.turn(declaration.name, **declaration.options)(work)
            self._results[declaration.name] = gate.handler(work).result

    def _recorded(self, function: Work) -> Work:
        """The same work, which also writes down how it was entered, and what it raised that its client is not shown."""
        name, world, threads = declared(function).name, self._world, self.threads

        def enter(turn: Any) -> None:
            entry = Entry(turn=turn.id, epoch=turn.epoch, host=world.loop.host(), time=world.loop.time())
            world.evidence.entries.append(entry)

        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def on_the_loop(turn: Any) -> Any:
                enter(turn)
                try:
                    return self._answered(name, await function(turn))
                except Exception as error:
                    self._left(function, turn, error)
                    raise

            return on_the_loop

        @functools.wraps(function)
        def in_a_thread(turn: Any) -> Any:
            enter(turn)
            threads.append(me := (world.loop.host(), name))
            try:
                return self._answered(name, function(turn))
            except Exception as error:
                self._left(function, turn, error)
                raise
            finally:
                threads.remove(me)

        return in_a_thread

    def _left(self, function: Work, turn: Any, error: Exception) -> None:
        # What is raised after a stop is no failure, and a `TurnFailed` is the handler's own word to its client.
        if turn.stopping is None and not isinstance(error, Stopped | TurnFailed):
            what = f"{type(error).__qualname__}: {_line(error)}".removesuffix(": ")
            self.raised[f"the handler {declared(function).name!r} raised {what} (at {place(error, function)})"] = None

    def _answered(self, name: str, value: Any) -> Any:
        try:
            self._results[name].dump_json(value, warnings="error")
        except Exception as error:  # noqa: BLE001 - the runtime judges it; here it is only told
            self.raised[f"the handler {name!r} returned what its annotation does not allow: {_line(error)}"] = None
        return value

    async def play(self, draw: random.Random, *, start: float) -> None:
        """From `start` seconds on, until it has ended, or `TRIES` times."""
        self._world.loop.set_task_factory(self._task)  # type: ignore[arg-type]
        self._harness = SimulatedHarness(self._world, works=self._works, did=self.did)
        await asyncio.sleep(start)
        for _ in range(TRIES):
            await self.once()
            if self.ended:
                return
            await asyncio.sleep(draw.expovariate(0.5))
            self._harness.move()

    async def once(self, *, last: bool = False) -> None:
        """Run it from its beginning. The last time nothing is an excuse any more."""
        loop = self._world.loop
        self.did.append(f"the scenario began at {loop.time():.2f} s")
        context = lane_context(CLIENT)
        playing = loop.create_task(self._bounded(), context=context, name="scenario")
        await asyncio.wait([playing])
        self.error = self.cut = None
        error = _error_of(playing)
        self.ended = True
        if error is not None:
            traceback.clear_frames(error.__traceback__)  # what its frames hold would stay open
            if ends(error):
                self.cut = error
            elif interrupted(error) and not last:
                self.ended = False
            else:
                self.error = error
        await self._clear()

    async def _bounded(self) -> None:
        playing, longest = self._begun(), LONGEST * self.run_limit
        try:
            async with asyncio.timeout(longest) as bound:
                await playing
        except TimeoutError as error:
            if not bound.expired():
                raise  # one of its own
            waited = place(error.__cause__ or error, self._scenario)
            raise NotEnded(
                f"the scenario did not end within {longest:g} virtual seconds (it was at {waited})"
            ) from error

    def _begun(self) -> Awaitable[object]:
        name = named(self._scenario)
        wanted = f"write the scenario as `async def {name}(h: Harness)`"
        try:
            playing = self._scenario(self._harness)
        except Exception as error:  # that of a coroutine function is raised later, when it is awaited
            raise NoScenario(f"{wanted}: the call {name}(h) raised {type(error).__qualname__}: {error}") from error
        if not inspect.isawaitable(playing):
            raise NoScenario(f"{wanted}: the call {name}(h) gave {playing!r}, which cannot be awaited")
        return playing

    def _task(self, loop: SimulatedLoop, coro: Any, **options: Any) -> asyncio.Task[Any]:
        task = asyncio.Task(coro, loop=loop, **options)
        if options.get("context") is None and LANE.get() == CLIENT:
            self._mine.append(task)
        return task

    async def _clear(self) -> None:
        """A client that has gone takes its tasks with it."""
        mine, self._mine = [task for task in self._mine if not task.done()], []
        for task in mine:
            task.cancel()
        await asyncio.gather(*mine, return_exceptions=True)
        await self._harness.buried()


def named(function: Callable[..., Any]) -> str:
    """What to call it by in a message."""
    return str(getattr(function, "__name__", repr(function)))


def declared(handler: Work) -> Declaration:
    """As it was declared on any gate; else under its own name. ConfigurationError if it is no function."""
    if not callable(handler):
        raise ConfigurationError(
            f"{handler!r} is no handler: give the function itself, simulate(scenario, handler, …), not its name"
        )
    if (declaration := declaration_of(handler)) is not None:
        return declaration
    if not hasattr(handler, "__name__"):
        raise ConfigurationError(f"{handler!r} has no name: declare it with gate.turn(name)(…), or give a function")
    return Declaration(name=handler.__name__, options={})


def _error_of(task: asyncio.Task[Any]) -> BaseException | None:
    return asyncio.CancelledError() if task.cancelled() else task.exception()


def _leaves(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for inner in error.exceptions for leaf in _leaves(inner)]
    return [error]


def interrupted(error: BaseException) -> bool:
    """Whether a client would try again later."""
    return all(
        isinstance(leaf, BackendUnavailable | Dropped | TimeoutError)
        or (isinstance(leaf, Refused) and leaf.retry_after is not None)
        for leaf in _leaves(error)
    )


def ends(error: BaseException) -> bool:
    """Whether it says that a turn fell victim to a storm: asked again it would say the same."""
    leaves = _leaves(error)
    victims = [leaf for leaf in leaves if _victim(leaf)]
    return bool(victims) and all(_victim(leaf) or interrupted(leaf) for leaf in leaves)


def _victim(error: BaseException) -> bool:
    if isinstance(error, ResultUnavailable):
        return error.why == "abandoned"
    return isinstance(error, Stopped) and error.reason is not StopReason.CANCELLED


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())


def place(error: BaseException, function: Callable[..., Any]) -> str:
    """Where it was raised; and from where in the function's own file, if that is another."""
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return "nowhere"
    code = getattr(inspect.unwrap(function), "__code__", None)
    own = [frame for frame in frames if code is not None and frame.filename == code.co_filename]
    return ", from ".join(dict.fromkeys(f"{frame.filename}:{frame.lineno}" for frame in (frames[-1], *own[-1:])))
