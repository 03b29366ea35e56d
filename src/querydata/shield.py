"""What every response carries and which requests are refused unread: the browser's side of safety."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from querydata.problems import Refusal

MAX_FORM: Final = 65_536
"""Bytes of a body that is not a question; a question has the library's own limit."""
_SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
SECURITY_HEADERS: Final = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Shield:
    """Adds the security headers; refuses what another site makes a browser send. Plain ASGI: streams pass through."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
                # Answers are somebody's; a page is asked for anew (and answered 304) so that a deploy is seen at once.
                headers.setdefault("Cache-Control", "no-store" if scope["path"].startswith("/api/") else "no-cache")
            await send(message)

        refusal = None if scope["method"] in _SAFE_METHODS else _refusal(scope["path"], Headers(scope=scope))
        app = self._app if refusal is None else refusal.response()
        await app(scope, receive, guarded_send)


def _refusal(path: str, headers: Headers) -> Refusal | None:
    if not _same_site(headers):
        return Refusal("cross-origin", "This request comes from another site", status=403)
    content_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    # A foreign form cannot send JSON: with SameSite and Origin this is the third lock on the same door.
    if path.startswith("/api/") and content_type not in {"", "application/json"}:
        return Refusal("json-only", "The API takes application/json only", status=415)
    if path.endswith("/turns"):
        return None
    if "transfer-encoding" in headers:
        return Refusal("length-required", "Say how long the body is", status=411)
    length = headers.get("content-length", "0")
    if not length.isdecimal() or int(length) > MAX_FORM:
        return Refusal("too-large", "The request is too large", status=413)
    return None


def _same_site(headers: Headers) -> bool:
    # Browsers name the origin of every unsafe request; curl does not, and has no cookies that a site could borrow.
    if headers.get("sec-fetch-site", "none") not in {"same-origin", "none"}:
        return False
    origin = headers.get("origin")
    return origin is None or urlsplit(origin).netloc == headers.get("host")
