"""`python -m querydata serve`: prepares the data, says what it does and how to try it, then serves."""

from __future__ import annotations

import argparse
import contextlib
import getpass
import ipaddress
import logging
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import uvicorn

from oneturn import Gate
from querydata import campus
from querydata.access import AccessInvalid
from querydata.accounts import DEMO_ACCOUNTS, Accounts, Role
from querydata.app import create_app
from querydata.assembly import OPENAI, access_of, campus_file, campus_source, model_of
from querydata.database import Database
from querydata.settings import Settings

_EXAMPLE = "查询当前仍有挂科的学生"


class _Server(uvicorn.Server):
    """Says how to try the service once it really answers; lets go of those who watch when it is to end."""

    def __init__(self, config: uvicorn.Config, *, gate: Gate, demo: bool) -> None:
        super().__init__(config)
        self._gate = gate
        self._demo = demo

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """See `uvicorn.Server.startup`."""
        await super().startup(sockets)
        if self.started:
            _say(_welcome(f"http://{self.config.host}:{self.config.port}", demo=self._demo))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """See `uvicorn.Server.shutdown`."""
        # It waits for open connections before the application learns that it ends, and a stream never ends by itself.
        self._gate.drain()
        await super().shutdown(sockets)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; answers the exit code."""
    parser = argparse.ArgumentParser(prog="querydata", description="Ask campus data in Chinese or English.")
    commands = parser.add_subparsers(dest="command", required=True)
    data = argparse.ArgumentParser(add_help=False)
    data.add_argument(
        "--data", type=Path, help="folder of the databases (default: QUERYDATA_DATA_DIR, or var/querydata)"
    )
    serve = commands.add_parser("serve", help="serve the page and the API", parents=[data])
    serve.add_argument("--host", default="127.0.0.1")
    serve.add_argument("--port", type=int, default=8000)
    serve.add_argument(
        "--demo",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="accounts whose passwords everybody knows (default: only on a loopback address)",
    )
    account = commands.add_parser("account", help="create an account, or change its password", parents=[data])
    account.add_argument("name")
    account.add_argument("--role", choices=get_args(Role), required=True)
    account.add_argument(
        "--claim",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="whose rows the account may ask about: department_id=3 for a dean, student_id=7 for a student",
    )
    given = parser.parse_args(arguments)
    try:
        return _serve(given) if given.command == "serve" else _account(given)
    except AccessInvalid as error:
        _say(str(error))
        return 1


def _serve(given: argparse.Namespace) -> int:
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    settings = _settings(given)
    demo = settings.demo and _loopback(given.host) if given.demo is None else given.demo
    settings = settings.model_copy(update={"demo": demo})
    access_of(settings)  # a mistake in it is told before anything is built
    _say(f"QueryData: data in {settings.data_dir.resolve()}")
    if demo and not _loopback(given.host):
        _say("  warning: the demo accounts' passwords are public, and this address may be reached by others")
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    path = campus_file(settings)
    if not path.exists():
        _say("  building the campus database: departments, students, courses, grades (once; some seconds) …")
        begun = time.monotonic()
        campus.build(path)
        _say(f"  built in {time.monotonic() - begun:.1f} s, {path.stat().st_size / 1e6:.0f} MB")
    _say(f"  model: {_model(settings)}")
    app = create_app(settings, source=campus_source(settings, path), model=model_of(settings, path))
    config = uvicorn.Config(
        app,
        host=given.host,
        port=given.port,
        log_level="warning",
        access_log=False,
        # Streams end when the gate drains; what still holds a connection after this is cut off.
        timeout_graceful_shutdown=5,
    )
    server = _Server(config, gate=app.state.gate, demo=demo)
    with contextlib.suppress(KeyboardInterrupt):  # uvicorn raises the signal again once it has ended
        server.run()
    return 0 if server.started else 1


def _account(given: argparse.Namespace) -> int:
    settings = _settings(given)
    claims = {name: value for name, _, value in (claim.partition("=") for claim in given.claim)}
    needed = access_of(settings).claim(given.role)
    if {name for name, value in claims.items() if value} != ({needed} if needed else set()):
        wanted = f"exactly --claim {needed}=…" if needed else "no claim"
        _say(f"A {given.role} needs {wanted}; nothing was changed.")
        return 1
    # Never an argument: arguments are seen in the list of processes and kept in a shell's history.
    password = getpass.getpass(f"Password for {given.name}: ") if sys.stdin.isatty() else sys.stdin.readline().strip()
    if not password:
        _say("An empty password is none; nothing was changed.")
        return 1
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    database = Database(settings.data_dir / "querydata.db")
    database.prepare()
    Accounts(database).put(given.name, role=given.role, password=password, claims=claims)
    _say(f"{given.name} may sign in as {given.role}.")
    return 0


def _settings(given: argparse.Namespace) -> Settings:
    return Settings().model_copy(update={} if given.data is None else {"data_dir": given.data})


def _model(settings: Settings) -> str:
    if settings.model == "embedded":
        return "embedded parser (no key, no download)"
    return f"{settings.model_name} at {settings.model_base_url or OPENAI}"


def _welcome(url: str, *, demo: bool) -> str:
    lines = [f"\nReady: {url}   (stop with Ctrl+C)\n"]
    if not demo:
        lines.append("There are no demo accounts in this mode: `querydata account NAME --role …` makes one.")
        return "\n".join(lines)
    lines.append("Demo accounts (name / password):")
    lines += [f"  {account.name:<8} {account.password}" for account in DEMO_ACCOUNTS]
    lines.append(f"\nAsk in the page, for example: {_EXAMPLE}\nor with curl:")
    lines.append(f"  curl -s -c jar -d 'name=dean&password=dean-demo' {url}/sign-in")
    lines.append(f"  ID=$(curl -s -b jar -X POST {url}/api/conversations | cut -d'\"' -f4)")
    lines.append(f"  curl -s -b jar {url}/api/conversations/$ID/turns -H 'Idempotency-Key: my-first-question' \\")
    lines.append(f"       -H 'Content-Type: application/json' -d '{{\"text\": \"{_EXAMPLE}\"}}'")
    return "\n".join(lines)


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
