"""Retention: what has ended is folded, emptied and in the end forgotten."""

from __future__ import annotations

from oneturn.backends.sqlite.table import SQL, Table
from oneturn.core import event as kinds
from oneturn.core.event import encode, fold
from oneturn.core.steps import Retention, Swept
from oneturn.core.store import Execute


def sweep(run: Execute, table: Table, retention: Retention) -> Swept:
    """See `RecordStore.sweep`."""
    events = results = tombstones = 0
    oldest = min(retention.events, retention.results, retention.tombstones)
    for execution, ended_at, expired, last_seq in run(SQL["ended_before"], (table.wall - oldest,)):
        age = table.wall - ended_at
        if age >= retention.tombstones:
            table.empty(execution, last_seq=last_seq)
            run(SQL["delete"], (execution,))
            tombstones += 1
        elif age >= retention.results and not expired:
            table.empty(execution, last_seq=last_seq)
            results += 1
        elif age >= retention.events and not expired:
            events += _fold(run, table, execution, last_seq=last_seq)
    return Swept(events=events, results=results, tombstones=tombstones)


def _fold(run: Execute, table: Table, execution: str, *, last_seq: int) -> int:
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
        table.empty(execution, last_seq=2**31)
    return len(rows)
