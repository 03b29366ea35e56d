"""The one checker: what must hold of a run, whatever happened in it. Each violation names its invariant."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import dataclass

from oneturn.backends.memory.records import MemoryRecords
from oneturn.core.record import Record
from oneturn.core.status import Status
from oneturn.testing.simulation.world import World


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """An invariant that did not hold, and of what."""

    invariant: str
    what: str


def check(world: World) -> list[Violation]:
    """Every violation in the final state and in what was seen."""
    records = world.backend.records
    assert isinstance(records, MemoryRecords)  # noqa: S101 - the simulated store is the reference
    return [
        *_epochs(records),
        *_entries(world, records),
        *_endings(records),
        *_told(world, records),
        *_histories(world, records),
        *_texts(records),
        *_order(records),
        *_readers(world, records),
        *_leases(world),
        *_served(records),
    ]


def _all(records: MemoryRecords) -> list[Record]:
    return list(records.table.records.values())


def _epochs(records: MemoryRecords) -> list[Violation]:
    counted = Counter(
        (record.identity.tenant, record.identity.scope, record.epoch) for record in _all(records) if record.epoch
    )
    return [Violation(invariant="I1", what=f"epoch {name} was given twice") for name, n in counted.items() if n > 1]


def _entries(world: World, records: MemoryRecords) -> list[Violation]:
    found: list[Violation] = []
    by_turn: dict[str, list[int]] = defaultdict(list)
    for entry in world.saw.entries:
        by_turn[entry.turn].append(entry.epoch)
    for turn, epochs in by_turn.items():
        record = records.table.records.get(turn)
        if record is None:
            found.append(Violation(invariant="I2", what=f"{turn} was entered without a record"))
            continue
        most = 3 if record.recovery == "rerun" else 1
        if len(epochs) > most or len(set(epochs)) != len(epochs):
            found.append(Violation(invariant="I2", what=f"{turn} ({record.recovery}) was entered under {epochs}"))
    return found


def _endings(records: MemoryRecords) -> list[Violation]:
    found: list[Violation] = []
    for record in _all(records):
        log = records.table.events[record.id]
        terminal = [event.seq for event in log if event.terminal]
        if not record.status.final:
            found.append(Violation(invariant="I3", what=f"{record.id} is {record.status} for ever"))
        elif terminal != [log[-1].seq] or log[-1].kind != record.status.value:
            found.append(Violation(invariant="I3", what=f"{record.id} {record.status} has terminal events {terminal}"))
        if [event.seq for event in log] != list(range(1, len(log) + 1)):
            found.append(Violation(invariant="I12", what=f"{record.id} has events {[event.seq for event in log]}"))
    return found


def _told(world: World, records: MemoryRecords) -> list[Violation]:
    found: list[Violation] = []
    for told in world.saw.told:
        record = records.table.records.get(told.turn)
        if told.word == "succeeded":
            if told.body != f"answer to {told.sent}":
                found.append(Violation(invariant="I9", what=f"{told} was given a foreign answer"))
            if record is None or record.status is not Status.SUCCEEDED:
                found.append(Violation(invariant="I4", what=f"{told} is not there: {record and record.status}"))
            elif record.identity.tenant != told.tenant:
                found.append(Violation(invariant="I13", what=f"{told} is {record.identity}"))
        elif told.word == "failed":
            found.append(Violation(invariant="I11", what=f"{told}: no handler of this world fails"))
        elif told.word == "stopped" and (record is None or record.status is not Status.STOPPED):
            found.append(Violation(invariant="I11", what=f"{told}, but {record and record.status}"))
    return found


def _histories(world: World, records: MemoryRecords) -> list[Violation]:
    """What an accepted turn was given = exactly the turns accepted before it, in order."""
    found: list[Violation] = []
    accepted: dict[tuple[str, str], list[tuple[int, str]]] = defaultdict(list)
    for record in _all(records):
        if record.status is Status.SUCCEEDED and record.epoch:
            accepted[record.identity.tenant, record.identity.scope].append((record.epoch, record.id))
    for entry in world.saw.entries:
        found_record = records.table.records.get(entry.turn)
        if found_record is None or (found_record.status, found_record.epoch) != (Status.SUCCEEDED, entry.epoch):
            continue
        turns = sorted(accepted[found_record.identity.tenant, found_record.identity.scope])
        before = tuple(turn for epoch, turn in turns if epoch < entry.epoch)
        if entry.history != before:
            found.append(Violation(invariant="I7", what=f"{entry.turn} saw {entry.history}, accepted were {before}"))
    return found


def _texts(records: MemoryRecords) -> list[Violation]:
    """What the streamed pieces join to is a beginning of what the work said, once."""
    found: list[Violation] = []
    for record in _all(records):
        text = ""
        for event in records.table.events[record.id]:
            if event.kind in ("started", "restarted"):
                text = ""
            elif event.kind == "text":
                text += json.loads(event.data)["delta"]
        if not "0 1 2 3 ".startswith(text):
            found.append(Violation(invariant="I5", what=f"{record.id} streamed {text!r}"))
    return found


def _order(records: MemoryRecords) -> list[Violation]:
    """Messages are ordered by sequence, turns by epoch: what was started once was started in its order."""
    started: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    for record in _all(records):
        if record.epoch and record.attempt == 1:
            started[record.identity.tenant, record.identity.scope].append((record.epoch, record.sequence))
    return [
        Violation(invariant="I15", what=f"{scope} started its messages in the order {[n for _, n in sorted(pairs)]}")
        for scope, pairs in started.items()
        if [n for _, n in sorted(pairs)] != sorted(n for _, n in pairs)
    ]


def _readers(world: World, records: MemoryRecords) -> list[Violation]:
    return [
        Violation(invariant="I12", what=f"a reader of {turn} was given {seen}")
        for turn, readers in world.saw.read.items()
        for seen in readers
        if seen != list(range(1, len(seen) + 1)) or len(seen) > len(records.table.events.get(turn, ()))
    ]


def _leases(world: World) -> list[Violation]:
    """After the last answer, two calm seconds later: nobody works, so nobody holds anything."""
    return [Violation(invariant="I14", what=f"{key} is held by nobody that lives") for key in world.saw.held]


def _served(records: MemoryRecords) -> list[Violation]:
    last = [record for record in _all(records) if record.identity.key == "last"]
    return [
        Violation(invariant="I15", what=f"after healing {record.identity.scope} was not served: {record.status}")
        for record in last
        if record.status is not Status.SUCCEEDED and record.reason != "cancelled"
    ]
