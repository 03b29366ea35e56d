"""Whose conversation is whose: a conversation belongs to the account that made it, and to nobody else."""

from __future__ import annotations

import secrets
import sqlite3
from typing import Annotated, Final

from fastapi import APIRouter, HTTPException
from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from oneturn import Principal
from querydata.auth import CurrentAccount
from querydata.database import NOW, Database
from querydata.problems import not_found

TENANT: Final = "campus"
_LISTED: Final = 200

router = APIRouter(prefix="/api/conversations")


class NewConversation(BaseModel):
    """What a client may say about a conversation before there is one."""

    model_config = ConfigDict(extra="forbid")

    id: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{8,64}$")] | None = None
    """Made by the client, so that asking again after a lost reply makes no second conversation."""
    title: Annotated[str, Field(max_length=200)] = ""


@router.post("")
def create(request: Request, account: CurrentAccount, wanted: NewConversation | None = None) -> Response:
    """Make a conversation, or find it made; 404 if its id is somebody else's."""
    wanted = wanted or NewConversation()
    identity = wanted.id or secrets.token_urlsafe(12)
    with _database(request).begin() as connection:
        made = connection.execute(
            f"INSERT INTO conversations (id, owner, title, created) VALUES (?, ?, ?, {NOW}) ON CONFLICT DO NOTHING",
            (identity, account.name, " ".join(wanted.title.split())),
        ).rowcount
        row = _row(connection, identity, owner=account.name)
    if row is None:
        raise not_found()
    return JSONResponse(row, status_code=201 if made else 200, headers={"Location": f"/api/conversations/{identity}"})


@router.get("")
def listed(request: Request, account: CurrentAccount) -> dict[str, list[dict[str, object]]]:
    """The newest conversations of this account, newest first."""
    with _database(request).read() as connection:
        rows = connection.execute(
            "SELECT id, title, created FROM conversations WHERE owner = ? ORDER BY created DESC, rowid DESC LIMIT ?",
            (account.name, _LISTED),
        ).fetchall()
    return {"conversations": [_document(row) for row in rows]}


def principal(conversation_id: str, request: Request, account: CurrentAccount) -> Principal:
    """Who asks in this conversation: its owner, or 404. Runs on every call about a turn."""
    with _database(request).read() as connection:
        if _row(connection, conversation_id, owner=account.name) is None:
            # In this form the library's routes answer it exactly as they answer a turn that does not exist.
            raise HTTPException(404)
    return Principal(tenant=TENANT, subject=account.name, claims={**account.claims, "role": account.role})


def _row(connection: sqlite3.Connection, identity: str, *, owner: str) -> dict[str, object] | None:
    row = connection.execute(
        "SELECT id, title, created FROM conversations WHERE id = ? AND owner = ?", (identity, owner)
    ).fetchone()
    return None if row is None else _document(row)


def _document(row: tuple[str, str, int]) -> dict[str, object]:
    return {"id": row[0], "title": row[1], "created": row[2]}


def _database(request: Request) -> Database:
    database = request.app.state.database
    assert isinstance(database, Database)  # noqa: S101
    return database
