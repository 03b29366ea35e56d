"""SQLite's less common outcomes: a commit that fails, neighbours that write as hard, what crashed holders left behind."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from sqlite_subject import opened
from standing_times import StandingTimes

from oneturn.backends.sqlite.database import connect as open_file
from oneturn.backends.sqlite.lane import Lane
from oneturn.backends.sqlite.retention import BITE
from oneturn.core.errors import BackendUnavailable
from oneturn.core.steps import Retention
from oneturn.core.store import Execute
from oneturn.testing.contracts import Subject


@pytest.fixture
def times() -> StandingTimes:
    return StandingTimes()


@pytest.fixture
async def subject(tmp_path: Path, times: StandingTimes) -> AsyncIterator[Subject]:
    async with opened(tmp_path / "r.db", times) as one:
        yield one


def insert(sql: str) -> Callable[[Execute], object]:
    return lambda run: run(sql, ())


async def test_a_commit_that_fails_leaves_its_whole_batch_unknown_and_the_lane_alive(tmp_path: Path) -> None:
    """A foreign key that is checked at the commit: no step is to blame, so none is told that it succeeded."""

    def opener() -> sqlite3.Connection:
        connection = open_file(tmp_path / "x.db", synchronous="FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        return connection

    lane = Lane(opener, name="test", writes=True)
    await lane.open()
    await lane.run("a", insert("CREATE TABLE x (n INTEGER PRIMARY KEY)"))
    await lane.run("b", insert("CREATE TABLE y (x INTEGER REFERENCES x (n) DEFERRABLE INITIALLY DEFERRED)"))
    before = lane.commits
    steps = [insert("INSERT INTO x VALUES (1)"), insert("INSERT INTO y VALUES (7)"), insert("INSERT INTO x VALUES (2)")]
    outcomes = await asyncio.gather(*(lane.run("c", step) for step in steps), return_exceptions=True)
    stored = await lane.run("d", lambda run: run("SELECT count(*) FROM x", ()))
    told = sum(not isinstance(outcome, BackendUnavailable) for outcome in outcomes)
    assert isinstance(outcomes[1], BackendUnavailable)
    assert stored == [(told,)]
    assert lane.commits > before
    await lane.close()


async def test_a_hint_survives_the_repetition_of_its_batch(subject: Subject) -> None:
    """Its neighbour raises, so the batch is taken back and run again: the topic is told all the same."""
    other = await subject.other()
    loop, woken = asyncio.get_running_loop(), asyncio.Event()

    def wake() -> None:
        loop.call_soon_threadsafe(woken.set)

    end = other.signals.subscribe("t", wake)
    lane: Lane = subject.backend.leases._lane  # type: ignore[attr-defined]

    def raises(run: Execute) -> None:
        raise ZeroDivisionError

    def publish(run: Execute) -> None:
        # In the lane's thread, while its batch runs: what is posted now makes the next batch, together.
        subject.backend.signals.publish("t")
        lane.post(raises, then=lambda error: None)

    await lane.run("first", publish)
    await woken.wait()
    end()


async def test_what_crashed_holders_left_behind_is_forgotten_at_the_next_start(
    subject: Subject, times: StandingTimes, tmp_path: Path
) -> None:
    await subject.backend.leases.acquire(["lapsed"], owner="a", ttl=1)
    await subject.backend.leases.acquire(["held"], owner="a", ttl=60)
    subject.elapse(2)
    await subject.other()
    with closing(sqlite3.connect(tmp_path / "r.db-leases")) as connection:
        assert connection.execute("SELECT key FROM oneturn_lease").fetchall() == [("held",)]


async def test_a_great_clean_up_goes_in_small_transactions(subject: Subject) -> None:
    """Live work gets between; what is counted is the whole."""
    records = subject.backend.records
    many = 2 * BITE + 7
    ended = await asyncio.gather(*(subject.answered(scope=f"c{number}") for number in range(many)))
    keep = Retention(events=10, results=20, tombstones=30)
    writer: Lane = records._writer  # type: ignore[attr-defined]
    for elapsed, stage in ((15, "events"), (10, "results"), (10, "tombstones")):
        subject.elapse(elapsed)
        before = writer.commits
        swept = await records.sweep(keep)
        # One event each is folded away at most: `started` makes room for the snapshot.
        assert getattr(swept, stage) == (0 if stage == "events" else many)
        assert writer.commits - before == 3
    assert await records.read(tenant="acme", id=ended[0].id) is None
    assert await records.sweep(keep) == type(swept)(events=0, results=0, tombstones=0)


WORKER = """
import asyncio, json, sys
from pathlib import Path
from oneturn.backends.sqlite import sqlite_backend
from oneturn.backends.sqlite.times import SystemBootTimes
from oneturn.core.lease import Grant
from oneturn.core.steps import Claimed
from oneturn.testing.contracts import claim_of

async def main(file, who):
    backend = await sqlite_backend(Path(file), times=SystemBootTimes())
    print("ready", flush=True)
    sys.stdin.readline()
    claimed, epochs, torn = [], [], 0

    async def one(task):
        nonlocal torn
        for number in range(15):
            answer = await backend.records.claim(
                claim_of(scope=f"s{task}-{number}", key="k", id=f"{who}-{task}-{number}", owner=f"{who}-{task}-{number}"))
            if isinstance(answer, Claimed):
                claimed.append([task, number])
            grant = await backend.leases.acquire([f"a{number}", f"b{number}"], owner=f"{who}-{task}", ttl=60)
            if isinstance(grant, Grant):
                both = [await backend.leases.inspect(f"{key}{number}") for key in "ab"]
                torn += sum(held is None or held.owner != f"{who}-{task}" for held in both)
                epochs.append(grant.fencing_token)
                await backend.leases.release(grant)

    await asyncio.gather(*(one(task) for task in range(8)))
    await backend.close()
    print(json.dumps({"claimed": claimed, "tokens": epochs, "torn": torn}), flush=True)

asyncio.run(main(sys.argv[1], sys.argv[2]))
"""


@pytest.mark.row("Q3", "Q14")
@pytest.mark.slow
def test_two_processes_that_write_as_hard_as_they_can_share_one_truth(tmp_path: Path) -> None:
    """Each key is claimed once, in one of them; no lease is torn; no fencing token is given twice; nobody is unavailable."""
    command = [sys.executable, "-c", WORKER, str(tmp_path / "r.db")]
    with ExitStack() as ending:
        workers = [
            ending.enter_context(
                subprocess.Popen([*command, who], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            )
            for who in ("one", "two")
        ]
        # Should one of them fail, the other must not be left to whatever test comes next.
        for worker in workers:
            ending.callback(worker.kill)
        for worker in workers:
            assert worker.stdout is not None
            assert worker.stdout.readline() == "ready\n"
        for worker in workers:
            assert worker.stdin is not None
            worker.stdin.write("go\n")
            worker.stdin.flush()
        told = [json.loads(worker.communicate()[0]) for worker in workers]
    claimed = sorted(tuple(pair) for one in told for pair in one["claimed"])
    tokens = [token for one in told for token in one["tokens"]]
    assert claimed == [(task, number) for task in range(8) for number in range(15)]
    assert len(set(tokens)) == len(tokens)
    assert [one["torn"] for one in told] == [0, 0]
