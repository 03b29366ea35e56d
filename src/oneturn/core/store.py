"""The record store: where executions, epochs, events and answers live; the one place that decides what is true."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from oneturn.core.event import Logged
from oneturn.core.identity import Identity
from oneturn.core.record import Record, StoredMessage
from oneturn.core.steps import (
    Abandon,
    Append,
    Appended,
    Busy,
    Claim,
    Claimed,
    Due,
    Ended,
    Enqueued,
    Existing,
    Finish,
    Full,
    Gone,
    Lapsed,
    NotRegenerable,
    Requeued,
    Retention,
    Start,
    Stop,
    Swept,
    Vouch,
)

Execute = Callable[[str, Sequence[Any]], list[tuple[Any, ...]]]
"""Run one SQL statement with positional parameters in somebody's open transaction; answers its rows."""

ClaimAnswer = Claimed | Enqueued | Existing | Busy | Lapsed | Full | NotRegenerable
EnqueueAnswer = Enqueued | Existing | Busy | Full | NotRegenerable


def refuse_bad_limit(limit: int) -> None:
    """ValueError, before any I/O, for a limit that lets nothing through: stores would differ about what it means."""
    if limit < 1:
        raise ValueError(f"limit must be 1 or more, not {limit!r}")


class RecordStore(Protocol):
    """Executions and their logs. Each method is one transaction, timed by the store's own clock after its locks.

    - The scope's row is locked before anything is checked; a check without the row lock is no check.
    - A scope's *epoch* grows by one whenever a record of it starts to run, and whenever a running one is ended from
      outside (`stop`, `abandon`, a dead one in `claim` or `start`). Numbers are never reissued.
    - Every write of an execution (`append`, `finish`, the fences) is refused (`Gone`) unless its record is `running`
      with that epoch. `finish` also needs the scope's epoch to be that number.
    - A final record never changes, except that retention and `erase` take its content away. The step that makes it final
      logs its terminal event (`oneturn.core.event.terminal_event`) in the same commit, as its last event.
    - Event numbers of one record are gapless from 1. `append` and `finish` log `events` as after+1, after+2, …; those
      that are logged already are skipped, so that repeating a step whose reply was lost changes nothing.
    - Every method may raise `BackendUnavailable`: it may or may not have happened. Repeating it is always safe and
      answers what is true.
    - Nothing of one tenant is reachable with another tenant's name.
    - Every call may be made from any event loop of the process.
    - ValueError, before any I/O, for a `limit` below 1.
    """

    async def claim(self, claim: Claim) -> ClaimAnswer:
        """Admit a message.

        In this order:
        - A record of this identity exists: `Existing`; but running with the same `owner`: `Claimed`, as before; queued
          and brought by this very `claim.id`: `Enqueued`, as before.
        - `regenerate` names a turn whose message is neither the newest answered one of the conversation (by answer
          epoch) nor unanswered with a final record: `NotRegenerable`.
        - Another record of the scope runs. Its time has passed and it is neither `dead` nor `alive`: `Lapsed`. Its time has passed and it
          is `dead`: it is ended here (abandoned with its terminal event, or requeued if its recovery is "rerun" and it was
          started fewer than three times), the epoch is raised, and the claim goes on. Else the conversation is busy.
        - Older queued records of the scope exist: the conversation is busy.
        - Busy: "reject" → `Busy`; "enqueue" → `Full` if `queue_limit` records are queued, else the record is stored
          as queued with the next sequence number, its event 1 is `queued` (data `{}`): `Enqueued`.
        - Otherwise the record is stored as running with the next sequence number (a regenerating one: with the
          sequence and message of its target), a raised epoch, attempt 1, alive for `ttl`, event 1 is `started`
          (data `{"epoch": e, "attempt": 1}`): `Claimed`.
        """
        ...

    async def start(self, start: Start) -> Claimed | Busy | Lapsed | Gone:
        """Start a queued record.

        - Running with the same `owner`: `Claimed`, as before. Not queued, or unknown: `Gone`.
        - Another record of the scope runs: `Busy`, or `Lapsed` / ended here by the rule of `claim`.
        - An older record of the scope is queued: `Busy` with that record.
        - Else it runs: raised epoch, attempt + 1, alive for `ttl`; event `started`, from the second attempt on
          `restarted` (same data): `Claimed`.
        """
        ...

    async def append(self, append: Append) -> Appended | Gone:
        """Log events."""
        ...

    async def finish(self, finish: Finish) -> Ended | Gone:
        """End a running execution from within.

        Status SUCCEEDED writes the answer: message → this execution, replacing an older answer only where this record
        regenerates and the answer still is the one it was asked to replace. Final already, with this epoch and the same
        status and body: `Ended` with `here=False`. Final otherwise, or another epoch: `Gone`.
        """
        ...

    async def stop(self, stop: Stop) -> Ended | Gone:
        """End an execution from outside.

        Queued or running: it is stopped with the reason; of a running one the scope's epoch is raised. Final already:
        `Ended` with `here=False` and the record as it stands, whatever its status. Unknown: `Gone(None)`.
        """
        ...

    async def abandon(self, abandon: Abandon) -> Ended | Requeued | Gone:
        """End a running execution whose executor is dead.

        Only if it still runs with this epoch, `alive_until` is unchanged and has passed; else `Gone`. Recovery "rerun" and
        fewer than three attempts: it is queued again in its old place, without an event (`Requeued`). In both cases the
        scope's epoch is raised.
        """
        ...

    async def touch(self, vouches: Sequence[Vouch]) -> list[Record | None]:
        """Vouch for running executions, in one statement: one answer per item, in order.

        None: it runs with this epoch and is alive for `ttl` from now. A record: it does not, and this is how it stands
        (for an unknown one, a record with status ABANDONED).
        """
        ...

    async def due(self, *, handlers: Sequence[str], limit: int, unknown_after: float) -> Due:
        """What could be started or may be dead, oldest first, at most `limit` of each.

        Startable: queued, the oldest queued of its scope, no record of its scope runs (or only one whose time has passed),
        and its handler is one of `handlers` or it was queued more than `unknown_after` seconds ago.
        """
        ...

    async def find(self, identity: Identity) -> Record | None:
        """The record of this name."""
        ...

    async def read(self, *, tenant: str, id: str) -> Record | None:  # noqa: A002 - the field's word
        """The record with this id."""
        ...

    async def events(self, *, tenant: str, id: str, after: int, limit: int = 1000) -> list[Logged]:  # noqa: A002
        """Its events with a greater number, in order. Where retention has folded them, one `snapshot` stands for many."""
        ...

    async def scope_events(
        self, *, tenant: str, scope: str, after: tuple[int, int], limit: int = 1000
    ) -> list[tuple[str, int, Logged]]:
        """(record id, epoch, event) of all records of the scope that have an epoch, after (epoch, seq), in that order."""
        ...

    async def position(self, *, tenant: str, id: str) -> int:  # noqa: A002
        """The place of a queued record among the queued of its scope, from 1; 0 if it is not queued."""
        ...

    async def history(
        self, *, tenant: str, scope: str, before_epoch: int | None = None, without: str = "", limit: int = 50
    ) -> list[StoredMessage]:
        """The newest `limit` answered messages, oldest first, whose answer has an epoch below `before_epoch`.

        `without` leaves out the message of that record id (the one being regenerated).
        """
        ...

    async def turns(
        self, *, tenant: str, scope: str, limit: int = 100, before_sequence: int | None = None
    ) -> list[Record]:
        """The newest `limit` records of the scope (of any subject) by sequence, then creation; oldest first."""
        ...

    async def scope_epoch(self, *, tenant: str, scope: str) -> int:
        """The scope's epoch now; 0 if nothing ever ran in it."""
        ...

    async def sweep(self, retention: Retention) -> Swept:
        """Apply retention to what has ended.

        Events: all but the terminal one are folded into one `snapshot` with the number before the terminal one's.
        Results: body, payload and events are dropped, the record is `expired`. Tombstones: the record is deleted.
        """
        ...

    async def erase(self, *, tenant: str, scope: str) -> int:
        """Drop payloads, answers, bodies, claims and events of the scope's final records (they become `expired`).

        Answers how many. Queued and running ones are the caller's to stop first.
        """
        ...


class TransactionalRecords(Protocol):
    """The steps that an application may take inside its own open transaction, on the database of the records.

    They run on the caller's connection through `run`, take the same locks, and are committed or rolled back with it.
    """

    def check_in(self, run: Execute, *, tenant: str, id: str, epoch: int) -> Gone | None:  # noqa: A002
        """The fence: lock the scope's row, and see that this record still runs with this epoch; None: it does."""
        ...

    def finish_in(self, run: Execute, finish: Finish) -> Ended | Gone:
        """`RecordStore.finish`, in the caller's transaction. Events already logged are skipped by number."""
        ...

    def enqueue_in(self, run: Execute, claim: Claim) -> EnqueueAnswer:
        """`RecordStore.claim`, except that an admitted record is always queued and nothing is ended or started.

        A conversation counts as busy under "reject" if a record of it runs and its time has not passed, or is queued.
        """
        ...
