"""What a contract suite is given: an open backend, time that it can move, and what it needs to show its capabilities."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

from oneturn.core.backend import Backend
from oneturn.core.identity import Identity
from oneturn.core.record import Record
from oneturn.core.status import Status
from oneturn.core.steps import Append, Claim, Claimed, Emitted, Ended, Enqueued, Finish, Start

_numbers = itertools.count(1)


async def _not_declared() -> Backend:
    raise AssertionError("this backend does not declare the capability that the test is about")


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A backend under test."""

    backend: Backend
    elapse: Callable[[float], None]
    """Moves the backend's own clocks by so many seconds, monotonic and wall alike."""
    other: Callable[[], Awaitable[Backend]] = _not_declared
    """CROSS_PROCESS: one more backend over the same data, as another process would open it."""
    reopen: Callable[[], Awaitable[Backend]] = _not_declared
    """DURABLE: close the backend and open its data again."""

    async def claimed(self, **changes: Any) -> Record:
        """A record that runs."""
        answer = await self.backend.records.claim(claim_of(**changes))
        assert isinstance(answer, Claimed), answer
        return answer.record

    async def enqueued(self, **changes: Any) -> Record:
        """A record that waits."""
        answer = await self.backend.records.claim(claim_of(**changes))
        assert isinstance(answer, Enqueued), answer
        return answer.record

    async def finished(self, record: Record, **changes: Any) -> Record:
        """A running record, ended from within; by default it succeeds."""
        answer = await self.backend.records.finish(finish_of(record, **changes))
        assert isinstance(answer, Ended), answer
        return answer.record

    async def answered(self, body: bytes = b'"done"', **changes: Any) -> Record:
        """A message with its answer: claimed and finished."""
        return await self.finished(await self.claimed(**changes), body=body)

    async def now(self, record: Record) -> Record:
        """The record as it stands."""
        found = await self.backend.records.read(tenant=record.identity.tenant, id=record.id)
        assert found is not None
        return found

    async def kinds(self, record: Record) -> list[str]:
        """The kinds of its events; their numbers are checked to be gapless."""
        events = await self.backend.records.events(tenant=record.identity.tenant, id=record.id, after=0)
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        return [event.kind for event in events]


def timeless(answer: Any) -> Any:
    """An answer or a record as it may be compared: `remaining` depends on when it was read."""
    if isinstance(answer, Record):
        return replace(answer, remaining=0.0)
    record = getattr(answer, "record", None)
    return answer if record is None else replace(answer, record=timeless(record))


def claim_of(
    *, tenant: str = "acme", subject: str = "ada", scope: str = "c", key: str = "", owner: str = "", **changes: Any
) -> Claim:
    """A claim with defaults and, unless given, a key, an owner and an id of its own."""
    number = next(_numbers)
    values: dict[str, Any] = {
        "id": f"id{number}",
        "identity": Identity(tenant=tenant, subject=subject, scope=scope, key=key or f"key{number}"),
        "handler": "chat",
        "fingerprint": "1:f",
        "payload": b'{"text":"hi"}',
        "owner": owner or f"owner{number}",
        "ttl": 60.0,
    }
    return Claim(**{**values, **changes})


def start_of(record: Record, **changes: Any) -> Start:
    """A start of a queued record, by an owner of its own unless given."""
    values: dict[str, Any] = {
        "tenant": record.identity.tenant,
        "id": record.id,
        "owner": f"worker{next(_numbers)}",
        "ttl": 60.0,
    }
    return Start(**{**values, **changes})


def emitted(*kinds: str) -> tuple[Emitted, ...]:
    """Events on their way to the log."""
    return tuple(Emitted(kind=kind, data='{"delta":"x"}' if kind == "text" else '{"name":"n"}') for kind in kinds)


def append_of(record: Record, *kinds: str, **changes: Any) -> Append:
    """Events of these kinds, behind those that the record has."""
    values: dict[str, Any] = {
        "tenant": record.identity.tenant,
        "id": record.id,
        "epoch": record.epoch,
        "after": record.last_seq,
        "events": emitted(*kinds),
    }
    return Append(**{**values, **changes})


def finish_of(record: Record, **changes: Any) -> Finish:
    """A finish of a running record; by default it succeeds."""
    values: dict[str, Any] = {
        "tenant": record.identity.tenant,
        "id": record.id,
        "epoch": record.epoch,
        "status": Status.SUCCEEDED,
        "body": b'"done"',
        "after": record.last_seq,
    }
    return Finish(**{**values, **changes})
