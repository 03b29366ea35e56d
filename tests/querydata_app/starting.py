"""QueryData's application with nothing behind it: what signing in and owning a conversation need no data for."""

from __future__ import annotations

from collections.abc import Callable

from fastapi import FastAPI

from querydata.app import create_app
from querydata.assembly import access_of
from querydata.chain import Source
from querydata.execute import Database
from querydata.model import Declined, Proposal, Request
from querydata.settings import Settings


class Silent:
    """A model that nobody asks."""

    async def propose(self, request: Request, *, delta: Callable[[str], None]) -> Proposal | Declined:
        raise AssertionError("nothing here asks the model")

    async def aclose(self) -> None:
        pass


def start(settings: Settings) -> FastAPI:
    database = Database(settings.data_dir / "none.db", statement_timeout=1, max_rows=1)
    source = Source(database=database, tables={}, max_rows=1, access=access_of(settings))
    return create_app(settings, source=source, model=Silent())
