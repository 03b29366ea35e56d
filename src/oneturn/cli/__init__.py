"""The command `oneturn`: what operators do by hand."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from importlib.metadata import version

from pydantic import ValidationError

from oneturn.core.errors import OneturnError
from oneturn.runtime.settings import Settings
from oneturn.wiring import connect, migrations

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit status is 0, or 1 with a sentence on standard error."""
    parser = argparse.ArgumentParser(prog="oneturn", description="One execution per question.")
    parser.add_argument("--version", action="version", version=f"oneturn {version('oneturn')}")
    commands = parser.add_subparsers(dest="command", required=True)
    migrate = commands.add_parser("migrate", help="bring the records' database to this version's schema")
    migrate.add_argument("--records", metavar="URL", help="default: ONETURN_RECORDS")
    migrate.add_argument("--sql", action="store_true", help="print the statements instead; connects to nothing")
    chosen = parser.parse_args(arguments)
    try:
        url = chosen.records or Settings().records
        if chosen.sql:
            sys.stdout.write(migrations(url, setting="--records"))
        else:
            asyncio.run(_migrate(url))
    except (OneturnError, ValidationError) as error:
        sys.stderr.write(f"oneturn: {error}\n")
        return 1
    return 0


async def _migrate(url: str) -> None:
    # Opening a backend brings its schema up to date, whoever opens it; this command is for doing so before a deploy.
    backend = await connect(url, setting="--records")
    await backend.close()
    sys.stdout.write(f"oneturn: the schema of the {backend.name} backend is up to date\n")
