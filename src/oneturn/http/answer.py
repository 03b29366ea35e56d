"""The answer for a turn: made from its record and nothing else, so that a replay equals the original byte for byte."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import Response

from oneturn.core.record import Record
from oneturn.core.status import Status
from oneturn.http.problem import NO_STORE, TURN_ID, Problem, result_expired, result_unavailable

REPLAYED: Final = "Idempotency-Replayed"
_RETRY_AFTER: Final = 1
"""Seconds after which a client that was answered 202 may look again."""


def answer_of(record: Record, *, headers: Mapping[str, str] | None = None) -> Response:
    """The answer that a final record stands for, plus `headers` that are about this one call."""
    if record.expired:
        response = result_expired(record.id).response()
    else:
        match record.status:
            case Status.SUCCEEDED:
                response = _json(
                    b"".join((b'{"turn":', _quoted(record.id), b',"status":"succeeded","result":', record.body, b"}"))
                )
                response.headers[TURN_ID] = record.id
            case Status.FAILED:
                response = failed(record.id, record.body).response()
            case Status.STOPPED:
                response = _stopped(record).response()
            case Status.ABANDONED:
                response = result_unavailable(record.id).response()
            case Status.QUEUED | Status.RUNNING:
                raise ValueError("a turn that is not final has no answer yet")
    response.headers.update(headers or {})
    return response


def accepted(
    record: Record, *, position: int, location: str | None, headers: Mapping[str, str] | None = None
) -> Response:
    """202: the turn goes on; where to look, and its place in the queue if it has one."""
    body: dict[str, Any] = {"turn": record.id, "status": record.status.value}
    if position > 0:
        body["position"] = position
    response = _json(dumped(body), status=202)
    response.headers[TURN_ID] = record.id
    response.headers["Retry-After"] = str(_RETRY_AFTER)
    if location is not None:
        response.headers["Location"] = location
    response.headers.update(headers or {})
    return response


def item(record: Record) -> bytes:
    """A turn as its page and the history show it. Payload and result are the stored bytes, never encoded again."""
    failure = record.status is Status.FAILED and not record.expired
    members = {
        "turn": _quoted(record.id),
        "key": _quoted(record.identity.key),
        "message": _quoted(record.message or record.id),
        "sequence": dumped(record.sequence),
        "epoch": dumped(record.epoch),
        "status": _quoted(record.status.value),
        "reason": dumped(record.reason.value if record.reason is not None else None),
        "payload": record.payload or b"null",
        "result": (record.status is Status.SUCCEEDED and record.body) or b"null",
        "error": (failure and record.body) or b"null",
        "created_at": dumped(record.created_at),
        "started_at": dumped(record.started_at),
        "ended_at": dumped(record.ended_at),
        "last_event": dumped(record.last_seq),
    }
    return b"{" + b",".join(b'"%b":%b' % (name.encode(), value) for name, value in members.items()) + b"}"


def turn_page(record: Record) -> Response:
    """One turn."""
    response = _json(item(record))
    response.headers[TURN_ID] = record.id
    return response


def history_page(records: list[Record]) -> Response:
    """The turns of a conversation, oldest first."""
    return _json(b'{"turns":[' + b",".join(item(record) for record in records) + b"]}")


def failed(turn: str, body: bytes) -> Problem:
    """The problem of a failed turn, from the stored code and message."""
    stored = json.loads(body or b"{}")
    message = stored.pop("message", "the turn failed")
    code = stored.pop("code", "failed")
    return Problem("turn-failed", message, turn=turn, code=code, **stored)


def dumped(value: Any) -> bytes:
    """One line of JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _stopped(record: Record) -> Problem:
    reason = record.reason.value if record.reason is not None else "stopped"
    return Problem("turn-stopped", f"the turn was stopped: {reason}", turn=record.id, reason=reason)


def _quoted(text: str) -> bytes:
    return json.dumps(text).encode()


def _json(body: bytes, *, status: int = 200) -> Response:
    return Response(body, status_code=status, headers=NO_STORE, media_type="application/json")
