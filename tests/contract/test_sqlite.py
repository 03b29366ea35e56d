"""The SQLite backend keeps the contracts of the ports, and what only it promises of time and of its indexes."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlite_subject import opened, transactions
from standing_times import StandingTimes

from oneturn.backends.sqlite.leases import SQL as LEASES
from oneturn.backends.sqlite.table import SQL as RECORDS
from oneturn.core.backend import Capability
from oneturn.core.lease import Grant, Renewal
from oneturn.core.steps import Lapsed
from oneturn.testing.contracts import (
    CrossProcessContract,
    DurableContract,
    LeaseStoreContract,
    RecordStoreContract,
    ReplayCacheContract,
    SignalsContract,
    Subject,
    TransactionalRecordsContract,
    claim_of,
)
from oneturn.testing.contracts.recovery import abandon_of
from oneturn.testing.contracts.transactional import Transaction


@pytest.fixture
def times() -> StandingTimes:
    return StandingTimes()


@pytest.fixture
async def subject(tmp_path: Path, times: StandingTimes) -> AsyncIterator[Subject]:
    async with opened(tmp_path / "r.db", times) as one:
        yield one


@pytest.fixture
def transaction(tmp_path: Path) -> Transaction:
    return transactions(tmp_path / "r.db")


class TestLeases(LeaseStoreContract):
    pass


class TestRecords(RecordStoreContract):
    pass


class TestSignals(SignalsContract):
    pass


class TestReplays(ReplayCacheContract):
    pass


class TestTransactional(TransactionalRecordsContract):
    pass


class TestSharing(CrossProcessContract):
    pass


class TestDurable(DurableContract):
    pass


async def test_it_declares_what_it_can_keep(subject: Subject) -> None:
    assert subject.backend.capabilities == {
        Capability.ATOMIC_MULTI_KEY,
        Capability.CROSS_PROCESS,
        Capability.DURABLE,
        Capability.TRANSACTIONAL,
    }


@pytest.mark.case("L30")
async def test_a_step_of_the_wall_clock_changes_nothing(subject: Subject, times: StandingTimes) -> None:
    """An hour either way: neither is a lease lost nor does one last longer, and the same for records."""
    record = await subject.claimed(ttl=60)
    grant = await subject.backend.leases.acquire(["k"], owner="a", ttl=60)
    assert isinstance(grant, Grant)
    for step in (3600, -7200):
        times.step_wall(step)
        assert await subject.backend.leases.renew([grant]) == [Renewal.KEPT]
        assert round((await subject.now(record)).remaining) == 60
        due = await subject.backend.records.due(handlers=[], limit=10, unknown_after=1e9)
        assert due.lapsed == ()
    subject.elapse(61)
    assert await subject.backend.leases.renew([grant]) == [Renewal.ABSENT]
    assert (await subject.now(record)).remaining < 0


async def test_what_another_boot_vouched_for_has_lapsed(subject: Subject, times: StandingTimes) -> None:
    """Whatever this boot's clock says: it began again near zero."""
    record = await subject.claimed(ttl=1e6)
    behind = await subject.enqueued()
    grant = await subject.backend.leases.acquire(["k"], owner="a", ttl=1e6)
    assert isinstance(grant, Grant)
    times.reboot()
    records, leases = subject.backend.records, subject.backend.leases
    assert await leases.inspect("k") is None
    assert await leases.renew([grant]) == [Renewal.ABSENT]
    again = await leases.acquire(["k"], owner="b", ttl=10)
    assert isinstance(again, Grant)
    assert again.fencing_token > grant.fencing_token
    due = await records.due(handlers=["chat"], limit=10, unknown_after=1e9)
    assert [[one.id for one in found] for found in (due.startable, due.lapsed)] == [[behind.id], [record.id]]
    lapsed = await records.claim(claim_of())
    assert isinstance(lapsed, Lapsed)
    await records.abandon(abandon_of(lapsed.record))
    assert await subject.kinds(record) == ["started", "abandoned"]


async def test_a_mark_of_another_boot_has_passed(subject: Subject, times: StandingTimes) -> None:
    await subject.backend.leases.acquire(["k"], owner="a", ttl=10)
    assert await subject.backend.leases.revoke("k", mark_for=1e6)
    times.reboot()
    assert isinstance(await subject.backend.leases.acquire(["k"], owner="a", ttl=10), Grant)


def _leases(folder: Path) -> int:
    with closing(sqlite3.connect(folder / "r.db-leases")) as connection:
        return int(connection.execute("SELECT COUNT(*) FROM oneturn_lease").fetchone()[0])


async def test_what_was_released_or_lapsed_long_ago_leaves_no_row(subject: Subject, tmp_path: Path) -> None:
    """Released: at once. Crashed holders' keys: when a process opens the file. The tokens go on."""
    leases = subject.backend.leases
    for number in range(50):
        grant = await leases.acquire([f"k{number}", f"l{number}"], owner="a", ttl=10)
        assert isinstance(grant, Grant)
        await leases.release(grant)
    assert _leases(tmp_path) == 0
    for number in range(10):
        await leases.acquire([f"k{number}"], owner="a", ttl=10)
    last = await leases.acquire(["long"], owner="a", ttl=1000)
    subject.elapse(11)
    after = (await subject.reopen()).leases
    assert _leases(tmp_path) == 1
    assert isinstance(last, Grant)
    new = await after.acquire(["k0"], owner="b", ttl=10)
    assert isinstance(new, Grant)
    assert new.fencing_token > last.fencing_token


WHOLE = {"prune", "newest_signal", "next_token"}
"""Statements that may read their whole table: once per process, the end of an index, a table of one row."""


@pytest.mark.parametrize(
    ("file", "name"),
    [("r.db", name) for name in RECORDS] + [("r.db-leases", name) for name in LEASES if name not in WHOLE],
)
async def test_no_statement_reads_a_whole_table(subject: Subject, tmp_path: Path, file: str, name: str) -> None:
    """What a million records cost is what a thousand cost. (A scan of a partial index reads what waits or runs.)"""
    sql = (RECORDS if file == "r.db" else LEASES)[name]
    with closing(sqlite3.connect(tmp_path / file)) as connection:
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", (None,) * sql.count("?"))]
    assert [step for step in plan if re.match(r"SCAN (?!json_each)", step) and " INDEX " not in step] == []
