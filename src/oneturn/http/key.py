"""The idempotency key: read from its header (quoted or bare) or from the body, exactly one, or refused."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from oneturn.http.problem import Problem

HEADER: Final = "Idempotency-Key"
_MAX_LENGTH: Final = 255
_QUOTED: Final = re.compile(r'"((?:[\x20-\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"')
# A comma or a quote inside a bare key is what a proxy makes of two headers: that is not one key.
_BARE: Final = re.compile(r"[\x21\x23-\x2b\x2d-\x7e](?:[\x20-\x21\x23-\x2b\x2d-\x7e]*[\x21\x23-\x2b\x2d-\x7e])?")


def idempotency_key(*, headers: Sequence[str], request_id: object) -> str:
    """The one key of a request, from the header's values and the body's `request_id` (None: not given)."""
    if len(headers) > 1:
        raise _invalid(f"{HEADER} was sent {len(headers)} times")
    given = []
    if headers:
        given.append(_from_header(headers[0].strip()))
    if request_id is not None:
        if not isinstance(request_id, str):
            raise _invalid("request_id is not a string")
        given.append(request_id)
    if not given:
        raise _invalid(f"send the header {HEADER}, or request_id in the body: a name that you make for this request")
    for key in given:
        _check(key)
    if len(set(given)) > 1:
        raise _invalid(f"{HEADER} and request_id are not the same")
    return given[0]


def _from_header(value: str) -> str:
    # RFC 8941 has a quoted string; the bare form is what most clients send. Both name the same key.
    if quoted := _QUOTED.fullmatch(value):
        return re.sub(r'\\(["\\])', r"\1", quoted[1])
    if not value or _BARE.fullmatch(value):
        return value
    raise _invalid(f'{HEADER} is neither one "quoted string" nor one bare printable key')


def _check(key: str) -> None:
    if not key.strip():
        raise _invalid("the key is empty")
    if len(key) > _MAX_LENGTH:
        raise _invalid(f"the key is longer than {_MAX_LENGTH} characters")
    if not key.isprintable():
        raise _invalid("the key holds characters that cannot be printed")


def _invalid(detail: str) -> Problem:
    return Problem("invalid-idempotency-key", detail)
