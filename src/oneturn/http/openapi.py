"""What an application's OpenAPI document says of the POST: its body is read by us, so FastAPI cannot know it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import PydanticInvalidForJsonSchema

from oneturn.http.key import HEADER
from oneturn.runtime.handler import Handler


def describe_ask(handler: Handler) -> dict[str, Any]:
    """The request body and the headers of a POST, for `openapi_extra`."""
    try:
        payload = handler.payload.json_schema(by_alias=True, mode="validation")
    except PydanticInvalidForJsonSchema:
        payload = {}
    beside = {
        "request_id": {"type": "string", "description": f"The idempotency key, if it is not sent as {HEADER}."},
        "on_busy": {"enum": sorted({handler.on_busy, *handler.client_may})},
        "regenerate": {"type": "string", "description": "The turn whose message is asked again."},
    }
    schema = {"allOf": [_inlined(payload, payload.get("$defs", {}), ()), {"type": "object", "properties": beside}]}
    return {
        "parameters": [
            _header(HEADER, "Your name for this request: the same for every retry, new for a new request."),
            _header("Accept", "text/event-stream: the turn's events, instead of its outcome."),
            _header("Prefer", "wait=N: how many seconds to wait before 202, 25 unless told, at most 60."),
        ],
        "requestBody": {"required": True, "content": {"application/json": {"schema": schema}}},
    }


def _header(name: str, description: str) -> dict[str, Any]:
    return {"name": name, "in": "header", "required": False, "description": description, "schema": {"type": "string"}}


def _inlined(schema: Any, defs: Mapping[str, Any], within: tuple[str, ...]) -> Any:
    # References of a schema point into itself; as a part of another document they would point nowhere.
    match schema:
        case list():
            return [_inlined(part, defs, within) for part in schema]
        case {"$ref": str(ref), **rest}:
            name = ref.rpartition("/")[2]
            rest.pop("$defs", None)
            if name in within:
                return rest  # a recursive model: anything, from the second round on
            return {**_inlined(defs.get(name, {}), defs, (*within, name)), **rest}
        case dict():
            return {key: _inlined(value, defs, within) for key, value in schema.items() if key != "$defs"}
        case _:
            return schema
