"""Retention: what has ended is folded, emptied and in the end forgotten; in small bites, so that live work gets between."""

from __future__ import annotations

from oneturn.backends.sqlite.table import SQL, Table
from oneturn.core import event as kinds
from oneturn.core.event import encode, fold
from oneturn.core.steps import Retention, Swept
from oneturn.core.store import Execute

BITE = 100
"""Records per transaction."""


def sweep(run: Execute, table: Table, retention: Retention) -> tuple[Swept, bool]:
    """A bite of `RecordStore.sweep`; and whether there may be more."""
    # The last stage first, and to its end: what is deleted is not folded or emptied before.
    gone = run(SQL["ended_before"], (table.wall - retention.tombstones, BITE))
    for (execution,) in gone:
        table.empty(execution)
        run(SQL["delete"], (execution,))
    room = BITE - len(gone)
    stale = run(SQL["unexpired_before"], (table.wall - retention.results, room))
    for (execution,) in stale:
        table.empty(execution)
    room -= len(stale)
    unfolded = run(SQL["unfolded_before"], (table.wall - retention.events, room))
    events = sum(_fold(run, table, execution, last_seq=last_seq) for execution, last_seq in unfolded)
    return Swept(events=events, results=len(stale), tombstones=len(gone)), len(unfolded) == room


def _fold(run: Execute, table: Table, execution: str, *, last_seq: int) -> int:
    run(SQL["folded"], (execution,))
    before = table.events(execution, after=0, limit=-1)[:-1]
    if not before or [logged.kind for logged in before] == [kinds.SNAPSHOT]:
        return 0
    run(SQL["drop_events"], (execution, last_seq - 1))
    run(SQL["log"], (execution, last_seq - 1, kinds.SNAPSHOT, encode(fold(before))))
    return len(before) - 1


def erase(run: Execute, table: Table, *, tenant: str, scope: str) -> int:
    """See `RecordStore.erase`."""
    rows = run(SQL["final_of"], (tenant, scope))
    for (execution,) in rows:
        table.empty(execution)
    return len(rows)
