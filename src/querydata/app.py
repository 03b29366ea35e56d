"""The application: QueryData's own routes and page around the turns of its one handler."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from importlib.resources import files

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.sessions import SessionMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.staticfiles import StaticFiles

from oneturn import Gate, OneturnError
from oneturn import Settings as GateSettings
from oneturn.http import problem_response, turn_router
from querydata import auth, conversations
from querydata.accounts import SIGN_IN_LASTS, Accounts
from querydata.chain import Source
from querydata.database import Database
from querydata.handler import ask_handler
from querydata.model import Model
from querydata.problems import Refusal
from querydata.settings import Settings
from querydata.shield import Shield

_STATIC = str(files("querydata").joinpath("static"))


class _GateSettings(GateSettings):
    """One host and short answers: a killed process is told from a slow one in half a minute. ONETURN_… still decides."""

    ttl: float = 15
    renew_every: float = 5
    sweep_every: float = 5


def create_app(settings: Settings, *, source: Source, model: Model) -> FastAPI:
    """Build the application on a data folder; it closes `source` and `model` when it ends. Blocks for a moment."""
    folder = settings.data_dir
    folder.mkdir(parents=True, exist_ok=True)
    database = Database(folder / "querydata.db")
    database.prepare()
    accounts = Accounts(database)
    if settings.demo:
        accounts.seed_demo()
    else:
        accounts.drop_demo()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        # The router's own lifespan lies inside: the gate has drained before what its turns use is closed.
        yield
        await model.aclose()
        source.database.close()

    # The interactive documentation loads scripts from elsewhere, which the page's policy forbids; the schema is served.
    app = FastAPI(title="QueryData", docs_url=None, redoc_url=None, openapi_url="/api/openapi.json", lifespan=lifespan)
    app.state.database = database
    app.state.accounts = accounts

    gate = Gate(_GateSettings(records=f"sqlite:///{folder / 'oneturn.db'}"))
    app.state.gate = gate
    ask = ask_handler(gate, source=source, model=model)
    app.include_router(turn_router(gate, ask, principal=conversations.principal), prefix="/api")
    app.include_router(auth.router)
    app.include_router(conversations.router)
    app.mount("/static", StaticFiles(directory=_STATIC), name="static")
    app.add_api_route("/", _page, include_in_schema=False)

    app.add_exception_handler(OneturnError, problem_response)
    app.add_exception_handler(Refusal, _refused)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_middleware(
        SessionMiddleware,
        secret_key=auth.session_secret(folder),
        session_cookie="querydata",
        max_age=SIGN_IN_LASTS,
        same_site="lax",
    )
    app.add_middleware(Shield)
    return app


async def _page() -> Response:
    return FileResponse(f"{_STATIC}/index.html")


async def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, Refusal)  # noqa: S101
    return error.response()


async def _http_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101
    kind = "not-found" if error.status_code == HTTPStatus.NOT_FOUND else "http-error"
    response = Refusal(kind, str(error.detail), status=error.status_code).response()
    response.headers.update(error.headers or {})
    return response


async def _invalid(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101
    # Where and why, not what: a value may be a password.
    detail = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors())
    return Refusal("invalid-request", "The request cannot be read", status=422, detail=detail).response()
