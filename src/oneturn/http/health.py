"""Health: whether the process lives, and whether it should be given work. Nobody's identity is asked for."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import JSONResponse, Response

from oneturn.gate import Gate
from oneturn.http.problem import NO_STORE


def add_health(router: APIRouter, gate: Gate) -> None:
    """`GET /health/live` and `GET /health/ready`."""

    @router.get("/health/live")
    async def live() -> Response:
        """200 as long as the loop turns."""
        return JSONResponse({"status": "live"}, headers=NO_STORE)

    @router.get("/health/ready")
    async def ready() -> Response:
        """200 while turns are admitted; 503 before the gate is open, and from the moment it drains."""
        if not gate.running:
            return JSONResponse({"status": "not open"}, status_code=503, headers=NO_STORE)
        if not gate.accepting:
            return JSONResponse({"status": "draining"}, status_code=503, headers=NO_STORE)
        return JSONResponse({"status": "ready"}, headers=NO_STORE)
