"""A record as a row, and a row as a record."""

from __future__ import annotations

import json
from typing import Any

from oneturn.core.identity import Identity
from oneturn.core.record import Record
from oneturn.core.status import Status, StopReason

COLUMNS = (
    "id",
    "tenant",
    "subject",
    "scope",
    "key",
    "handler",
    "fingerprint",
    "payload",
    "claims",
    "recovery",
    "run_limit",
    "message",
    "replaces",
    "sequence",
    "status",
    "reason",
    "body",
    "owner",
    "epoch",
    "attempt",
    "last_seq",
    "alive_until",
    "alive_boot",
    "created_at",
    "started_at",
    "ended_at",
    "expired",
)

NOBODY_VOUCHES = -1e9
"""`remaining` of a record that was running when the machine booted last."""


def to_record(row: tuple[Any, ...], *, now: float, boot: str) -> Record:
    """The record of a row, as it is at `now` of this boot."""
    value = dict(zip(COLUMNS, row, strict=True))
    return Record(
        id=value["id"],
        identity=Identity(tenant=value["tenant"], subject=value["subject"], scope=value["scope"], key=value["key"]),
        handler=value["handler"],
        fingerprint=value["fingerprint"],
        payload=value["payload"],
        claims=json.loads(value["claims"]),
        recovery=value["recovery"],
        run_limit=value["run_limit"],
        message=value["message"],
        replaces=value["replaces"],
        sequence=value["sequence"],
        status=Status(value["status"]),
        reason=StopReason(value["reason"]) if value["reason"] else None,
        body=value["body"],
        owner=value["owner"],
        epoch=value["epoch"],
        attempt=value["attempt"],
        last_seq=value["last_seq"],
        alive_until=value["alive_until"],
        remaining=value["alive_until"] - now if value["alive_boot"] == boot else NOBODY_VOUCHES,
        created_at=value["created_at"],
        started_at=value["started_at"],
        ended_at=value["ended_at"],
        expired=bool(value["expired"]),
    )


def to_row(record: Record) -> tuple[Any, ...]:
    """The row of a record that is new: nobody vouches for it yet."""
    identity = record.identity
    return (
        record.id,
        identity.tenant,
        identity.subject,
        identity.scope,
        identity.key,
        record.handler,
        record.fingerprint,
        record.payload,
        json.dumps(dict(record.claims), ensure_ascii=False),
        record.recovery,
        record.run_limit,
        record.message,
        record.replaces,
        record.sequence,
        record.status.value,
        record.reason.value if record.reason else None,
        record.body,
        record.owner,
        record.epoch,
        record.attempt,
        record.last_seq,
        record.alive_until,
        "",
        record.created_at,
        record.started_at,
        record.ended_at,
        int(record.expired),
    )
