"""The browser's side of safety: the headers of every answer, and the requests of other sites."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from importlib.resources import files

import httpx
import pytest

ORIGIN = "http://querydata.test"
NEW = "/api/conversations"


@pytest.mark.parametrize("path", ["/", "/static/js/app.js", "/static/style.css", "/api/me", "/nowhere", "/static/none"])
async def test_every_answer_carries_the_security_headers(client: httpx.AsyncClient, path: str) -> None:
    headers = (await client.get(path)).headers
    policy = headers["content-security-policy"]
    assert "script-src 'self';" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["cache-control"] in {"no-store", "no-cache"}


async def test_what_is_somebodys_is_not_stored_by_caches(dean: httpx.AsyncClient) -> None:
    for path in ("/api/me", NEW):
        assert (await dean.get(path)).headers["cache-control"] == "no-store"


async def test_the_page_needs_nothing_from_elsewhere_and_no_inline_script(client: httpx.AsyncClient) -> None:
    page = (await client.get("/")).text
    assert not re.search(r"<script(?![^>]*\bsrc=\"/static/)|\son\w+=|\sstyle=|https?://", page)
    for script in files("querydata").joinpath("static/js").iterdir():
        text = script.read_text(encoding="utf-8")
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", text), script.name


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.test"},
        {"Origin": "null"},
        {"Origin": "http://querydata.test.evil.test"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site", "Origin": ORIGIN},
    ],
)
async def test_what_another_site_makes_a_browser_send_is_refused(
    dean: httpx.AsyncClient, headers: dict[str, str]
) -> None:
    for path in (NEW, "/sign-out", "/sign-in", f"{NEW}/c/turns"):
        assert (await dean.post(path, headers=headers)).status_code == 403
    assert (await dean.get("/api/me", headers=headers)).status_code == 200


async def test_the_page_itself_and_curl_are_not_refused(dean: httpx.AsyncClient) -> None:
    page = {"Origin": ORIGIN, "Sec-Fetch-Site": "same-origin"}
    assert (await dean.post(NEW, headers=page)).status_code == 201
    assert (await dean.post(NEW)).status_code == 201


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
async def test_the_api_takes_json_only(dean: httpx.AsyncClient, content_type: str) -> None:
    answer = await dean.post(NEW, content=b"{}", headers={"Content-Type": content_type})
    assert answer.status_code == 415


async def test_large_bodies_are_refused_whether_or_not_they_say_how_large(client: httpx.AsyncClient) -> None:
    async def endless() -> AsyncIterator[bytes]:
        yield b"name=dean"

    form = {"Content-Type": "application/x-www-form-urlencoded"}
    assert (await client.post("/sign-in", content=b"x" * 70_000, headers=form)).status_code == 413
    assert (await client.post("/sign-in", content=endless(), headers=form)).status_code == 411


async def test_an_invalid_form_does_not_echo_what_was_sent(client: httpx.AsyncClient) -> None:
    answer = await client.post("/sign-in", data={"name": "dean", "password": "secret" * 100})
    assert answer.status_code == 422
    assert "secret" not in answer.text
