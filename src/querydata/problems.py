"""The refusals that QueryData itself answers, as problem documents like those of `oneturn.http`."""

from __future__ import annotations

from typing import Final

from starlette.responses import JSONResponse, Response

TYPE_PREFIX: Final = "urn:querydata:problem:"


class Refusal(Exception):
    """What a route of the page answers instead of its result."""

    def __init__(self, kind: str, title: str, *, status: int, detail: str = "", retry_after: int | None = None) -> None:
        super().__init__(title)
        self.kind = kind
        self.title = title
        self.status = status
        self.detail = detail or title
        self.retry_after = retry_after

    def response(self) -> Response:
        """The document, and `Retry-After` in seconds where waiting helps."""
        headers = {"Cache-Control": "no-store"}
        if self.retry_after is not None:
            headers["Retry-After"] = str(self.retry_after)
        body = {
            "type": TYPE_PREFIX + self.kind,
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
        }
        return JSONResponse(body, status_code=self.status, headers=headers, media_type="application/problem+json")


def not_found() -> Refusal:
    """The one answer for what does not exist and for what is somebody else's: they must not be told apart."""
    return Refusal("not-found", "Not found", status=404)
