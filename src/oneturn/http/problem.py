"""Problem documents (RFC 9457): the one table from what stopped a caller to a status and a stable type."""

from __future__ import annotations

import json
import logging
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from oneturn.core.errors import (
    BackendUnavailable,
    Contended,
    OneturnError,
    Refused,
    RefusedReason,
    ResultUnavailable,
    Stopped,
    TurnFailed,
)

logger = logging.getLogger(__name__)

TYPE_PREFIX: Final = "urn:oneturn:problem:"
"""A URN, not a relative reference: the type must not change with the path that answered."""

TURN_ID: Final = "Turn-Id"
_NAME: Final = re.compile(r"[A-Za-z0-9._~-]+")
"""What may stand in a header: a refusal may name a turn by what a client made up."""
NO_STORE: Final = {"Cache-Control": "no-store"}

Kind = Literal[
    "invalid-request",
    "invalid-payload",
    "invalid-idempotency-key",
    "invalid-cursor",
    "not-found",
    "too-large",
    "idempotency-key-reused",
    "request-in-progress",
    "conversation-busy",
    "not-regenerable",
    "limit-reached",
    "result-unavailable",
    "result-expired",
    "store-unavailable",
    "draining",
    "turn-failed",
    "turn-stopped",
    "internal-error",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    status: int
    title: str
    retry_after: float | None = None
    """Seconds to name where the error names none; None: the answer has no Retry-After at all."""


TABLE: Final[Mapping[Kind, _Row]] = {
    "invalid-request": _Row(status=400, title="The request cannot be read"),
    "invalid-payload": _Row(status=422, title="The message is not what this handler takes"),
    "invalid-idempotency-key": _Row(status=400, title="The idempotency key is missing or malformed"),
    "invalid-cursor": _Row(status=400, title="There is no such place in the log"),
    "not-found": _Row(status=404, title="Not found"),
    "too-large": _Row(status=413, title="The request is too large"),
    "idempotency-key-reused": _Row(status=422, title="This idempotency key was used for another request"),
    "request-in-progress": _Row(status=409, title="The same request is being handled", retry_after=1),
    "conversation-busy": _Row(status=409, title="The conversation is busy", retry_after=1),
    "not-regenerable": _Row(status=409, title="This turn cannot be regenerated"),
    "limit-reached": _Row(status=429, title="Too many turns are waiting", retry_after=2),
    "result-unavailable": _Row(status=409, title="The turn was started, and its result is not available"),
    "result-expired": _Row(status=410, title="The result is no longer kept"),
    "store-unavailable": _Row(status=503, title="The store did not answer", retry_after=5),
    "draining": _Row(status=503, title="This process is shutting down", retry_after=1),
    "turn-failed": _Row(status=500, title="The turn failed"),
    "turn-stopped": _Row(status=409, title="The turn was stopped"),
    "internal-error": _Row(status=500, title="Internal error"),
}


_REFUSED: Final[Mapping[RefusedReason, Kind]] = {
    "key-reused": "idempotency-key-reused",
    "busy": "conversation-busy",
    "limit": "limit-reached",
    "draining": "draining",
    "too-large": "too-large",
    "not-regenerable": "not-regenerable",
}


class Problem(Exception):
    """What a route answers instead of its result."""

    def __init__(
        self,
        kind: Kind,
        detail: str,
        *,
        turn: str | None = None,
        retry_after: float | None = None,
        **members: Any,
    ) -> None:
        super().__init__(detail)
        self.kind: Kind = kind
        self.detail = detail
        self.turn = turn
        self.retry_after = retry_after
        self.members = members

    def response(self) -> Response:
        """The document: the same bytes for the same problem, so that a replay equals its original."""
        row = TABLE[self.kind]
        document = {"type": TYPE_PREFIX + self.kind, "title": row.title, "status": row.status, "detail": self.detail}
        if self.turn is not None:
            document["turn"] = self.turn
        document.update(self.members)
        headers = dict(NO_STORE)
        if self.turn is not None and _NAME.fullmatch(self.turn):
            headers[TURN_ID] = self.turn
        if row.retry_after is not None:
            seconds = row.retry_after if self.retry_after is None else self.retry_after
            headers["Retry-After"] = str(max(1, math.ceil(seconds)))
        return Response(
            json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode(errors="replace"),
            status_code=row.status,
            headers=headers,
            media_type="application/problem+json",
        )


def problem_of(error: Exception) -> Problem | None:  # noqa: PLR0911 - one row each
    """The problem that stands for `error`; None: it is a defect or a misconfiguration, not an answer."""
    match error:
        case Problem():
            return error
        case Refused():
            return Problem(_REFUSED[error.reason], str(error), turn=error.turn, retry_after=error.retry_after)
        case ResultUnavailable():
            return result_expired(error.turn) if error.why == "expired" else result_unavailable(error.turn)
        case Stopped():
            return Problem("turn-stopped", str(error), reason=error.reason.value)
        case TurnFailed():
            return Problem("turn-failed", error.message, code=error.code)
        case Contended():
            return Problem("request-in-progress", "somebody else holds the key", retry_after=error.remaining)
        case BackendUnavailable():
            # The error's own text may name hosts and files: it goes to the log, never to a client.
            logger.warning("store unavailable", exc_info=error)
            return Problem("store-unavailable", "nothing is known to have been done; ask again with the same key")
        case HTTPException(status_code=404):
            # An application's own 404 (not your conversation) must look exactly like ours (not your turn).
            return not_found()
        case _:
            return None


def not_found() -> Problem:
    """There is no such thing, or it is not yours: nobody learns which."""
    return Problem("not-found", "there is no such conversation or turn, or it is not yours")


def result_unavailable(turn: str) -> Problem:
    """The turn was abandoned. One text, however it is learnt: an answer that is repeated is the same, byte for byte."""
    detail = "the turn was started and its process died: whether it had any effect is not known"
    return Problem("result-unavailable", detail, turn=turn)


def result_expired(turn: str) -> Problem:
    """Only the memory of the key is left."""
    return Problem("result-expired", "the result of this turn is no longer kept", turn=turn)


async def problem_response(request: Request, error: Exception) -> Response:  # noqa: ARG001 - an exception handler's form
    """Answer an error with its problem document: `app.add_exception_handler(OneturnError, problem_response)`.

    For errors that leave an application's own endpoints; the routes of `turn_router` need no installation.
    """
    problem = problem_of(error)
    if problem is None:
        if not isinstance(error, OneturnError):
            raise error
        logger.error("unexpected error", exc_info=error)
        problem = Problem("internal-error", "the error was logged")
    return problem.response()
