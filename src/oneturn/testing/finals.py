"""How everything ended, read through the port alone: so of any record store, simulated or real."""

from __future__ import annotations

from collections.abc import Iterable

from oneturn.core.record import Record
from oneturn.core.store import RecordStore
from oneturn.testing.evidence import Final

MANY = 100_000


async def finals_of(records: RecordStore, scopes: Iterable[tuple[str, str]]) -> dict[str, Final]:
    """Execution → its record, its log, and who answered its message, for all of these (tenant, scope)."""
    finals: dict[str, Final] = {}
    for tenant, scope in scopes:
        answered = {
            message.turn: message.answered_by or ""
            for message in await records.history(tenant=tenant, scope=scope, limit=MANY)
        }
        for record in await records.turns(tenant=tenant, scope=scope, limit=MANY):
            events = await records.events(tenant=tenant, id=record.id, after=0, limit=MANY)
            finals[record.id] = Final(record=record, events=tuple(events), answered_by=answered.get(record.message, ""))
    return finals


async def unfinished(records: RecordStore, scopes: Iterable[tuple[str, str]]) -> list[Record]:
    """Those that still wait or run."""
    return [
        record
        for tenant, scope in scopes
        for record in await records.turns(tenant=tenant, scope=scope, limit=MANY)
        if not record.status.final
    ]
