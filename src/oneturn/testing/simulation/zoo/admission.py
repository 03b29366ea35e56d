"""Planted bugs of admission: one decision about a message, and what is answered without running anything."""
# ruff: noqa: SLF001, ARG001, ARG002 - a mutant sits inside of what it mutates, and leaves out what it should have looked at

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, cast
from unittest.mock import patch

from oneturn.backends.memory.replay import MemoryReplays
from oneturn.backends.memory.table import MemoryTable
from oneturn.core import transitions
from oneturn.core.errors import BackendUnavailable, OneturnError, TurnFailed
from oneturn.core.identity import Identity
from oneturn.core.lease import Held
from oneturn.core.record import Record
from oneturn.core.rows import Rows
from oneturn.core.status import Status
from oneturn.core.steps import Claim, Enqueued, Existing
from oneturn.runtime.admission import Admission, Asked, Ticket, claim_of
from oneturn.runtime.engine import Engine
from oneturn.runtime.execution import Execution
from oneturn.runtime.process import Process
from oneturn.runtime.turn import to_message
from oneturn.testing.simulation.zoo.bug import Bug, patched

# -- names ------------------------------------------------------------------------------------------------------------


def _unknown(rows: Rows, asked: Claim) -> None:
    return None


def _known_whoever_asks(rows: Rows, asked: Claim) -> Any:
    record = rows.find(asked.identity)
    if record is None or record.status is not Status.RUNNING:
        return _real_known(rows, asked)
    return transitions._claimed(record)


_real_known = transitions._known


def _find_by_key(self: MemoryTable, identity: Identity) -> Record | None:
    records = self.of(identity.tenant, identity.scope)
    return next((record for record in records if record.identity.key == identity.key), None)


async def _get_of_any_tenant(self: MemoryReplays, identity: Identity) -> Record | None:
    for kept, (_, record) in self._kept.items():
        if (kept.scope, kept.key) == (identity.scope, identity.key):
            return record
    return None


async def _get_of_any_scope(self: MemoryReplays, identity: Identity) -> Record | None:
    for kept, (_, record) in self._kept.items():
        if (kept.tenant, kept.subject, kept.key) == (identity.tenant, identity.subject, identity.key):
            return record
    return None


_real_existing = Admission.existing


def _existing_unseen(self: Admission, record: Record, asked: Asked) -> Ticket:
    return _real_existing(self, record, replace(asked, fingerprint=record.fingerprint))


# -- claims -----------------------------------------------------------------------------------------------------------


class _Snapshot:
    """Rows of which what runs was read a moment ago."""

    def __init__(self, table: Any, identity: Identity) -> None:
        self.taken = table.now
        self._table = table
        self._running = table.running(identity)

    def running(self, identity: Identity) -> Any:
        return self._running

    def __getattr__(self, name: str) -> Any:
        return getattr(self._table, name)


BATCH = 0.25
"""Seconds for which claims are gathered."""


@contextmanager
def _claims_on_one_snapshot() -> Iterator[None]:
    real = transitions.claim
    snapshots: dict[tuple[int, str, str], _Snapshot] = {}

    def claim(rows: Any, asked: Claim) -> Any:
        name = (id(rows), asked.identity.tenant, asked.identity.scope)
        snapshot = snapshots.get(name)
        if snapshot is None or not 0 <= rows.now - snapshot.taken < BATCH:
            snapshot = snapshots[name] = _Snapshot(rows, asked.identity)
        return real(cast("Rows", snapshot), asked)

    with patch.object(transitions, "claim", claim):
        yield


@contextmanager
def _context_before_the_claim() -> Iterator[None]:
    real = Process.acquire
    contexts: dict[str, Any] = {}

    async def acquire(self: Process, identity: Identity, *, owner: str, run_limit: float) -> Any:
        got = await real(self, identity, owner=owner, run_limit=run_limit)
        if not isinstance(got, Held):
            contexts[owner] = await self.persistently(
                lambda: self.records.history(tenant=identity.tenant, scope=identity.scope, limit=1000)
            )
        return got

    async def history(self: Execution, *, limit: int) -> Any:
        assert self._handler is not None  # noqa: S101 - only a handler's turn asks
        load, record = self._handler.payload.validate_json, self.record
        stored = [item for item in contexts[self.lease.grant.owner] if item.turn != record.message]
        return tuple(message for item in stored if (message := to_message(item, load)) is not None)

    with patch.object(Process, "acquire", acquire), patch.object(Execution, "history", history):
        yield


def _must_wait_without_limit(rows: Rows, asked: Claim, running: Record | None) -> Any:
    return _real_must_wait(rows, replace(asked, queue_limit=10**6), running)


_real_must_wait = transitions._must_wait


def _occupied_by_nobody_that_lapsed(rows: Rows, identity: Identity, *, dead: Any, alive: Any) -> Any:
    running = rows.running(identity)
    if running is None or running.remaining > 0:
        return running
    transitions._end_dead(rows, running)
    return None


# -- answers ----------------------------------------------------------------------------------------------------------


async def _attach_to_a_key(self: Admission, asked: Asked) -> Ticket:
    real, process = _real_admit, self._process
    holding = None
    if await self._known(asked) is None:
        holding = await process.leases.inspect(asked.identity.request_lock())
    if holding is None:
        return await real(self, asked)
    record = transitions._insert(cast("Rows", _Nothing()), _claim(asked, process), None)
    return Ticket(record=record, admission="attached")


_real_admit = Admission.admit


class _Nothing:
    """Rows that keep nothing: for the record that somebody else is thought to have written."""

    wall = 0.0

    def next_sequence(self, _: Identity) -> int:
        return 0

    def insert(self, _: Record) -> None:
        return


def _claim(asked: Asked, process: Process) -> Claim:
    return Claim(
        id=process.ids.new(),
        identity=asked.identity,
        handler=asked.handler.name,
        fingerprint=asked.fingerprint,
        payload=asked.payload,
        owner="",
        ttl=process.settings.ttl,
    )


async def _unknown_is_failed(self: Engine, asked: Asked) -> Ticket | OneturnError:
    try:
        return await self._admission.admit(asked)
    except BackendUnavailable:
        return TurnFailed("the store is away", code="store-away")
    except OneturnError as error:
        return error


def _enqueue_only(rows: Rows, asked: Claim) -> Any:
    known = _real_known(rows, asked)
    return known if not isinstance(known, Existing) or known.record.status.final else None


async def _claim_as_another_each_time(self: Admission, asked: Asked, *, owner: str) -> Any:
    process = self._process
    claim = claim_of(asked, process=process, owner=owner)
    return await process.precede(
        lambda dead, alive: process.records.claim(replace(claim, dead=dead, alive=alive, owner=process.ids.new()))
    )


def _must_wait_one_longer(rows: Rows, asked: Claim, running: Record | None) -> Any:
    return _real_must_wait(rows, replace(asked, queue_limit=asked.queue_limit + 1), running)


def _must_wait_for_who_runs(rows: Rows, asked: Claim, running: Record | None) -> Any:
    return _real_must_wait(rows, asked, running) if running is not None else False


@contextmanager
def _keys_of_the_queued_are_kept() -> Iterator[None]:
    real_claim, real_give_back = Admission._claim, Process.give_back
    queued: set[str] = set()

    async def claim(self: Admission, asked: Asked, *, owner: str) -> Any:
        claimed_at, answer = await real_claim(self, asked, owner=owner)
        if isinstance(answer, Enqueued):
            queued.add(owner)
        return claimed_at, answer

    async def give_back(self: Process, lease: Any, kept: Any) -> None:
        if lease.grant.owner not in queued:
            await real_give_back(self, lease, kept)

    with patch.object(Admission, "_claim", claim), patch.object(Process, "give_back", give_back):
        yield


# -- asked again ------------------------------------------------------------------------------------------------------


class _Unanswered:
    """Rows in which no message has an answer."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def answer_of(self, _: str) -> str:
        return ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rows, name)


_real_insert, _real_regenerable = transitions._insert, transitions._regenerable


def _insert_and_replace_nothing(rows: Rows, asked: Claim, target: Record | None) -> Record:
    return _real_insert(cast("Rows", _Unanswered(rows)), asked, target)


def _regenerable_whichever(rows: Rows, asked: Claim) -> Record | None:
    return _real_regenerable(cast("Rows", _Unanswered(rows)), asked)


BUGS: tuple[Bug, ...] = (
    Bug(
        name="claim without looking the key up",
        breaks=("I2", "I4"),
        plant=patched((transitions, "_known", _unknown)),
    ),
    Bug(
        name="a claim does not see who was admitted and has not ended",
        breaks=("I2", "I4", "model"),
        plant=patched((transitions, "_known", _enqueue_only)),
    ),
    Bug(
        name="a repeated claim does not compare the owner",
        breaks=("I1", "I2"),
        plant=patched((transitions, "_known", _known_whoever_asks)),
    ),
    Bug(name="two claims decided on one snapshot", breaks=("I1", "I3"), plant=_claims_on_one_snapshot),
    Bug(name="the context is read before the claim", breaks=("I7",), plant=_context_before_the_claim),
    Bug(
        name="a full queue takes one more",
        breaks=("model",),
        plant=patched((transitions, "_must_wait", _must_wait_without_limit)),
    ),
    Bug(
        name="a claim ends who has lapsed, unasked",
        breaks=("I3", "model"),
        plant=patched((transitions, "_occupied", _occupied_by_nobody_that_lapsed)),
    ),
    Bug(name="a key without its subject", breaks=("I9", "I13"), plant=patched((MemoryTable, "find", _find_by_key))),
    Bug(
        name="a cache key without tenant",
        breaks=("I9", "I13"),
        plant=patched((MemoryReplays, "get", _get_of_any_tenant)),
    ),
    Bug(
        name="a cache key without scope",
        breaks=("I9", "I13"),
        plant=patched((MemoryReplays, "get", _get_of_any_scope)),
    ),
    Bug(
        name="replay before the fingerprint is compared",
        breaks=("I9",),
        plant=patched((Admission, "existing", _existing_unseen)),
    ),
    Bug(
        name="attached to a key without a record",
        breaks=("I4",),
        plant=patched((Admission, "admit", _attach_to_a_key)),
    ),
    Bug(
        name="an unknown claim is told as failed",
        breaks=("I4", "I11"),
        plant=patched((Engine, "_admitted", _unknown_is_failed)),
    ),
    Bug(
        name="a claim asks as another owner each time",
        breaks=("I11",),
        plant=patched((Admission, "_claim", _claim_as_another_each_time)),
    ),
    Bug(
        name="the queue's bound is counted one short",
        breaks=("model",),
        plant=patched((transitions, "_must_wait", _must_wait_one_longer)),
    ),
    Bug(
        name="a claim overtakes the queue",
        breaks=("I15", "model"),
        plant=patched((transitions, "_must_wait", _must_wait_for_who_runs)),
    ),
    Bug(
        name="a queued message keeps its keys",
        breaks=("I14", "I15"),
        plant=_keys_of_the_queued_are_kept,
    ),
    Bug(
        name="a regenerating turn forgets what it replaces",
        breaks=("I8",),
        plant=patched((transitions, "_insert", _insert_and_replace_nothing)),
    ),
    Bug(
        name="any answer may be regenerated",
        breaks=("I8", "model"),
        plant=patched((transitions, "_regenerable", _regenerable_whichever)),
    ),
)
