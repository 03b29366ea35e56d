"""The state of the modelled world: one immutable value, and what it is bounded by."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from oneturn.testing.model.leases import Keys
from oneturn.testing.model.records import NONE, Scope

ACQUIRE, CLAIM, LOOK, RUN, FINISH, RELEASE, OVER = "acquire", "claim", "look", "run", "finish", "release", "over"
"""Where an attempt stands. OVER: given back, but a renewal of it is still on its way."""
REST: Final = 1000
"""The instant of the great rest: everything that lapses has lapsed."""


class Call(NamedTuple):
    """A call on its way: sent (no answer yet), or answered and not yet heard of."""

    op: str
    asked_at: int
    answer: str = ""
    """The word of the answer."""
    about: int = NONE


class Attempt(NamedTuple):
    """One acquisition in one process, from its first call to its end. Idle processes are not in the state."""

    owner: str
    request: int
    starting: bool
    """It takes a record from the queue, rather than a client's message."""
    phase: str = ACQUIRE
    keys: tuple[int, ...] = ()
    until: int = 0
    """The local deadline; 0: lost, or not yet granted."""
    epoch: int = 0
    asked_at: int = NONE
    """When it first sent its claim: a repeated one is told the same, and prolongs nothing."""
    token: int = 0
    read: int = NONE
    dead: int = NONE
    alive: int = NONE
    status: str = ""
    """How it ends."""
    entered: bool = False
    cancelled: bool = False
    checked: bool = False
    """For the switch that checks first and commits later."""
    beats: int = 0
    """How many renewals and vouchers it may still send."""
    call: Call | None = None
    beat: Call | None = None


class Message(NamedTuple):
    """A request whose sender gave up, and which may still be applied."""

    op: str
    attempt: Attempt


class Look(NamedTuple):
    """What a sweeper saw at its first look."""

    number: int
    epoch: int
    alive_until: float
    at: int
    free: bool = False
    """At its second look the request key was free: it goes on to abandon."""


class Budget(NamedTuple):
    """What may still go wrong, or be wished."""

    asks: tuple[int, ...]
    """By request: how often its client still sends it."""
    stops: int = 0
    cancels: int = 0
    crashes: int = 0
    losses: int = 0
    """Requests or replies that are lost."""
    lates: int = 0
    """Requests that are applied after their sender gave up."""
    emptied: int = 0
    """How often the lock service loses all keys."""
    evicted: int = 0
    """… or one."""


class State(NamedTuple):
    """Everything: the clock, both services, the processes, the network, and what clients were told."""

    now: int
    budget: Budget
    keys: Keys
    """The request keys by number, then the scope's."""
    scope: Scope
    entered: tuple[int, ...]
    """By request: how often the work was entered."""
    told: tuple[str, ...]
    """By request: "", "admitted", or how it ended."""
    attempts: tuple[Attempt, ...] = ()
    net: tuple[Message, ...] = ()
    look: Look | None = None
    token: int = 0
    """The lock service's number; counted only where a switch believes in it."""


class Move(NamedTuple):
    """One step of somebody: what it is called, what it leads to, and a write of the application's own, if it made one."""

    label: tuple[str | int, ...]
    after: State
    wrote: tuple[int, int] | None = None
    """(execution, epoch) of an accepted write."""


Moves = Iterator[Move]


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """The bounds of one exploration."""

    name: str
    budget: Budget
    workers: int = 2
    """How many attempts may be under way at once."""
    ttl: int = 2
    ticks: int = 3
    beats: int = 0
    """Renewals and vouchers of one attempt."""
    events: int = 0
    """Events of one attempt."""
    writes: bool = False
    """Whether the work writes into tables of its own, under the fence."""
    slow: bool = False
    """Whether time may pass between the sending, the applying and the hearing of acquire, claim and renewals."""
    sweeper: bool = False
    """Whether a sweeper looks before the great rest."""
    rerun: tuple[bool, ...] = (False, False, False)
    """By request: whether its handler declares it."""
    reject: bool = False
    """What happens to a message whose conversation is busy: refused, else queued."""

    @property
    def requests(self) -> int:
        """How many there are."""
        return len(self.budget.asks)

    def initial(self) -> State:
        """Nothing has happened yet."""
        requests = self.requests
        return State(
            now=0,
            budget=self.budget,
            keys=(None,) * (requests + 1),
            scope=Scope((None,) * requests),
            entered=(0,) * requests,
            told=("",) * requests,
        )


def put_attempt(state: State, attempt: Attempt) -> State:
    """The state with this attempt as it is now, or with it as a new one. They stand in the order of their owners."""
    others = [other for other in state.attempts if other.owner != attempt.owner]
    return state._replace(attempts=tuple(sorted([*others, attempt])))


def drop_attempt(state: State, attempt: Attempt) -> State:
    """The state without it."""
    return state._replace(attempts=tuple(other for other in state.attempts if other.owner != attempt.owner))


def fresh_owner(state: State) -> str:
    """The first name that occurs nowhere: as good as a random one, and it keeps the space finite."""
    used = {attempt.owner for attempt in state.attempts}
    used.update(message.attempt.owner for message in state.net)
    used.update(key.owner for key in state.keys if key is not None)
    used.update(row.owner for row in state.scope.rows if row is not None)
    return next(name for name in "abcdefghij" if name not in used)
