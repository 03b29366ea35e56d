"""Readers: watch one execution or a whole conversation; look, sleep until a signal or the check interval, look again."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field

from oneturn.core.errors import BackendUnavailable
from oneturn.core.event import Logged
from oneturn.core.identity import scope_topic, turn_topic
from oneturn.core.record import Record
from oneturn.core.status import Status
from oneturn.runtime.process import Process
from oneturn.runtime.waiting import Bell, listening


@dataclass(slots=True, eq=False)
class Feed:
    """What the readers of one execution in this process share: one subscription, one read per change."""

    record: Record
    base: int
    """The number of the event before the first one that is held here."""
    events: list[Logged] = field(default_factory=list)
    readers: dict[Bell, None] = field(default_factory=dict)

    @property
    def last(self) -> int:
        """The number of the newest event held here."""
        return self.events[-1].seq if self.events else self.base


class Reader:
    """One reader of one execution: its own cursor, its own pace. It may stop reading without anybody's noticing."""

    def __init__(self, process: Process, feed: Feed, bell: Bell, *, after: int, through_drain: bool) -> None:
        self._process = process
        self._feed = feed
        self._bell = bell
        self._through_drain = through_drain
        self.after = after
        self.done = False

    async def next(self, wait: float) -> list[Logged]:
        """What has gathered since the last call; [] if nothing came within `wait` seconds, or the process is to drain.

        A reader that stays through the drain waits on; BackendUnavailable says that the gate was closed meanwhile.
        """
        got = await self._take()
        if not got and not self.done and (self._process.accepting or self._through_drain):
            self._process.refuse_closed()
            if not await self._bell.wait(min(wait, self._process.settings.check_every)):
                await self._see_whether_it_is_there()
            got = await self._take()
        return got

    async def _see_whether_it_is_there(self) -> None:
        # Forgotten, expired or rolled back: no terminal event will come.
        record = self._feed.record
        found = await self._process.records.read(tenant=record.identity.tenant, id=record.id)
        self.done = found is None or found.expired

    async def _take(self) -> list[Logged]:
        feed = self._feed
        if self.after < feed.base:
            events = await self._read(self.after)
        else:
            if feed.last <= self.after:
                await self._refresh()
            events = feed.events[bisect_right(feed.events, self.after, key=lambda event: event.seq) :]
        if events:
            self.after = events[-1].seq
            self.done = events[-1].terminal
        return events

    async def _refresh(self) -> None:
        # Several readers may be woken by one signal: the first one's read serves the others, who see what it appended.
        feed = self._feed
        events = await self._read(feed.last)
        feed.events.extend(event for event in events if event.seq > feed.last)
        if events:
            for bell in feed.readers:
                if bell is not self._bell:
                    bell.ring_here()

    async def _read(self, after: int) -> list[Logged]:
        record = self._feed.record
        try:
            return await self._process.records.events(tenant=record.identity.tenant, id=record.id, after=after)
        except BackendUnavailable:
            self._process.refuse_closed()
            raise


class Readers:
    """All readers of this process, by execution."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._feeds: dict[str, Feed] = {}
        self._bells: dict[Bell, None] = {}

    def wake(self) -> None:
        """Let everybody who waits look again (the process begins to drain, or its gate was closed)."""
        for bell in self._bells:
            bell.ring_here()

    @contextmanager
    def waking(self, bell: Bell) -> Iterator[None]:
        """Ring this bell too when the process begins to drain, and when its gate was closed."""
        self._bells[bell] = None
        try:
            yield
        finally:
            self._bells.pop(bell, None)

    @asynccontextmanager
    async def reader(self, record: Record, *, after: int, through_drain: bool) -> AsyncIterator[Reader]:
        """Watch `record` from the event after `after`. Subscribed before it looks: nothing falls into the gap."""
        with listening(self._process.signals, turn_topic(record.id), clock=self._process.clock) as bell:
            feed = self._feeds.setdefault(record.id, Feed(record=record, base=after))
            feed.readers[bell] = None
            try:
                with self.waking(bell):
                    yield Reader(self._process, feed, bell, after=after, through_drain=through_drain)
            finally:
                feed.readers.pop(bell, None)
                if not feed.readers:
                    self._feeds.pop(record.id, None)

    @asynccontextmanager
    async def conversation(
        self, *, tenant: str, scope: str, after: tuple[int, int] | None
    ) -> AsyncIterator[ConversationReader]:
        """Watch all turns of a conversation after (epoch, event number); None: from the turns that are not over."""
        topic = scope_topic(tenant=tenant, scope=scope)
        with listening(self._process.signals, topic, clock=self._process.clock) as bell, self.waking(bell):
            reader = ConversationReader(self._process, bell, tenant=tenant, scope=scope)
            await reader.begin(after)
            yield reader


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationEvent:
    """An event of one of a conversation's turns; without an epoch it has no place to resume from."""

    turn: str
    epoch: int | None
    event: Logged


class ConversationReader:
    """One reader of a conversation. Turns without an epoch (queued, stopped in the queue) are told as they change."""

    def __init__(self, process: Process, bell: Bell, *, tenant: str, scope: str) -> None:
        self._process = process
        self._bell = bell
        self._tenant = tenant
        self._scope = scope
        self._queued: dict[str, Record] = {}
        self._told: set[str] = set()
        self._first = True
        self.after = (0, 0)
        self.idle = False

    async def begin(self, after: tuple[int, int] | None) -> None:
        """Set the cursor: as given, or before the first turn that is still running."""
        records = await self._turns()
        running = [record.epoch for record in records if record.status is Status.RUNNING and record.epoch is not None]
        if after is not None:
            self.after = after
        elif running:
            self.after = (min(running), 0)
        else:
            self.after = (await self._process.records.scope_epoch(tenant=self._tenant, scope=self._scope), 2**31)
        self.idle = not any(not record.status.final for record in records)

    async def next(self, wait: float) -> list[ConversationEvent]:
        """What has gathered since the last call; [] if nothing came within `wait` seconds, or the process is to drain."""
        got = await self._take()
        if not got and self._process.accepting:
            await self._bell.wait(min(wait, self._process.settings.check_every))
            got = await self._take()
        return got

    async def _take(self) -> list[ConversationEvent]:
        records = await self._turns()
        self.idle = not any(not record.status.final for record in records)
        rows = await self._process.records.scope_events(tenant=self._tenant, scope=self._scope, after=self.after)
        for _, epoch, event in rows:
            self.after = (epoch, event.seq)
        # Marked as told only now: a call that is cancelled, or not answered, has told nothing.
        told = self._unnumbered(records)
        return told + [ConversationEvent(turn=turn, epoch=epoch, event=event) for turn, epoch, event in rows]

    def _unnumbered(self, records: list[Record]) -> list[ConversationEvent]:
        events: list[ConversationEvent] = []
        for record in records:
            if record.epoch is not None:
                continue
            if record.status is Status.QUEUED and record.id not in self._queued:
                self._queued[record.id] = record
                events.append(_bare(record, "queued"))
            elif record.status is Status.STOPPED and record.id not in self._told and self._tell_stop(record):
                events.append(_bare(record, "stopped"))
            if record.status.final:
                self._told.add(record.id)
        self._first = False
        return events

    def _tell_stop(self, record: Record) -> bool:
        # On connecting, only stops of the last minutes are news; a page reads the rest from the history.
        recent = 300.0
        return not self._first or self._process.clock.wall() - (record.ended_at or 0) < recent

    async def _turns(self) -> list[Record]:
        return await self._process.records.turns(tenant=self._tenant, scope=self._scope, limit=32)


def _bare(record: Record, kind: str) -> ConversationEvent:
    data = record.body.decode() if kind == "stopped" and record.body else "{}"
    return ConversationEvent(turn=record.id, epoch=None, event=Logged(seq=record.last_seq, kind=kind, data=data))
