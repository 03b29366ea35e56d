"""The idempotency key in all its spellings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from oneturn.http.key import idempotency_key
from oneturn.http.problem import Problem

if TYPE_CHECKING:
    from http.conftest import Service


@pytest.mark.case("O1")
@pytest.mark.parametrize(
    ("header", "key"),
    [
        ("abc", "abc"),
        ('"abc"', "abc"),
        ('  "abc" ', "abc"),
        (r'"a\"b\\c"', r"a\"b\\c".replace(r"\"", '"').replace(r"\\", "\\")),
        ('"a, b"', "a, b"),
        ("x" * 255, "x" * 255),
    ],
)
def test_quoted_and_bare_are_one_key(header: str, key: str) -> None:
    assert idempotency_key(headers=[header], request_id=None) == key


@pytest.mark.parametrize(
    ("headers", "request_id"),
    [
        ([], None),
        ([""], None),
        (['""'], None),
        (['"  "'], None),
        (["a", "a"], None),
        (["a, b"], None),
        (['"a", "b"'], None),
        (['"abc'], None),
        (['a"b'], None),
        ([r'"a\n"'], None),
        (["é"], None),
        (["x" * 256], None),
        ([], ""),
        ([], 7),
        ([], "a\nb"),
        (["a"], "b"),
    ],
)
def test_what_is_not_one_key_is_refused(headers: list[str], request_id: object) -> None:
    with pytest.raises(Problem) as caught:
        idempotency_key(headers=headers, request_id=request_id)
    assert caught.value.kind == "invalid-idempotency-key"


def test_header_and_body_may_agree() -> None:
    assert idempotency_key(headers=['"a"'], request_id="a") == "a"
    assert idempotency_key(headers=[], request_id="a") == "a"


@pytest.mark.case("O1")
@pytest.mark.row("Q3")
async def test_a_retry_may_spell_the_key_in_any_way(service: Service) -> None:
    first = await service.ask({"text": "hi"}, key='"one"')
    bare = await service.ask({"text": "hi"}, key="one")
    body = await service.ask({"text": "hi", "request_id": "one"})
    assert first.status_code == 200
    assert first.content == bare.content == body.content
    assert service.calls == ["hi"]
