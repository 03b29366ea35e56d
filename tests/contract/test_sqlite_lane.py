"""The SQLite lanes: steps that wait commit together, fail alone, and are never lost; somebody else's lock is only a delay."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from sqlite_subject import opened
from standing_times import StandingTimes

from oneturn.backends.sqlite import patience
from oneturn.backends.sqlite.database import connect as open_file
from oneturn.backends.sqlite.lane import Lane
from oneturn.core.errors import BackendUnavailable
from oneturn.core.lease import Grant, Renewal
from oneturn.core.steps import Claimed
from oneturn.core.store import Execute
from oneturn.testing.contracts import Subject, claim_of
from oneturn.testing.contracts.loops import elsewhere


@pytest.fixture
async def subject(tmp_path: Path) -> AsyncIterator[Subject]:
    async with opened(tmp_path / "r.db", StandingTimes()) as one:
        yield one


@pytest.fixture
async def lane(tmp_path: Path) -> AsyncIterator[Lane]:
    lane = Lane(lambda: open_file(tmp_path / "x.db", synchronous="FULL"), name="test", writes=True)
    await lane.open()
    await lane.run("create", lambda run: run("CREATE TABLE x (n INTEGER)", ()))
    yield lane
    await lane.close()


FOREIGN = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
sys.stdin.readline()
connection.execute("ROLLBACK")
connection.close()
print("free", flush=True)
sys.stdin.readline()
"""


@contextmanager
def locked_by_another_process(file: Path) -> Iterator[Callable[[], None]]:
    """A real process holds the write lock of the file until it is told to let go."""
    command = [sys.executable, "-c", FOREIGN, str(file)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        told, heard = process.stdin, process.stdout
        assert heard.readline() == "locked\n"

        def let_go() -> None:
            told.write("go\n")
            told.flush()
            assert heard.readline() == "free\n"

        try:
            yield let_go
        finally:
            process.kill()


def insert(number: int) -> Callable[[Execute], int]:
    def step(run: Execute) -> int:
        run("INSERT INTO x VALUES (?)", (number,))
        return number

    return step


def culprit(run: Execute) -> None:
    run("INSERT INTO x VALUES (?)", (1000,))
    raise ZeroDivisionError


async def _stored(lane: Lane) -> list[int]:
    return [number for (number,) in await lane.run("look", lambda run: run("SELECT n FROM x ORDER BY n", ()))]


async def test_two_hundred_steps_take_far_fewer_commits_and_each_has_its_answer(lane: Lane) -> None:
    before = lane.commits
    assert await asyncio.gather(*(lane.run("insert", insert(n)) for n in range(200))) == list(range(200))
    assert 1 <= lane.commits - before <= 20
    assert await _stored(lane) == list(range(200))


async def test_two_hundred_claims_take_far_fewer_commits(subject: Subject) -> None:
    writer: Lane = subject.backend.records._writer  # type: ignore[attr-defined]
    before = writer.commits
    claims = [claim_of(scope=f"c{number}") for number in range(200)]
    answers = await asyncio.gather(*(subject.backend.records.claim(claim) for claim in claims))
    assert {type(answer) for answer in answers} == {Claimed}
    assert writer.commits - before <= 40


async def test_a_step_that_raises_fails_alone(lane: Lane) -> None:
    """Its neighbours in the batch are stored, once each; what it did itself is not."""
    steps = [insert(n) if n != 77 else culprit for n in range(150)]
    outcomes = await asyncio.gather(*(lane.run("insert", step) for step in steps), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes if not isinstance(outcome, int)] == [ZeroDivisionError]
    assert await _stored(lane) == [n for n in range(150) if n != 77]


async def test_a_broken_statement_is_unavailable_and_fails_alone(lane: Lane) -> None:
    outcomes = await asyncio.gather(
        lane.run("a", insert(1)),
        lane.run("b", lambda run: run("INSERT INTO nowhere VALUES (1)", ())),
        lane.run("c", insert(2)),
        return_exceptions=True,
    )
    assert [type(outcome) for outcome in outcomes] == [int, BackendUnavailable, int]
    assert await _stored(lane) == [1, 2]


@pytest.mark.case("O8")
async def test_callers_that_are_cancelled_lose_their_answers_but_not_their_steps(lane: Lane) -> None:
    asking = [asyncio.ensure_future(lane.run("insert", insert(n))) for n in range(100)]  # noqa: TID251 - awaited below
    await asyncio.sleep(0)
    for one in asking[::2]:
        one.cancel()
    outcomes = await asyncio.gather(*asking, return_exceptions=True)
    assert outcomes[1::2] == list(range(1, 100, 2))
    assert await _stored(lane) == list(range(100))


async def test_a_loop_that_is_gone_takes_nobody_elses_answer(lane: Lane) -> None:
    """Its steps are done all the same."""

    async def leave() -> None:
        for number in range(50):
            asyncio.ensure_future(lane.run("insert", insert(number)))  # noqa: TID251, RUF006 - left behind on purpose
        await asyncio.sleep(0)

    await elsewhere(leave)
    assert await lane.run("insert", insert(50)) == 50
    assert await _stored(lane) == list(range(51))


async def test_what_must_be_first_goes_first(lane: Lane) -> None:
    order = list[str]()
    asked = [lane.run("a", lambda run: order.append("waits")) for _ in range(20)]
    first = lane.run("b", lambda run: order.append("first"), first=True)
    await asyncio.gather(*asked, first)
    assert order.index("first") < 20


async def test_closing_finishes_what_waits_and_refuses_what_comes_later(lane: Lane) -> None:
    asking = [asyncio.ensure_future(lane.run("insert", insert(n))) for n in range(100)]  # noqa: TID251 - awaited below
    await asyncio.sleep(0)
    closing_it = asyncio.gather(lane.close(), lane.close())
    assert await asyncio.gather(*asking) == list(range(100))
    await closing_it
    with pytest.raises(BackendUnavailable, match="closed"):
        await lane.run("late", insert(100))


async def test_a_backend_that_closes_keeps_what_was_asked_before(subject: Subject) -> None:
    claims = [claim_of(scope=f"c{number}") for number in range(50)]
    asking = [asyncio.ensure_future(subject.backend.records.claim(claim)) for claim in claims]  # noqa: TID251 - awaited below
    await asyncio.sleep(0)
    await subject.backend.close()
    assert {type(answer) for answer in await asyncio.gather(*asking)} == {Claimed}
    again = await subject.other()
    assert [await again.records.find(claim.identity) is not None for claim in claims] == [True] * 50


@pytest.mark.slow
async def test_somebodys_long_transaction_does_not_stop_renewals_or_reads(subject: Subject, tmp_path: Path) -> None:
    """The records are locked by another process; the leases live in a file of their own."""
    record = await subject.claimed()
    grant = await subject.backend.leases.acquire(["k"], owner="a", ttl=60)
    assert isinstance(grant, Grant)
    with locked_by_another_process(tmp_path / "r.db") as let_go:
        claiming = asyncio.ensure_future(subject.backend.records.claim(claim_of()))  # noqa: TID251 - awaited below
        for _ in range(5):
            subject.elapse(20)
            assert await subject.backend.leases.acquire(["k"], owner="a", ttl=60) == grant
            assert await subject.backend.leases.renew([grant]) == [Renewal.KEPT]
        assert (await subject.now(record)).id == record.id
        assert not claiming.done()
        let_go()
        await claiming


@pytest.mark.slow
async def test_somebodys_endless_transaction_makes_records_unavailable_and_nothing_worse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unknown, then repeated: nothing is stored twice, nothing half, and the file is whole."""
    monkeypatch.setattr(patience, "PATIENCE", 0.05)
    async with opened(tmp_path / "r.db", StandingTimes()) as subject:
        claims = [claim_of(scope=f"c{number}") for number in range(5)]
        with locked_by_another_process(tmp_path / "r.db") as let_go:
            answers = await asyncio.gather(
                *(subject.backend.records.claim(claim) for claim in claims), return_exceptions=True
            )
            assert {type(answer) for answer in answers} == {BackendUnavailable}
            assert await subject.backend.records.find(claims[0].identity) is None
            let_go()
        for claim in claims:
            answer = await subject.backend.records.claim(claim)
            assert isinstance(answer, Claimed)
            assert (answer.record.epoch, await subject.kinds(answer.record)) == (1, ["started"])
    with closing(sqlite3.connect(tmp_path / "r.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
