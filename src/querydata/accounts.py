"""Who may sign in, who has, and how often a wrong password may be tried."""

from __future__ import annotations

import hashlib
import math
import secrets
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, cast

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from querydata.database import NOW, Database

Role = Literal["admin", "dean", "student"]

SIGN_IN_LASTS: Final = 14 * 24 * 3600
"""Seconds after which a browser must sign in again."""
ATTEMPT_WINDOW: Final = 300
"""Seconds for which a failed attempt counts."""
TRIES_PER_ACCOUNT: Final = 5
"""Failed attempts of one address on one account in a window."""
TRIES_PER_ADDRESS: Final = 30
"""Failed attempts of one address on all accounts in a window."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Somebody who may sign in."""

    name: str
    role: Role
    claims: Mapping[str, str] = field(default_factory=dict)
    """Whose rows the role sees: a department's id, a student's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoAccount:
    """An account whose password everybody knows: for a demonstration on one's own machine."""

    name: str
    role: Role
    password: str
    claims: Mapping[str, str] = field(default_factory=dict)


DEMO_ACCOUNTS: Final[Sequence[DemoAccount]] = (
    DemoAccount(name="admin", role="admin", password="admin-demo"),  # noqa: S106
    DemoAccount(name="dean", role="dean", password="dean-demo", claims={"department_id": "1"}),  # noqa: S106
    DemoAccount(name="student", role="student", password="student-demo", claims={"student_id": "7"}),  # noqa: S106
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TooManyAttempts:
    """Too many failures came from one address; waiting `retry_after` seconds helps."""

    retry_after: int


class Accounts:
    """The accounts in QueryData's database. Every call blocks for a moment."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._hasher = PasswordHasher()
        # Compared with when there is no such account, so that the time of an answer does not tell which names exist.
        self._nobody = self._hasher.hash(secrets.token_urlsafe())

    def put(self, name: str, *, role: Role, password: str, claims: Mapping[str, str] | None = None) -> None:
        """Create an account, or change its role, password and claims."""
        hashed = self._hasher.hash(password)
        with self._database.begin() as connection:
            connection.execute(
                "INSERT INTO accounts (name, role, password_hash) VALUES (?, ?, ?)"
                " ON CONFLICT (name) DO UPDATE SET role = excluded.role, password_hash = excluded.password_hash",
                (name, role, hashed),
            )
            _write_claims(connection, name, claims or {})

    def seed_demo(self) -> None:
        """Create the demo accounts that are not there, and give those of an older version their claims."""
        with self._database.read() as connection:
            known = {name for (name,) in connection.execute("SELECT name FROM accounts")}
            complete = {name for (name,) in connection.execute("SELECT DISTINCT account FROM account_claims")}
        for account in DEMO_ACCOUNTS:
            if account.name not in known:
                self.put(account.name, role=account.role, password=account.password, claims=account.claims)
            elif account.claims and account.name not in complete and self._matches(account.name, account.password):
                with self._database.begin() as connection:
                    _write_claims(connection, account.name, account.claims)

    def drop_demo(self) -> None:
        """Remove the demo accounts that still have the password everybody knows."""
        for account in DEMO_ACCOUNTS:
            if self._matches(account.name, account.password):
                with self._database.begin() as connection:
                    connection.execute("DELETE FROM accounts WHERE name = ?", (account.name,))

    def sign_in(self, name: str, password: str, *, address: str) -> str | TooManyAttempts | None:
        """A token that stands for this sign-in; None: wrong name or password."""
        if (wait := self._reserve_attempt(name, address=address)) is not None:
            return wait
        if not self._matches(name, password):
            return None
        token = secrets.token_urlsafe(32)
        with self._database.begin() as connection:
            connection.execute("DELETE FROM attempts WHERE address = ? AND account = ?", (address, name))
            connection.execute(f"DELETE FROM sign_ins WHERE expires <= {NOW}")
            connection.execute(
                f"INSERT INTO sign_ins (token_hash, account, expires) VALUES (?, ?, {NOW} + ?)",
                (_hash(token), name, SIGN_IN_LASTS),
            )
        return token

    def sign_out(self, token: str) -> None:
        """End a sign-in: a copy of its cookie is worth nothing from now on."""
        with self._database.begin() as connection:
            connection.execute("DELETE FROM sign_ins WHERE token_hash = ?", (_hash(token),))

    def signed_in(self, token: str) -> Account | None:
        """Whose sign-in this is, while it lasts."""
        with self._database.read() as connection:
            row = connection.execute(
                "SELECT name, role FROM sign_ins JOIN accounts ON name = account"
                f" WHERE token_hash = ? AND expires > {NOW}",
                (_hash(token),),
            ).fetchone()
            if row is None:
                return None
            claims = connection.execute(
                "SELECT name, value FROM account_claims WHERE account = ?", (row[0],)
            ).fetchall()
        return Account(name=row[0], role=cast("Role", row[1]), claims=dict(claims))

    def _reserve_attempt(self, name: str, *, address: str) -> TooManyAttempts | None:
        # Counted before the password is looked at: parallel guesses cannot all pass a check that comes first.
        with self._database.begin() as connection:
            connection.execute(f"DELETE FROM attempts WHERE at <= {NOW} - ?", (ATTEMPT_WINDOW,))
            here, everywhere, oldest = connection.execute(
                f"SELECT count(*) FILTER (WHERE account = ?), count(*), min(at) + ? - {NOW}"
                " FROM attempts WHERE address = ?",
                (name, ATTEMPT_WINDOW, address),
            ).fetchone()
            if here >= TRIES_PER_ACCOUNT or everywhere >= TRIES_PER_ADDRESS:
                return TooManyAttempts(retry_after=max(1, math.ceil(oldest)))
            connection.execute(f"INSERT INTO attempts (address, account, at) VALUES (?, ?, {NOW})", (address, name))
        return None

    def _matches(self, name: str, password: str) -> bool:
        with self._database.read() as connection:
            row = connection.execute("SELECT password_hash FROM accounts WHERE name = ?", (name,)).fetchone()
        try:
            return self._hasher.verify(self._nobody if row is None else row[0], password) and row is not None
        except (VerificationError, InvalidHashError):
            return False


def _write_claims(connection: sqlite3.Connection, account: str, claims: Mapping[str, str]) -> None:
    connection.execute("DELETE FROM account_claims WHERE account = ?", (account,))
    rows = [(account, name, value) for name, value in claims.items()]
    connection.executemany("INSERT INTO account_claims (account, name, value) VALUES (?, ?, ?)", rows)


def _hash(token: str) -> str:
    # The token is 256 random bits: a plain hash keeps a copied database from signing anybody in.
    return hashlib.sha256(token.encode()).hexdigest()
