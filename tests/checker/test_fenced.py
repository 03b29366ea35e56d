"""I1, I4 and I11 of an application's own rows."""

from __future__ import annotations

from dataclasses import replace

from checker.build import BOUNDS, broken, record
from oneturn.core.status import Status
from oneturn.testing.evidence import Evidence, Fenced, Final


def row(turn: str = "t1", *, epoch: int = 1, finishes: bool = False) -> Fenced:
    return Fenced(tenant="a", scope="s", turn=turn, epoch=epoch, finishes=finishes)


def seen(*rows: Fenced, refused: tuple[Fenced, ...] = (), **finals: Final) -> Evidence:
    return Evidence(bounds=BOUNDS, fenced=list(rows), refused_by_fence=list(refused), finals=finals)


def ended(turn: str, *, epoch: int, status: Status = Status.SUCCEEDED) -> Final:
    ends = replace(record(turn), epoch=epoch, status=status)
    return Final(record=ends, events=(), answered_by=turn if status is Status.SUCCEEDED else "")


def rows_broken(evidence: Evidence) -> set[str]:
    """Those of rows alone: the finals here have no logs, which I3 and I12 rightly mind."""
    return broken(evidence) & {"I1", "I4", "I11"}


def test_rows_of_one_conversation_are_committed_in_the_order_of_their_epochs() -> None:
    assert rows_broken(seen(row(epoch=1), row("t2", epoch=2), row("t2", epoch=2))) == set()
    assert rows_broken(seen(row("t2", epoch=2), row(epoch=1))) == {"I1"}


def test_a_row_that_finishes_its_turn_is_there_once_and_with_it() -> None:
    finishing = row(epoch=3, finishes=True)
    assert rows_broken(seen(finishing, t1=ended("t1", epoch=3))) == set()
    assert rows_broken(seen(finishing, finishing, t1=ended("t1", epoch=3))) == {"I4"}
    assert rows_broken(seen(finishing, t1=ended("t1", epoch=4))) == {"I4"}
    assert rows_broken(seen(finishing, t1=ended("t1", epoch=3, status=Status.STOPPED))) >= {"I4"}


def test_nothing_of_a_refused_commit_is_there() -> None:
    assert rows_broken(seen(row("t2", epoch=2), refused=(row(),))) == set()
    assert rows_broken(seen(row(), refused=(row(),))) == {"I11"}
