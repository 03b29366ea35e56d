"""The one way an admitted turn is answered, on the router's routes and on an application's own: stream, wait or 202."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import NoMatchFound

from oneturn.core.record import Record
from oneturn.core.status import Status
from oneturn.gate import Handle
from oneturn.http.answer import REPLAYED, accepted, answer_of
from oneturn.http.turn_stream import TurnStream
from oneturn.http.wish import wants_stream, wished_wait
from oneturn.runtime.admission import Ticket
from oneturn.runtime.engine import Engine

TURN_ROUTE: Final = "oneturn:turn"
"""The name of the route of one turn, by which an application's own endpoint finds its address."""


async def respond(handle: Handle[Any], request: Request) -> Response:
    """The answer of an own endpoint that called `gate.ask`: a stream, the outcome within the wait, or 202.

    `Location` is sent if the application includes a `turn_router`.
    """
    record = handle.ticket.record
    engine = handle.engine
    return await reply(engine, handle.ticket, request, location=_address(record, request))


async def reply(engine: Engine, ticket: Ticket, request: Request, *, location: str | None) -> Response:
    """Answer as the client wishes. One outcome, whichever form is asked for, now or by a retry."""
    record = ticket.record
    replayed = ticket.admission == "replayed"
    if wants_stream(request):
        return TurnStream(engine, record, asked=True, replayed=replayed)
    wait, headers = wished_wait(request)
    if replayed:
        headers[REPLAYED] = "true"
    if not record.status.final:
        record = await engine.outcome(record, wait=wait)
    if record.status.final:
        return answer_of(record, headers=headers)
    position = await engine.position(record) if record.status is Status.QUEUED else 0
    return accepted(record, position=position, location=location, headers=headers)


def _address(record: Record, request: Request) -> str | None:
    scope = record.identity.scope
    if "/" in scope:
        return None  # no path parameter holds one, however it is written
    try:
        path = request.app.url_path_for(TURN_ROUTE, conversation_id=scope, turn_id=record.id)
    except NoMatchFound:
        return None
    return quote(f"{request.scope.get('root_path', '')}{path}")
