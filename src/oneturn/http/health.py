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
        """200 while turns are admitted and the stores answer; 503 before the gate opens, and once it drains."""
        if not gate.running:
            return _unready("not open")
        if not gate.accepting:
            return _unready("draining")
        if not await gate.engine.ready():
            return _unready("store away")
        return JSONResponse({"status": "ready"}, headers=NO_STORE)


def _unready(why: str) -> Response:
    return JSONResponse({"status": why}, status_code=503, headers=NO_STORE)
