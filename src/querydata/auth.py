"""Signing in and out, and who a request comes from."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Depends, Form
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from querydata.accounts import Account, Accounts, TooManyAttempts
from querydata.problems import Refusal

_SIGN_IN = "sign_in"

router = APIRouter()


def current_account(request: Request) -> Account:
    """Who asks; 401 if nobody is signed in."""
    token = request.session.get(_SIGN_IN)
    account = _accounts(request).signed_in(token) if isinstance(token, str) else None
    if account is None:
        raise Refusal("sign-in-required", "Sign in first", status=401)
    return account


CurrentAccount = Annotated[Account, Depends(current_account)]


@router.post("/sign-in")
def sign_in(
    request: Request,
    name: Annotated[str, Form(max_length=64)],
    password: Annotated[str, Form(max_length=256)],
) -> Response:
    """Take a form's name and password; answer with the session's cookie."""
    address = request.client.host if request.client else ""
    match _accounts(request).sign_in(name, password, address=address):
        case None:
            raise Refusal("wrong-credentials", "Wrong name or password", status=401)
        case TooManyAttempts(retry_after=wait):
            raise Refusal(
                "too-many-attempts",
                "Too many attempts",
                status=429,
                detail=f"Too many failed attempts: try again in {wait} s",
                retry_after=wait,
            )
        case str(token):
            request.session[_SIGN_IN] = token
    if "application/json" in request.headers.get("accept", ""):
        return JSONResponse({"name": name})
    return RedirectResponse("/", status_code=303)


@router.post("/sign-out")
def sign_out(request: Request) -> Response:
    """End this browser's sign-in."""
    if isinstance(token := request.session.get(_SIGN_IN), str):
        _accounts(request).sign_out(token)
    request.session.clear()
    return RedirectResponse("/", status_code=303)


@router.get("/api/me")
def me(account: CurrentAccount) -> dict[str, str]:
    """Who is signed in."""
    return {"name": account.name, "role": account.role}


def session_secret(folder: Path) -> str:
    """The key that signs cookies: made once per data folder, readable by its owner only."""
    path = folder / "session.key"
    draft = folder / f"session.key.{secrets.token_hex(8)}"
    if not path.exists():
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(secrets.token_urlsafe(48))
        try:
            # A link is made whole or not at all: of two processes that start together, both read the winner's key.
            path.hardlink_to(draft)
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    return path.read_text(encoding="ascii")


def _accounts(request: Request) -> Accounts:
    accounts = request.app.state.accounts
    assert isinstance(accounts, Accounts)  # noqa: S101
    return accounts
