"""Signing in: the cookie, what a guesser learns, and how often he may guess."""

from __future__ import annotations

import asyncio
import io
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from querydata.__main__ import main
from querydata.accounts import TRIES_PER_ACCOUNT, Accounts
from querydata.auth import session_secret
from querydata.database import Database
from querydata.settings import Settings
from querydata_app.starting import start

WRONG = {"name": "dean", "password": "guess"}
RIGHT = {"name": "dean", "password": "dean-demo"}


async def test_a_form_signs_in_with_a_cookie_that_scripts_and_other_sites_cannot_use(client: httpx.AsyncClient) -> None:
    answer = await client.post("/sign-in", data=RIGHT)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    assert (await client.get("/api/me")).json() == {"name": "dean", "role": "dean"}


async def test_the_page_is_answered_json_instead_of_a_redirect(client: httpx.AsyncClient) -> None:
    answer = await client.post("/sign-in", data=RIGHT, headers={"Accept": "application/json"})
    assert (answer.status_code, answer.json()) == (200, {"name": "dean"})


async def test_without_a_sign_in_the_api_answers_401(client: httpx.AsyncClient) -> None:
    for path in ("/api/me", "/api/conversations", "/api/conversations/c/turns", "/api/conversations/c/events"):
        answer = await client.get(path)
        assert answer.status_code == 401
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["type"] == "urn:querydata:problem:sign-in-required"


async def test_a_wrong_password_and_an_unknown_name_are_answered_alike(client: httpx.AsyncClient) -> None:
    wrong = await client.post("/sign-in", data=WRONG)
    unknown = await client.post("/sign-in", data={"name": "nobody", "password": "guess"})
    assert wrong.status_code == unknown.status_code == 401
    assert wrong.content == unknown.content
    assert "set-cookie" not in wrong.headers


async def test_after_too_many_guesses_even_the_right_password_must_wait(client: httpx.AsyncClient) -> None:
    for _ in range(TRIES_PER_ACCOUNT):
        assert (await client.post("/sign-in", data=WRONG)).status_code == 401
    refused = await client.post("/sign-in", data=RIGHT)
    assert refused.status_code == 429
    assert 0 < int(refused.headers["retry-after"]) <= 300
    other = await client.post("/sign-in", data={"name": "student", "password": "student-demo"})
    assert other.status_code == 303


async def test_parallel_guesses_are_counted_before_they_are_judged(client: httpx.AsyncClient) -> None:
    answers = await asyncio.gather(*(client.post("/sign-in", data=WRONG) for _ in range(12)))
    assert [answer.status_code for answer in answers].count(401) == TRIES_PER_ACCOUNT


async def test_a_success_forgives_the_guesses_before_it(client: httpx.AsyncClient) -> None:
    for _ in range(TRIES_PER_ACCOUNT - 1):
        await client.post("/sign-in", data=WRONG)
    assert (await client.post("/sign-in", data=RIGHT)).status_code == 303
    assert (await client.post("/sign-in", data=WRONG)).status_code == 401


async def test_signing_out_ends_every_copy_of_the_cookie(
    dean: httpx.AsyncClient, browse: Callable[[], httpx.AsyncClient]
) -> None:
    copy = browse()
    copy.cookies.update(dean.cookies)
    assert (await copy.get("/api/me")).status_code == 200
    assert (await dean.post("/sign-out")).status_code == 303
    assert (await dean.get("/api/me")).status_code == 401
    assert (await copy.get("/api/me")).status_code == 401


async def test_a_cookie_that_another_key_signed_is_nobody(dean: httpx.AsyncClient, tmp_path: Path) -> None:
    data, _, signature = dean.cookies["querydata"].partition(".")
    dean.cookies.set("querydata", f"{data}.{signature[::-1]}")
    assert (await dean.get("/api/me")).status_code == 401


def test_the_key_is_made_once_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        keys = set(pool.map(session_secret, [tmp_path] * 8))
    assert len(keys) == 1
    assert len(keys.pop()) >= 48
    assert [path.name for path in tmp_path.iterdir()] == ["session.key"]
    assert stat.S_IMODE((tmp_path / "session.key").stat().st_mode) == 0o600


def test_passwords_are_kept_as_argon2_hashes(settings: Settings) -> None:
    start(settings)
    with Database(settings.data_dir / "querydata.db").read() as connection:
        hashes = [found for (found,) in connection.execute("SELECT password_hash FROM accounts")]
    assert len(hashes) == 3
    assert all(found.startswith("$argon2id$") for found in hashes)


def test_without_demo_mode_the_passwords_that_everybody_knows_are_gone(tmp_path: Path) -> None:
    start(Settings(data_dir=tmp_path, demo=True))
    accounts = Accounts(Database(tmp_path / "querydata.db"))
    accounts.put("dean", role="dean", password="my own")
    start(Settings(data_dir=tmp_path, demo=False))
    assert accounts.sign_in("admin", "admin-demo", address="a") is None
    assert isinstance(accounts.sign_in("dean", "my own", address="a"), str)


def test_an_operator_makes_an_account_without_showing_its_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("hidden words\n"))
    asked = ["account", "li", "--role", "student", "--claim", "student_id=9", "--data", str(tmp_path)]
    assert main(asked) == 0
    accounts = Accounts(Database(tmp_path / "querydata.db"))
    assert isinstance(accounts.sign_in("li", "hidden words", address="a"), str)
    assert "hidden" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("role", "claims"),
    [
        ("student", []),
        ("student", ["student_id="]),
        ("student", ["department_id=1"]),
        ("dean", ["department_id=1", "role=admin"]),
        ("admin", ["student_id=1"]),
    ],
)
def test_an_account_without_the_claim_of_its_role_is_not_made(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    role: str,
    claims: list[str],
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("hidden words\n"))
    given = [part for claim in claims for part in ("--claim", claim)]
    assert main(["account", "li", "--role", role, *given, "--data", str(tmp_path)]) == 1
    assert "nothing was changed" in capsys.readouterr().out
    assert not (tmp_path / "querydata.db").exists()


def test_a_demo_account_of_an_older_version_gets_its_claims(settings: Settings) -> None:
    start(settings)
    database = Database(settings.data_dir / "querydata.db")
    with database.begin() as connection:
        connection.execute("DELETE FROM account_claims")
    Accounts(database).put("student", role="student", password="my own")
    start(settings)
    with database.read() as connection:
        claims = connection.execute("SELECT account, name, value FROM account_claims").fetchall()
    assert claims == [("dean", "department_id", "1")]
