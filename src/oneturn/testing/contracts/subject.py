"""What a contract suite is given: an open backend and time that it can move."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from oneturn.core.backend import Backend
from oneturn.core.identity import Identity
from oneturn.core.record import Record
from oneturn.core.steps import Claim, Claimed, Emitted, Enqueued, Finish

_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A backend under test. `elapse(seconds)` moves its own clocks, monotonic and wall alike."""

    backend: Backend
    elapse: Callable[[float], None]

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

    async def kinds(self, record: Record) -> list[str]:
        """The kinds of its events; their numbers are checked to be gapless."""
        events = await self.backend.records.events(tenant=record.identity.tenant, id=record.id, after=0)
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        return [event.kind for event in events]


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


def emitted(*kinds: str) -> tuple[Emitted, ...]:
    """Events on their way to the log."""
    return tuple(Emitted(kind=kind, data='{"delta":"x"}' if kind == "text" else '{"name":"n"}') for kind in kinds)


def finish_of(record: Record, **changes: Any) -> Finish:
    """A finish of a running record; by default it succeeds."""
    from oneturn.core.status import Status  # noqa: PLC0415 - keeps the module's head short

    values: dict[str, Any] = {
        "tenant": record.identity.tenant,
        "id": record.id,
        "epoch": record.epoch,
        "status": Status.SUCCEEDED,
        "body": b'"done"',
        "after": record.last_seq,
    }
    return Finish(**{**values, **changes})
