"""HTTP: turns as routes of a FastAPI application. Only this layer knows status codes."""

from __future__ import annotations

from oneturn.http.problem import problem_response
from oneturn.http.respond import respond
from oneturn.http.router import turn_router

__all__ = ["problem_response", "respond", "turn_router"]
