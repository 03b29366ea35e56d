"""Planted bugs of event logs: what is logged, and what readers are given."""
# ruff: noqa: SLF001 - a mutant sits inside of what it mutates

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, cast

from oneturn.backends.memory.table import MemoryTable
from oneturn.core import transitions
from oneturn.core.event import STARTED, TEXT, Logged, encode, terminal_event
from oneturn.core.record import Record
from oneturn.core.rows import Rows
from oneturn.core.status import Status
from oneturn.core.steps import Append, Appended, Claimed, Emitted, Finish, Gone
from oneturn.core.store import Execute, TransactionalRecords
from oneturn.runtime.emitter import Emitter
from oneturn.runtime.fence import Fence
from oneturn.runtime.reader import ConversationReader, Reader
from oneturn.testing.simulation.zoo.bug import Bug, patched

# -- the store --------------------------------------------------------------------------------------------------------


def _append_to_anything(rows: Rows, asked: Append) -> Appended | Gone:
    record = rows.read(asked.tenant, asked.id)
    if record is None:
        return Gone(record=None)
    return Appended(last_seq=rows.log(record, asked.events[max(record.last_seq - asked.after, 0) :]).last_seq)


def _append_again(rows: Rows, asked: Append) -> Appended | Gone:
    record = rows.read(asked.tenant, asked.id)
    if record is None or record.status is not Status.RUNNING or record.epoch != asked.epoch:
        return Gone(record=record)
    return Appended(last_seq=rows.log(record, asked.events).last_seq)


def _end_silently(self: MemoryTable, record: Record, *, status: Status, body: bytes, reason: Any) -> Record:
    return self.put(replace(record, status=status, body=body, reason=reason, ended_at=self.wall, owner=""))


_real_end = MemoryTable.end


def _end_twice(self: MemoryTable, record: Record, *, status: Status, body: bytes, reason: Any) -> Record:
    self.events[record.id].append(terminal_event(seq=record.last_seq + 1, status=status, body=body))
    return _real_end(self, replace(record, last_seq=record.last_seq + 1), status=status, body=body, reason=reason)


# -- the emitter ------------------------------------------------------------------------------------------------------

_real_pending, _real_log = Emitter.pending, Emitter._log


def _pending_from_the_start(self: Emitter) -> Any:
    _, events = _real_pending(self)
    return 0, events


def _pending_but_what_is_in_flight(self: Emitter) -> Any:
    after, events = _real_pending(self)
    return after, events[len(self._flight) :]


async def _log_packed_anew(self: Emitter) -> bool:
    with self._change:
        if self._flight:
            self._pack_text()
            self._buffer, self._flight = _joined((*self._flight, *self._buffer)), ()
    return await _real_log(self)


def _joined(events: Iterable[Emitted]) -> list[Emitted]:
    joined: list[Emitted] = []
    for event in events:
        if event.kind == TEXT and joined and joined[-1].kind == TEXT:
            text = json.loads(joined.pop().data)["delta"] + json.loads(event.data)["delta"]
            joined.append(Emitted(kind=TEXT, data=encode({"delta": text})))
        else:
            joined.append(event)
    return joined


async def _log_and_forget(self: Emitter) -> bool:
    logged = await _real_log(self)
    if not logged:
        with self._change:
            self._flight = ()
    return logged


# -- readers ----------------------------------------------------------------------------------------------------------


async def _take_the_last_again(self: Reader) -> list[Logged]:
    feed = self._feed
    if self.after < feed.base:
        events = await self._read(self.after)
    else:
        if feed.last <= self.after:
            await self._refresh()
        events = feed.events[bisect_left(feed.events, self.after, key=lambda event: event.seq) :]
        if feed.last <= self.after:
            return []
    if events:
        self.after = events[-1].seq
        self.done = events[-1].terminal
    return events


_real_take = ConversationReader._take


async def _take_before_it_stands(self: ConversationReader) -> Any:
    before = self.after
    got = await _real_take(self)
    epoch, seq = self.after
    self.after = max(before, (epoch, seq - 1))
    return got


# -- what is said, and not logged -------------------------------------------------------------------------------------


def _begin_as_if_anew(rows: Rows, record: Record, *, owner: str, ttl: float) -> Claimed:
    epoch = rows.raise_epoch(record.identity)
    record = rows.begin(record, owner=owner, epoch=epoch, ttl=ttl)
    data = encode({"epoch": epoch, "attempt": record.attempt})
    return transitions._claimed(rows.log(record, [Emitted(kind=STARTED, data=data)]))


async def _flush_without_waiting(self: Emitter) -> int:
    with self._change:
        self._pack_text()
        target = self._durable + len(self._flight) + len(self._buffer)
    self._bell.ring()
    return target


def _pending_without_text(self: Emitter) -> Any:
    with self._change:
        return self._durable, (*self._flight, *self._buffer)


_real_fence = Fence.__init__


def _fence_without_events(self: Fence, session: Any, execution: Any, **named: Any) -> None:
    _real_fence(self, session, execution, **named)
    self._store = cast("TransactionalRecords", _Wordless(self._store))


class _Wordless:
    """A store whose finish in a session's transaction logs nothing."""

    def __init__(self, store: TransactionalRecords) -> None:
        self._store = store

    def finish_in(self, run: Execute, asked: Finish) -> Any:
        return self._store.finish_in(run, replace(asked, events=()))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


BUGS: tuple[Bug, ...] = (
    Bug(
        name="events accepted after the terminal one",
        breaks=("I3", "I5", "I6", "I12"),
        plant=patched((transitions, "append", _append_to_anything)),
    ),
    Bug(name="a repeated append logs twice", breaks=("I5",), plant=patched((transitions, "append", _append_again))),
    Bug(name="the terminal event is missing", breaks=("I3",), plant=patched((MemoryTable, "end", _end_silently))),
    Bug(
        name="the terminal event is logged twice", breaks=("I3", "I12"), plant=patched((MemoryTable, "end", _end_twice))
    ),
    Bug(
        name="the final commit forgets what was logged",
        breaks=("I5", "I12"),
        plant=patched((Emitter, "pending", _pending_from_the_start)),
    ),
    Bug(
        name="the final commit drops what was in flight",
        breaks=("I5", "I12"),
        plant=patched((Emitter, "pending", _pending_but_what_is_in_flight)),
    ),
    Bug(
        name="numbers are not fixed before a batch is sent",
        breaks=("I5",),
        plant=patched((Emitter, "_log", _log_packed_anew)),
    ),
    Bug(
        name="an unanswered batch counts as not logged",
        breaks=("I5",),
        plant=patched((Emitter, "_log", _log_and_forget)),
    ),
    Bug(
        name="a reader that goes on is given its last event again",
        breaks=("I12",),
        plant=patched((Reader, "_take", _take_the_last_again)),
    ),
    Bug(
        name="a conversation's cursor stays one event behind",
        breaks=("I6", "I12"),
        plant=patched((ConversationReader, "_take", _take_before_it_stands)),
    ),
    Bug(
        name="a rerun is logged as a first start",
        breaks=("I5",),
        plant=patched((transitions, "_begin", _begin_as_if_anew)),
    ),
    Bug(
        name="a flush does not wait",
        breaks=("I12",),
        plant=patched((Emitter, "flush", _flush_without_waiting)),
    ),
    Bug(
        name="the final commit leaves text behind",
        breaks=("I5",),
        plant=patched((Emitter, "pending", _pending_without_text)),
    ),
    Bug(
        name="a fenced result leaves its events behind",
        breaks=("I5",),
        plant=patched((Fence, "__init__", _fence_without_events)),
    ),
)
