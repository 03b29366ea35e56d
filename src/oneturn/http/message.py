"""The message that a POST carries: read within bounds, parsed strictly, its key and wishes taken out beside it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast, get_args

from pydantic import PydanticInvalidForJsonSchema, TypeAdapter, ValidationError
from starlette.requests import ClientDisconnect, Request

from oneturn.core.errors import ConfigurationError
from oneturn.core.event import encode
from oneturn.core.fingerprint import canonical, strict_loads
from oneturn.core.status import OnBusy
from oneturn.http.key import HEADER, idempotency_key
from oneturn.http.problem import Problem
from oneturn.runtime.handler import Handler

_BESIDE: Final = ("request_id", "on_busy", "regenerate")
"""Members of the body that are not the handler's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request, as far as it can be judged without looking at any store."""

    payload: bytes | None
    """The validated message as JSON; None: that of the turn to regenerate."""
    sent: Any
    """What tells a retry from a reuse of the key: body, query and the declared headers, without the key itself."""
    key: str
    on_busy: OnBusy | None
    regenerate: str | None


async def read_asked(request: Request, handler: Handler, *, limit: int, effect_headers: Sequence[str]) -> Asked:
    """Read and judge a request. Raises `Problem`; nothing is used up by one that is refused here."""
    body = _parsed(await _bounded(request, limit))
    key = idempotency_key(headers=request.headers.getlist(HEADER), request_id=body.get("request_id"))
    on_busy = _on_busy(body.get("on_busy"), handler)
    regenerate = body.get("regenerate")
    if regenerate is not None and not (isinstance(regenerate, str) and regenerate):
        raise Problem("invalid-request", "regenerate is not the id of a turn")
    message = {name: value for name, value in body.items() if name not in _BESIDE}
    sent = {
        "body": {name: value for name, value in body.items() if name != "request_id"},
        "query": sorted(request.query_params.multi_items()),
        "headers": {name.lower(): found for name in effect_headers if (found := request.headers.getlist(name))},
    }
    try:
        canonical(sent)
    except ValueError as error:
        # A number such as 1e999, or half a surrogate pair: JSON to the parser, but nothing that could be stored.
        raise Problem("invalid-request", f"the body cannot be represented: {error}") from error
    payload = None if regenerate is not None and not message else _validated(message, handler)
    return Asked(payload=payload, sent=sent, key=key, on_busy=on_busy, regenerate=regenerate)


def refuse_clashing_names(handler: Handler) -> None:
    """ConfigurationError if the handler's payload has a member that the body keeps for itself."""
    clash = sorted(set(_member_names(handler.payload)) & set(_BESIDE))
    if clash:
        raise ConfigurationError(
            f"the payload of {handler.name!r} has a member {clash[0]!r}, which the body of a POST keeps for itself: "
            "rename it (or give it another alias)"
        )


async def _bounded(request: Request, limit: int) -> bytes:
    # The length that a client declares spares reading; a chunked body declares none, so what arrives is counted too.
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > limit:
        raise _too_large(limit)
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > limit:
                raise _too_large(limit)
    except ClientDisconnect as error:
        raise Problem("invalid-request", "the client left before the body was complete") from error
    return bytes(body)


def _parsed(raw: bytes) -> dict[str, Any]:
    try:
        body = strict_loads(raw)
    except RecursionError as error:
        raise Problem("invalid-request", "the body is nested too deeply") from error
    except ValueError as error:
        raise Problem("invalid-request", f"the body is not JSON that every reader reads alike: {error}") from error
    if not isinstance(body, dict):
        raise Problem("invalid-request", "the body is not a JSON object")
    return body


def _on_busy(wanted: object, handler: Handler) -> OnBusy | None:
    if wanted is None:
        return None
    if wanted not in get_args(OnBusy):
        raise Problem("invalid-request", f"on_busy is none of {', '.join(get_args(OnBusy))}")
    try:
        return handler.policy(cast("OnBusy", wanted))
    except ValueError as error:
        raise Problem("invalid-request", str(error)) from error


def _validated(message: Mapping[str, Any], handler: Handler) -> bytes:
    # From JSON, not from Python values: a strict model still takes a date or a UUID from a string. What is stored is what
    # was validated here, as it was sent: a dump of the model may not be readable again (aliases, secrets).
    text = encode(message).encode()
    try:
        handler.payload.validate_json(text)
    except ValidationError as error:
        errors = json.loads(error.json(include_url=False, include_context=False, include_input=False))
        raise Problem("invalid-payload", "see errors", errors=errors) from error
    return text


def _member_names(payload: TypeAdapter[Any]) -> Iterator[str]:
    try:
        schema = payload.json_schema(by_alias=True, mode="validation")
    except PydanticInvalidForJsonSchema:
        return
    yield from _properties(schema, schema.get("$defs", {}), seen=set())


def _properties(schema: Mapping[str, Any], defs: Mapping[str, Any], *, seen: set[str]) -> Iterator[str]:
    # Only the outermost object shares its members with the body: references and alternatives are followed, members are not.
    yield from schema.get("properties", {})
    if (name := schema.get("$ref", "").rpartition("/")[2]) and name not in seen:
        yield from _properties(defs.get(name, {}), defs, seen=seen | {name})
    for kind in ("anyOf", "oneOf", "allOf"):
        for option in schema.get(kind, ()):
            yield from _properties(option, defs, seen=seen)


def _too_large(limit: int) -> Problem:
    return Problem("too-large", f"the body is larger than {limit} bytes")
