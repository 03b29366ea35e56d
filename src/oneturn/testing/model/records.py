"""What the record store decides: each step is a pure function of one scope, written from the design, not from the code."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, NamedTuple

from oneturn.testing.model.switches import Switch

QUEUED, RUNNING, SUCCEEDED, STOPPED, ABANDONED = "queued", "running", "succeeded", "stopped", "abandoned"
OPEN: Final = frozenset({QUEUED, RUNNING})
"""The states that are not final."""
CLAIMED, ENQUEUED, EXISTING, BUSY, LAPSED, FULL = "claimed", "enqueued", "existing", "busy", "lapsed", "full"
GONE, ENDED, REQUEUED, APPENDED, VOUCHED = "gone", "ended", "requeued", "appended", "vouched"
MAX_ATTEMPTS: Final = 3
NONE: Final = -1
"""No record."""


class Row(NamedTuple):
    """A record, as far as the protocol looks at it."""

    status: str
    sequence: int
    """Its place in the conversation, from 1."""
    rerun: bool = False
    """Whether its handler declared that it may be started again."""
    epoch: int = 0
    """0: it has none."""
    owner: str = ""
    alive_until: float = 0.0
    attempts: int = 0
    last_seq: int = 0
    terminal: int = 0
    """How many terminal events its log has."""
    context: int = 0
    """How many answers it was given to build upon."""
    body: Hashable = b""


class Scope(NamedTuple):
    """A scope's row and its records, by number; None: not yet there."""

    rows: tuple[Row | None, ...]
    epoch: int = 0
    holder: int = NONE
    """The execution that the epoch was claimed for; nobody, once that was ended."""
    sequence: int = 0
    answers: tuple[int, ...] = ()
    """The executions whose answers were accepted, in the order of their commits."""

    def queue(self) -> list[int]:
        """Those that wait, oldest first."""
        waiting = [(row.sequence, number) for number, row in enumerate(self.rows) if row and row.status == QUEUED]
        return [number for _, number in sorted(waiting)]

    def running(self) -> int:
        """The one that runs."""
        return next((number for number, row in enumerate(self.rows) if row and row.status == RUNNING), NONE)


class Moment(NamedTuple):
    """The instant of a step on the store's clock. `lapses`: what the clock is taken to say, whatever it says."""

    now: float
    ttl: float = 0.0
    lapses: bool | None = None

    def lapsed(self, row: Row) -> bool:
        """Whether nobody vouches for a running row any more."""
        return row.alive_until <= self.now if self.lapses is None else self.lapses


class Ask(NamedTuple):
    """A claim or a start."""

    number: int
    owner: str
    dead: int = NONE
    alive: int = NONE
    reject: bool = False
    queue_limit: int = 8
    rerun: bool = False
    sequence: int | None = None
    """A turn that is asked again has its target's."""
    again: bool = False
    """It is the very claim that brought the record."""
    token: int = 0
    """The lock service's number, for a switch that believes in it."""
    read: int = NONE
    """How many answers were read before, for a switch that does so."""


class Answer(NamedTuple):
    """What a step says: its word, whom it is about, and a number (place, last event, limit, whether it happened here)."""

    word: str
    about: int = NONE
    value: int = 0


Outcome = tuple[Scope, Answer]


def claim(scope: Scope, ask: Ask, at: Moment, wrong: Switch | None = None) -> Outcome:
    """Admit a message: look the key up, see who is in the way, queue or begin. All under the scope's row."""
    known = None if wrong is Switch.CLAIM_UNSEEN else _known(scope, ask)
    if known is not None:
        return scope, known
    scope, in_the_way = _occupied(scope, ask, at, wrong)
    if in_the_way == LAPSED:
        return scope, Answer(LAPSED, scope.running())
    queue = [] if wrong is Switch.QUEUE_SKIPPED else scope.queue()
    busy = scope.running() if in_the_way else next(iter(queue), NONE)
    if busy != NONE:
        if ask.reject:
            return scope, Answer(BUSY, busy)
        if len(queue) >= ask.queue_limit:
            return scope, Answer(FULL, NONE, ask.queue_limit)
    scope = insert(scope, ask)
    if busy == NONE:
        return begin(scope, ask, at, wrong), Answer(CLAIMED, ask.number)
    scope = put(scope, ask.number, last_seq=1)
    return scope, Answer(ENQUEUED, ask.number, scope.queue().index(ask.number) + 1)


def enqueue(scope: Scope, ask: Ask, at: Moment) -> Outcome:
    """Admit a message in the application's own transaction: it waits, whatever runs; its start is a step of its own."""
    known = _known(scope, ask)
    if known is not None:
        return scope, known
    number, queue = scope.running(), scope.queue()
    row = scope.rows[number] if number != NONE else None
    busy = number if row is not None and not at.lapsed(row) else next(iter(queue), NONE)
    if busy != NONE and ask.reject:
        return scope, Answer(BUSY, busy)
    if busy != NONE and len(queue) >= ask.queue_limit:
        return scope, Answer(FULL, NONE, ask.queue_limit)
    scope = put(insert(scope, ask), ask.number, last_seq=1)
    return scope, Answer(ENQUEUED, ask.number, scope.queue().index(ask.number) + 1)


def _known(scope: Scope, ask: Ask) -> Answer | None:
    row = scope.rows[ask.number]
    if row is None:
        return None
    if row.status == RUNNING and ask.owner and row.owner == ask.owner:
        return Answer(CLAIMED, ask.number)
    if row.status == QUEUED and ask.again:
        return Answer(ENQUEUED, ask.number, scope.queue().index(ask.number) + 1)
    return Answer(EXISTING, ask.number)


def start(scope: Scope, ask: Ask, at: Moment, wrong: Switch | None = None) -> Outcome:
    """Turn the oldest waiting record into a running one."""
    row = scope.rows[ask.number]
    if row is not None and row.status == RUNNING and row.owner == ask.owner:
        return scope, Answer(CLAIMED, ask.number)
    if row is None or row.status != QUEUED:
        return scope, Answer(GONE, ask.number)
    scope, in_the_way = _occupied(scope, ask, at, wrong)
    if in_the_way == LAPSED:
        return scope, Answer(LAPSED, scope.running())
    first = scope.queue()[0]
    if in_the_way or (first != ask.number and wrong is not Switch.QUEUE_SKIPPED):
        return scope, Answer(BUSY, scope.running() if in_the_way else first)
    return begin(scope, ask, at, wrong), Answer(CLAIMED, ask.number)


def _occupied(scope: Scope, ask: Ask, at: Moment, wrong: Switch | None) -> tuple[Scope, str]:
    """Whether a running record is in the way ("", BUSY, LAPSED: perhaps); one known to be dead is ended here."""
    number = scope.running()
    row = scope.rows[number] if number != NONE else None
    if row is None:
        return scope, ""
    if not at.lapsed(row) or number == ask.alive:
        return scope, BUSY
    if number != ask.dead:
        return scope, LAPSED
    return end_dead(scope, number, wrong), ""


def insert(scope: Scope, ask: Ask) -> Scope:
    """A new record, as yet waiting."""
    sequence = scope.sequence if ask.sequence is not None else scope.sequence + 1
    old = scope.rows[ask.number]  # there is one only where a switch does not look
    row = Row(QUEUED, ask.sequence or sequence, ask.rerun, attempts=old.attempts if old else 0)
    rows = tuple(row if number == ask.number else other for number, other in enumerate(scope.rows))
    return scope._replace(rows=rows, sequence=sequence)


def begin(scope: Scope, ask: Ask, at: Moment, wrong: Switch | None = None) -> Scope:
    """Raise the epoch and read the context, in one commit."""
    row = scope.rows[ask.number]
    assert row is not None  # noqa: S101 - it was inserted, or waits
    epoch = scope.epoch + 1
    if wrong is Switch.LOCK_SERVICE_FENCE:
        epoch = ask.token
    elif wrong is Switch.LATE_EPOCH:
        epoch = 0
    context = ask.read if wrong is Switch.CONTEXT_BEFORE_LOCK and ask.read != NONE else len(scope.answers)
    scope = put(
        scope,
        ask.number,
        status=RUNNING,
        epoch=epoch,
        owner=ask.owner,
        alive_until=at.now + at.ttl,
        attempts=row.attempts + 1,
        last_seq=row.last_seq + 1,
        context=context,
    )
    if wrong is Switch.LATE_EPOCH:
        return scope
    return scope._replace(epoch=epoch, holder=ask.number)


def append(scope: Scope, number: int, *, epoch: int, after: int, count: int, wrong: Switch | None = None) -> Outcome:
    """Log events after `after`; those that are logged already are skipped."""
    row = scope.rows[number]
    if row is None:
        return scope, Answer(GONE, number)
    if (row.status != RUNNING or row.epoch != epoch) and wrong is not Switch.EVENT_AFTER_END:
        return scope, Answer(GONE, number)
    scope = _logged(scope, number, after=after, count=count)
    return scope, Answer(APPENDED, number, _row(scope, number).last_seq)


def fenced(scope: Scope, number: int, epoch: int) -> bool:
    """The fence: the scope's row still names this execution and its epoch."""
    return scope.epoch == epoch and scope.holder == number


def finish(
    scope: Scope,
    number: int,
    *,
    epoch: int,
    status: str,
    body: Hashable = b"",
    after: int | None = None,
    count: int = 0,
    wrong: Switch | None = None,
) -> Outcome:
    """End it from within, under the fence. The same finish again is told what it did."""
    row = scope.rows[number]
    if row is None:
        return scope, Answer(GONE, number)
    if epoch and row.status not in OPEN and (row.epoch, row.status, row.body) == (epoch, status, body):
        if wrong is Switch.TERMINAL_TWICE:
            scope = put(scope, number, last_seq=row.last_seq + 1, terminal=row.terminal + 1)
        return scope, Answer(ENDED, number, 0)
    if wrong is Switch.LATE_EPOCH:
        scope = put(scope._replace(epoch=scope.epoch + 1), number, epoch=scope.epoch + 1)
    elif not fenced(scope, number, epoch) and wrong is not Switch.CHECK_THEN_COMMIT:
        return scope, Answer(GONE, number)
    scope = _logged(scope, number, after=row.last_seq if after is None else after, count=count)
    scope = end(scope, number, status=status, body=body)
    if status == SUCCEEDED:
        scope = scope._replace(answers=(*scope.answers, number))
    return scope._replace(holder=NONE), Answer(ENDED, number, 1)


def stop(scope: Scope, number: int, *, body: Hashable = b"", wrong: Switch | None = None) -> Outcome:
    """End it from outside: a running one loses its epoch in the same commit."""
    row = scope.rows[number]
    if row is None:
        return scope, Answer(GONE, number)
    if row.status not in OPEN:
        return scope, Answer(ENDED, number, 0)
    if row.status == RUNNING and wrong is not Switch.STOP_KEEPS_EPOCH:
        scope = scope._replace(epoch=scope.epoch + 1, holder=NONE)
    return end(scope, number, status=STOPPED, body=body), Answer(ENDED, number, 1)


def abandon(
    scope: Scope, number: int, *, epoch: int, alive_until: float, at: Moment, wrong: Switch | None = None
) -> Outcome:
    """End what nobody has vouched for since it was looked at."""
    row = scope.rows[number]
    if row is None or row.status != RUNNING or row.epoch != epoch:
        return scope, Answer(GONE, number)
    if wrong is not Switch.VOUCHERS_IGNORED and (row.alive_until != alive_until or not at.lapsed(row)):
        return scope, Answer(GONE, number)
    scope = end_dead(scope, number, wrong)
    return scope, Answer(REQUEUED if _row(scope, number).status == QUEUED else ENDED, number, 1)


def end_dead(scope: Scope, number: int, wrong: Switch | None = None) -> Scope:
    """Its executor is gone: it waits again where that was declared, else it is abandoned. The epoch is raised."""
    row = _row(scope, number)
    scope = scope._replace(epoch=scope.epoch + 1, holder=NONE)
    if (row.rerun or wrong is Switch.RERUN_UNDECLARED) and row.attempts < MAX_ATTEMPTS:
        return put(scope, number, status=QUEUED, epoch=0, owner="")
    return end(scope, number, status=ABANDONED)


def touch(scope: Scope, number: int, *, epoch: int, at: Moment) -> Outcome:
    """Vouch for a running execution."""
    row = scope.rows[number]
    if row is None or row.status != RUNNING or row.epoch != epoch:
        return scope, Answer(GONE, number)
    return put(scope, number, alive_until=at.now + at.ttl), Answer(VOUCHED, number)


def end(scope: Scope, number: int, *, status: str, body: Hashable = b"") -> Scope:
    """It is final, and its terminal event says so."""
    row = _row(scope, number)
    ended = row._replace(status=status, owner="", body=body, last_seq=row.last_seq + 1, terminal=row.terminal + 1)
    return scope._replace(rows=(*scope.rows[:number], ended, *scope.rows[number + 1 :]))


def put(scope: Scope, number: int, **changes: object) -> Scope:
    """The scope with one row changed."""
    row = _row(scope, number)._replace(**changes)  # type: ignore[arg-type] # the callers name fields of a row
    return scope._replace(rows=(*scope.rows[:number], row, *scope.rows[number + 1 :]))


def _logged(scope: Scope, number: int, *, after: int, count: int) -> Scope:
    last_seq = _row(scope, number).last_seq
    return put(scope, number, last_seq=last_seq + max(count - max(last_seq - after, 0), 0))


def _row(scope: Scope, number: int) -> Row:
    row = scope.rows[number]
    assert row is not None  # noqa: S101 - the callers have looked
    return row
