"""The router: the routes of a handler's turns, under an application's own identity, with the gate's lifespan."""

from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Annotated, Any, Final
from urllib.parse import quote

from fastapi import APIRouter, Depends
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

from oneturn.core.identity import Principal
from oneturn.core.record import Record
from oneturn.gate import Gate
from oneturn.http.answer import history_page, turn_page
from oneturn.http.conversation_stream import ConversationStream, refuse_future
from oneturn.http.cursor import conversation_cursor, invalid_cursor, turn_cursor
from oneturn.http.health import add_health
from oneturn.http.message import read_asked, refuse_clashing_names
from oneturn.http.openapi import describe_ask
from oneturn.http.problem import TURN_ID, Problem, not_found, problem_of, result_expired
from oneturn.http.respond import TURN_ROUTE, reply
from oneturn.http.turn_stream import TurnStream
from oneturn.runtime.engine import MAX_NAME
from oneturn.runtime.handler import Handler

# No `from __future__ import annotations` here: FastAPI must see `Depends(principal)` itself, which is local to a call.

_TURNS: Final = "/conversations/{conversation_id}/turns"
_TURN: Final = _TURNS + "/{turn_id}"
_PAGE: Final = 50
_LARGEST_PAGE: Final = 100


class ProblemRoute(APIRoute):
    """Answers errors as problem documents by itself, whether or not the application installed `problem_response`."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """See `APIRoute.get_route_handler`."""
        handle = super().get_route_handler()

        async def answered(request: Request) -> Response:
            if any(len(name) > MAX_NAME or "\x00" in name for name in request.path_params.values()):
                return not_found().response()
            try:
                return await handle(request)
            except Exception as error:
                if (problem := problem_of(error)) is None:
                    raise
                return problem.response()

        return answered


def turn_router(
    gate: Gate, handler: Callable[..., Any], *, principal: Callable[..., Any], effect_headers: Sequence[str] = ()
) -> APIRouter:
    """Routes for the turns of `handler`. Include it under any prefix; it opens and closes the gate with the application.

    `principal`: a FastAPI dependency that answers a `Principal`; it may take `conversation_id` and raise 404. It runs on
    every call, replays, streams and cancels too. `effect_headers`: request headers that change what the work does, so
    that the same key with another value is another request. ConfigurationError if the payload has a member named
    `request_id`, `on_busy` or `regenerate`: those lie beside it in the body.
    """
    described = gate.handler(handler)
    refuse_clashing_names(described)

    @asynccontextmanager
    async def lifespan(_: object) -> AsyncIterator[None]:
        # FastAPI nests an included router's lifespan inside the application's: opened after its pools, drained before
        # they close. The gate counts who opened it, so the application or a second router may have done so too.
        async with gate:
            yield

    router = APIRouter(route_class=ProblemRoute, lifespan=lifespan, tags=["turns"])
    _add_asking(router, gate, described, principal=principal, effect_headers=tuple(effect_headers))
    _add_turn(router, gate, principal=principal)
    _add_conversation(router, gate, principal=principal)
    add_health(router, gate)
    return router


def _add_asking(
    router: APIRouter, gate: Gate, handler: Handler, *, principal: Callable[..., Any], effect_headers: Sequence[str]
) -> None:
    @router.post(_TURNS, openapi_extra=describe_ask(handler))
    async def ask(request: Request, conversation_id: str, who: Annotated[Principal, Depends(principal)]) -> Response:
        """Ask: the body is the message, with `request_id`, `on_busy` and `regenerate` beside it."""
        engine = gate.engine
        asked = await read_asked(request, handler, limit=engine.settings.max_body, effect_headers=effect_headers)
        ticket = await engine.ask(
            handler,
            payload=asked.payload,
            sent=asked.sent,
            conversation=conversation_id,
            key=asked.key,
            principal=who,
            on_busy=asked.on_busy,
            regenerate=asked.regenerate,
        )
        here = quote(request.scope["path"])
        return await reply(engine, ticket, request, location=f"{here}/{ticket.record.id}")


def _add_turn(router: APIRouter, gate: Gate, *, principal: Callable[..., Any]) -> None:
    async def found(turn_id: str, who: Principal, conversation_id: str) -> Record:
        record = await gate.engine.find(turn_id, principal=who, conversation=conversation_id)
        if record is None:
            raise not_found()
        return record

    @router.get(_TURN, name=TURN_ROUTE)
    async def turn(conversation_id: str, turn_id: str, who: Annotated[Principal, Depends(principal)]) -> Response:
        """State, message and result of one turn."""
        return turn_page(await found(turn_id, who, conversation_id))

    @router.get(_TURN + "/events")
    async def events(
        request: Request, conversation_id: str, turn_id: str, who: Annotated[Principal, Depends(principal)]
    ) -> Response:
        """The turn's events after `Last-Event-ID` or `?after=`; 204 once the client has the terminal one."""
        record = await found(turn_id, who, conversation_id)
        after = turn_cursor(request)
        if record.expired:
            raise result_expired(record.id)
        if after > record.last_seq:
            raise invalid_cursor(f"the turn has {record.last_seq} events so far, and none is numbered {after}")
        if record.status.final and after == record.last_seq:
            return Response(status_code=204, headers={TURN_ID: record.id})
        return TurnStream(gate.engine, record, after=after)

    @router.post(_TURN + "/cancel")
    async def cancel(conversation_id: str, turn_id: str, who: Annotated[Principal, Depends(principal)]) -> Response:
        """Stop the turn, wherever it runs or waits; answers how it stands, which may be finished."""
        record = await found(turn_id, who, conversation_id)
        return turn_page(await gate.engine.cancel(record))


def _add_conversation(router: APIRouter, gate: Gate, *, principal: Callable[..., Any]) -> None:
    @router.get(_TURNS)
    async def history(
        request: Request, conversation_id: str, who: Annotated[Principal, Depends(principal)]
    ) -> Response:
        """The newest turns of the conversation, oldest first; `?limit=` at most 100, `?before=` a sequence."""
        limit, before = _number(request, "limit"), _number(request, "before")
        records = await gate.engine.turns(
            tenant=who.tenant,
            scope=conversation_id,
            limit=min(max(_PAGE if limit is None else limit, 1), _LARGEST_PAGE),
            before_sequence=before,
        )
        return history_page(records)

    @router.get("/conversations/{conversation_id}/events")
    async def conversation(
        request: Request, conversation_id: str, who: Annotated[Principal, Depends(principal)]
    ) -> Response:
        """The events of all turns of the conversation after `Last-Event-ID` or `?after=`."""
        engine = gate.engine
        after = conversation_cursor(request)
        if after is not None:
            await refuse_future(engine, tenant=who.tenant, scope=conversation_id, after=after)
        return ConversationStream(engine, tenant=who.tenant, scope=conversation_id, after=after)


def _number(request: Request, name: str) -> int | None:
    given = request.query_params.get(name)
    if given is None:
        return None
    if not (given.isascii() and given.isdecimal() and len(given) <= 18):  # noqa: PLR2004 - fits 64 bits
        raise Problem("invalid-request", f"{name}={given[:40]!r} is not a number")
    return int(given)
