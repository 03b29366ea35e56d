"""What the runtime calls of itself: executions, the queue, recovery, readers, tasks and waits."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from typing import Any

from scenario import Call, scenario
from stage import Stage

from oneturn.core.errors import Stopped
from oneturn.core.status import StopReason
from oneturn.runtime.clock import SystemClock
from oneturn.runtime.emitter import Emitter, ended
from oneturn.runtime.queue import Queue
from oneturn.runtime.reader import Readers
from oneturn.runtime.recovery import Recovery
from oneturn.runtime.supervisor import Supervisor
from oneturn.runtime.waiting import Bell, settled

# -- executions -------------------------------------------------------------------------------------------------------


@scenario("Execution.run", dies=True)
async def _(s: Stage) -> Call:
    return (await s.execution("1", handler="quick")).run


@scenario("Execution.run", "of long work", dies=True)
async def _(s: Stage) -> Call:
    execution = await s.execution("1", handler="held")
    s.soon(lambda: s.turns["1"].text("half"))
    s.soon(s.go.set, 30)
    return execution.run


@scenario("Execution.run", "in a thread", dies=True)
async def _(s: Stage) -> Call:
    return (await s.execution("1", handler="threaded")).run


@scenario("Execution.history")
async def _(s: Stage) -> Call:
    handle = await s.running("1")
    return lambda: s.process.executions[handle.id].history(limit=5)


@scenario("Execution.stop")
async def _(s: Stage) -> Call:
    handle = await s.running("1")
    s.turns["1"].text("half")
    return lambda: s.process.executions[handle.id].stop(StopReason.CANCELLED)


@scenario("Process.stop_record", "of a running record")
async def _(s: Stage) -> Call:
    handle = await s.running("1")
    return lambda: s.process.stop_record(handle.ticket.record, StopReason.CANCELLED)


@scenario("Process.ended")
async def _(s: Stage) -> Call:
    record = await s.ended("1")
    return lambda: s.process.ended(record)


@scenario("Process.remember")
async def _(s: Stage) -> Call:
    record = await s.ended("1")
    return lambda: s.process.remember(record)


@scenario("Emitter.flush")
async def _(s: Stage) -> Call:
    handle = await s.running("1")
    emitter = s.process.executions[handle.id].emitter
    emitter.text("half")
    return emitter.flush


@scenario("Emitter.run", dies=True)
async def _(s: Stage) -> Call:
    claimed, lease, kept = await s.claimed("1")
    await s.process.give_back(lease, kept)
    emitter = Emitter(
        claimed.record,
        records=s.process.records,
        clock=s.time,
        packing=0.03,
        max_event=2048,
        announce=lambda: None,
        gone=lambda _: None,
    )
    emitter.text("half")
    s.soon(lambda: emitter.close(None), 0.6)

    flushing = s.loop.create_task(emitter.flush())

    async def whoever_waits_is_told() -> None:
        done, _ = await asyncio.wait([flushing], timeout=5)
        assert done, "a flush waits for an emitter that nobody runs"
        assert isinstance(flushing.exception(), Stopped | None)

    s.put_away.append(whoever_waits_is_told)
    return emitter.run


@scenario("ended")
async def _(s: Stage) -> Call:
    task = s.process.supervisor.spawn(asyncio.sleep(0.5), name="some work")
    return lambda: ended(task)


@scenario("Turn.history")
async def _(s: Stage) -> Call:
    await s.ended("1")
    await s.running("2")
    return s.turns["2"].history


@scenario("Turn.flush")
async def _(s: Stage) -> Call:
    await s.running("1")
    s.turns["1"].text("half")
    return s.turns["1"].flush


@scenario("Turn.follow")
async def _(s: Stage) -> Call:
    await s.running("1")
    future: Future[int] = Future()
    future.set_running_or_notify_cancel()
    s.soon(lambda: future.set_result(1))
    return lambda: s.turns["1"].follow(future)


# -- the queue, recovery ----------------------------------------------------------------------------------------------


async def _queued(s: Stage) -> Any:
    """A queued record whose conversation is free, which the process's own queue has not seen yet."""
    handle = await s.running("1")
    waiting = await s.ask("quick", "2")
    s.process.accepting = False
    s.go.set()
    await handle.result()
    await asyncio.sleep(0.1)

    return waiting.ticket.record


@scenario("Queue.run", endless=20)
async def _(s: Stage) -> Call:
    await _queued(s)
    s.process.accepting = True
    return Queue(s.process).run


@scenario("Queue.look")
async def _(s: Stage) -> Call:
    await _queued(s)
    s.process.accepting = True
    return lambda: Queue(s.process).look(Bell(s.time))


@scenario("Queue.start", dies=True)
async def _(s: Stage) -> Call:
    record = await _queued(s)
    s.process.accepting = True
    return lambda: Queue(s.process).start(record)


@scenario("Recovery.run", endless=20, dies=True)
async def _(s: Stage) -> Call:
    await s.orphan("1")
    await asyncio.sleep(s.settings.ttl + 0.5)
    return Recovery(s.process).run


@scenario("Recovery.sweep", "of a dead execution", dies=True)
async def _(s: Stage) -> Call:
    await s.orphan("1")
    await asyncio.sleep(s.settings.ttl + 0.01)
    recovery = Recovery(s.process)
    await recovery.sweep()
    await asyncio.sleep(s.settings.renew_every + s.settings.margin)
    return recovery.sweep


@scenario("Recovery.retain")
async def _(s: Stage) -> Call:
    await s.ended("1")
    return Recovery(s.process).retain


# -- readers ----------------------------------------------------------------------------------------------------------


@scenario("Readers.reader")
async def _(s: Stage) -> Call:
    record = await s.ended("1")
    readers = Readers(s.process)

    async def read() -> None:
        async with readers.reader(record, through_drain=False, after=0) as reader:
            while not reader.done:
                await reader.next(1)

    async def no_feed(_: Any) -> None:
        assert not readers._feeds
        assert not readers._bells

    s.afterwards.append(no_feed)
    return read


@scenario("Reader.next")
async def _(s: Stage) -> Call:
    record = await s.ended("1")
    context = Readers(s.process).reader(record, through_drain=False, after=0)
    reader = await context.__aenter__()
    seen: list[int] = []

    async def read() -> None:
        seen.extend([event.seq for event in await reader.next(1)])

    async def saw_each_once(_: Any) -> None:
        while not reader.done:
            await read()
        assert seen == list(range(1, record.last_seq + 1))

    s.put_away.append(lambda: context.__aexit__(None, None, None))
    s.afterwards.append(saw_each_once)
    return read


@scenario("Readers.conversation")
async def _(s: Stage) -> Call:
    await s.running("1")

    async def read() -> None:
        async with Readers(s.process).conversation(tenant="acme", scope=s.scope, after=None) as reader:
            await reader.next(1)

    return read


@scenario("ConversationReader.begin")
async def _(s: Stage) -> Call:
    context = Readers(s.process).conversation(tenant="acme", scope=s.scope, after=None)
    reader = await context.__aenter__()
    s.put_away.append(lambda: context.__aexit__(None, None, None))
    return lambda: reader.begin(None)


@scenario("ConversationReader.next")
async def _(s: Stage) -> Call:
    await s.running("1")
    waiting = await s.ask("quick", "2")
    context = Readers(s.process).conversation(tenant="acme", scope=s.scope, after=None)
    reader = await context.__aenter__()
    seen: list[tuple[str, str]] = []

    async def read() -> None:
        seen.extend([(event.turn, event.event.kind) for event in await reader.next(1)])

    async def was_told_of_the_queue() -> None:
        if not seen:
            await read()
        assert seen.count((waiting.id, "queued")) == 1

    s.put_away.append(lambda: context.__aexit__(None, None, None))
    s.at_once.append(was_told_of_the_queue)
    return read


# -- tasks and waits --------------------------------------------------------------------------------------------------


@scenario("Supervisor.close")
async def _(s: Stage) -> Call:
    supervisor = Supervisor()

    async def stubborn() -> None:
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            await asyncio.sleep(0.6)

    supervisor.spawn(stubborn(), name="stubborn")
    supervisor.spawn(asyncio.sleep(1000), name="quiet")

    async def all_ended(_: Any) -> None:
        assert not supervisor.tasks

    s.afterwards.append(all_ended)
    return supervisor.close


@scenario("Supervisor.finish")
async def _(s: Stage) -> Call:
    done: list[int] = []

    async def whole() -> None:
        await asyncio.sleep(0.5)
        done.append(1)

    async def it_went_on(_: Any) -> None:
        assert done == [1]

    s.afterwards.append(it_went_on)
    return lambda: s.process.supervisor.finish(whole(), name="whole")


@scenario("Bell.wait")
async def _(s: Stage) -> Call:
    bell = Bell(s.time)
    s.soon(bell.ring)

    async def hears_the_next(_: Any) -> None:
        bell.ring()
        assert await bell.wait(1)

    s.afterwards.append(hears_the_next)
    return lambda: bell.wait(None)


@scenario("settled")
async def _(s: Stage) -> Call:
    future: asyncio.Future[object] = s.loop.create_future()
    s.soon(lambda: future.set_result(None))

    async def untouched(_: Any) -> None:
        assert await future is None
        assert not getattr(future, "_callbacks", None)

    s.afterwards.append(untouched)
    return lambda: settled(future, s.time, 3)


@scenario("SystemClock.sleep")
async def _(s: Stage) -> Call:
    return lambda: SystemClock().sleep(3)
