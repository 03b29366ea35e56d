"""The servers of a simulated world: the stores that all processes share, their clocks, and a journal of every step."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Literal, TypeVar, cast

from oneturn.backends.memory import MemoryLeases, MemoryReplays, MemorySignals, memory_backend
from oneturn.core.granting import Entry
from oneturn.core.lease import Grant
from oneturn.core.steps import Claim
from oneturn.core.store import RecordStore
from oneturn.testing.evidence import Step, Violation
from oneturn.testing.simulation.database import Database, DatabaseClock
from oneturn.testing.simulation.loop import SimulatedLoop

T = TypeVar("T")

Port = Literal["records", "leases", "replay"]
PORTS: tuple[Port, ...] = ("records", "leases", "replay")

Watch = Callable[[str, str, Any], Any]
"""Called before a step (port, method, asked); what it answers is kept until after the step."""


class Servers:
    """The reference stores behind one server each, with a clock of its own. A step is applied at once, or not at all."""

    def __init__(
        self,
        loop: SimulatedLoop,
        *,
        database: bool = False,
        clock: Callable[[SimulatedLoop], DatabaseClock] = DatabaseClock,
    ) -> None:
        self._loop = loop
        self.clocks = {port: clock(loop) for port in PORTS}
        # The reference backend, with each port on the clock of its own server.
        parts = {port: memory_backend(clock=self.clocks[port]) for port in PORTS}
        self.backend = parts["records"]
        self.database = Database(self.clocks["records"]) if database else None
        """Where records live with an application's own rows; None: in memory, alone."""
        self.records: RecordStore = parts["records"].records if self.database is None else self.database.records
        self.leases = cast("MemoryLeases", parts["leases"].leases)
        self.replay = cast("MemoryReplays", parts["replay"].replay)
        self.signals = cast("MemorySignals", parts["leases"].signals)
        self.away: dict[str, int] = {}
        """Ports that answer nobody now."""
        self.generation = dict.fromkeys(PORTS, 0)
        """Grows with each restart: an answer of a generation before never leaves."""
        self.journal: list[Step] = []
        self.scopes: dict[tuple[str, str], None] = {}
        """(tenant, scope) of all that was ever claimed."""
        self.looking = False
        """An outsider looks: no step of anybody, no failpoint."""
        self.errors: list[Violation] = []
        """What a store raised though its port does not say so."""
        self._uncommitted: list[tuple[str, str, Any, Any]] = []
        self.watch: Watch = lambda port, method, asked: None  # noqa: ARG005
        self.seen: Callable[[Step, Any], None] = lambda step, kept: None  # noqa: ARG005

    def close(self) -> None:
        """Leave nothing on the disk."""
        if self.database is not None:
            self.database.close()

    def apply(self, host: str, port: Port, method: str, asked: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
        """Take one step of a store, now, and write it down."""
        value = asked[0] if asked else None
        keys = _keys_of(value, named) if port == "leases" else ()
        before = self._holders(keys) if keys else {}
        kept = self.watch(port, method, value)
        answer = drive(getattr(getattr(self, port), method)(*asked, **named))
        after = self._holders(keys) if keys else {}
        self._write_down(host, port, method, value, named, answer, before, after, kept)
        return answer

    def _write_down(
        self,
        host: str,
        port: Port,
        method: str,
        asked: Any,
        named: Mapping[str, Any],
        answer: Any,
        before: Mapping[str, str],
        after: Mapping[str, str],
        kept: Any,
    ) -> None:
        if isinstance(asked, Claim):
            self.scopes[asked.identity.tenant, asked.identity.scope] = None
        step = Step(
            seq=len(self.journal) + 1,
            time=self._loop.time(),
            host=host,
            port=port,
            method=method,
            asked=asked,
            named=named,
            answer=answer,
            before=before,
            after=after,
        )
        self.journal.append(step)
        self.seen(step, kept)

    def look(self, read: Coroutine[Any, Any, T]) -> T:
        """Read something of a store from outside of the world."""
        self.looking = True
        try:
            return cast("T", drive(read))
        finally:
            self.looking = False

    # -- steps in an application's own transaction --------------------------------------------------------------------

    def in_transaction(self, host: str, method: str, asked: Any, answer: Any) -> None:
        """A step that will have been taken once the application commits."""
        self._uncommitted.append((host, method, asked, answer))

    def committed(self) -> None:
        """The application's transaction is durable, and so are the steps in it."""
        for host, method, asked, answer in self._uncommitted:
            self._write_down(host, "records", method, asked, {}, answer, {}, {}, None)
        self._uncommitted.clear()

    def rolled_back(self) -> None:
        """They never were."""
        self._uncommitted.clear()

    # -- what happens to servers --------------------------------------------------------------------------------------

    def leave(self, port: str) -> None:
        """Answer nobody until as many `come_back`s."""
        self.away[port] = self.away.get(port, 0) + 1

    def come_back(self, port: str) -> None:
        """See `leave`."""
        if self.away.get(port, 0) > 1:
            self.away[port] -= 1
        else:
            self.away.pop(port, None)

    def restart(self, port: Port) -> None:
        """Whoever has asked and was not answered yet never will be."""
        self.generation[port] += 1

    def entries(self) -> dict[str, Entry]:
        """The lock service's keys, as it stores them."""
        return self.leases._keys._entries  # noqa: SLF001 - whoever calls sits inside of the server

    def snapshot(self) -> Callable[[], None]:
        """A replica of the lock service as it is now; calling the answer makes that replica the primary."""
        keys, copy, token = self.leases._keys, dict(self.entries()), self.leases._keys._token  # noqa: SLF001

        def take_over() -> None:
            keys._entries.clear()  # noqa: SLF001
            keys._entries.update(copy)  # noqa: SLF001
            keys._token = token  # noqa: SLF001 - it hands out the same numbers again

        return take_over

    def holders(self) -> dict[str, str]:
        """Key → owner, of all that are held."""
        return self._holders(tuple(self.entries()))

    def _holders(self, keys: tuple[str, ...]) -> dict[str, str]:
        now, entries = self.clocks["leases"].monotonic(), self.entries()
        held = {key: entries[key] for key in keys if key in entries}
        return {key: entry.owner for key, entry in held.items() if entry.owner and entry.until > now}


def drive(step: Any) -> Any:
    """Run a coroutine that never waits."""
    try:
        step.send(None)
    except StopIteration as over:
        return over.value
    step.close()
    raise RuntimeError("a step of a simulated server waited for something")


def _keys_of(asked: Any, named: Mapping[str, Any]) -> tuple[str, ...]:
    if isinstance(asked, Grant):
        return asked.keys
    if isinstance(asked, str):
        return (asked,)
    if asked and isinstance(asked[0], Grant):
        return tuple(key for grant in asked for key in grant.keys)
    return tuple(asked or named.get("keys", ()))
