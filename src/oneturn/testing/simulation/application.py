"""An application beside the records: its own table in their database, its own transactions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from oneturn.testing.evidence import Fenced
from oneturn.testing.simulation.database import Database

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from oneturn.testing.simulation.world import World


@contextmanager
def transaction(world: World, database: Database) -> Iterator[Session]:
    """A session's transaction: committed at the end, with the steps that the library took in it; else none of it was."""
    from sqlalchemy.orm import Session  # noqa: PLC0415 - an extra, needed by this world alone

    with Session(database.engine()) as session:
        try:
            yield session
            session.commit()
        except BaseException:
            session.rollback()
            world.servers.rolled_back()
            raise
        world.servers.committed()


def note(session: Session, row: Fenced) -> None:
    """The application's own row."""
    from sqlalchemy import text  # noqa: PLC0415 - as above

    session.execute(
        text("INSERT INTO note VALUES (:tenant, :scope, :turn, :epoch, :finishes)"),
        {
            "tenant": row.tenant,
            "scope": row.scope,
            "turn": row.turn,
            "epoch": row.epoch,
            "finishes": row.finishes,
        },
    )


def notes(database: Database) -> list[Fenced]:
    """What the application's table holds, in the order of the commits."""
    from sqlalchemy import text  # noqa: PLC0415 - as above

    with database.engine().connect() as connection:
        rows = connection.execute(text("SELECT tenant, scope, turn, epoch, finishes FROM note ORDER BY rowid"))
        return [
            Fenced(tenant=tenant, scope=scope, turn=turn, epoch=epoch, finishes=bool(finishes))
            for tenant, scope, turn, epoch, finishes in rows
        ]
