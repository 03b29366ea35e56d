"""What applications call: the gate, the handle, the engine behind them, and admission."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from scenario import Call, scenario
from sqlalchemy import create_engine
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool
from stage import Stage

from oneturn import ResultUnavailable
from oneturn.gate import Gate
from oneturn.runtime.admission import Admission
from oneturn.runtime.session import enqueue_in_session

# -- the gate ---------------------------------------------------------------------------------------------------------


@scenario("Gate.ask")
async def _(s: Stage) -> Call:
    return lambda: s.ask("quick", "1")


@scenario("Gate.ask", "of a busy conversation")
async def _(s: Stage) -> Call:
    await s.running("1")
    return lambda: s.ask("quick", "2")


@scenario("Gate.ask", "again after the end")
async def _(s: Stage) -> Call:
    await s.ended("1")
    return lambda: s.ask("quick", "1")


@scenario("Gate.ask", "of a synchronous handler")
async def _(s: Stage) -> Call:
    return lambda: s.ask("threaded", "1")


@scenario("Gate.ask", "in a session", needs="sqlite")
async def _(s: Stage) -> Call:
    return lambda: _in_session(s, lambda session: s.ask("quick", "1", session=session))


@scenario("Engine.ask_in", "again after the end", needs="sqlite")
async def _(s: Stage) -> Call:
    await s.ended("1")
    return lambda: _in_session(s, lambda session: s.gate.engine.ask_in(session, s.asked("quick", "1")))


@scenario("enqueue_in_session", "again after the end", needs="sqlite")
async def _(s: Stage) -> Call:
    await s.ended("1")
    process = s.process
    admission, asked = Admission(process), s.asked("quick", "1")
    return lambda: _in_session(
        s, lambda session: enqueue_in_session(session, asked, process=process, admission=admission)
    )


async def _in_session(s: Stage, ask: Callable[[Any], Awaitable[object]]) -> None:
    """A plain session: its own statements block, so that all awaits are ours."""
    engine = create_engine(s.settings.records, poolclass=NullPool)
    with Session(engine) as session:
        await ask(session)
        session.commit()
    engine.dispose()


@scenario("Gate.__aenter__")
async def _(s: Stage) -> Call:
    gate = s.another_gate()
    return gate.__aenter__


@scenario("Gate.__aexit__", "while a turn runs and another waits", dies=True)
async def _(s: Stage) -> Call:
    gate = await s.opened_gate()
    await s.running("1", gate=gate)
    await s.ask("quick", "2", gate=gate)
    return lambda: gate.__aexit__(None, None, None)


@scenario("Gate.__aexit__", "idle")
async def _(s: Stage) -> Call:
    gate = await s.opened_gate()
    return lambda: gate.__aexit__(None, None, None)


@scenario("Gate.find")
async def _(s: Stage) -> Call:
    record = await s.ended("1")
    return lambda: s.gate.find(record.id, principal=s.principal)


@scenario("Gate.forget")
async def _(s: Stage) -> Call:
    await s.running("1")
    await s.ask("quick", "2")
    return lambda: s.gate.forget(tenant="acme", conversation=s.scope)


# -- the handle -------------------------------------------------------------------------------------------------------


@scenario("Handle.outcome")
async def _(s: Stage) -> Call:
    handle = await s.running("1")
    s.soon(s.go.set)
    return handle.outcome


@scenario("Handle.outcome", "with a bound")
async def _(s: Stage) -> Call:
    handle = await s.running("1")
    return lambda: handle.outcome(wait=7)


@scenario("Handle.result")
async def _(s: Stage) -> Call:
    handle = await s.running("1")
    s.soon(s.go.set)
    return handle.result


@scenario("Handle.events")
async def _(s: Stage) -> Call:
    handle = await s.running("1")
    s.soon(lambda: s.turns["1"].text("half"))
    s.soon(s.go.set, 1.0)

    async def read() -> list[int]:
        return [event.id async for event in handle.events()]

    return read


@scenario("Handle.cancel", "of a running turn")
async def _(s: Stage) -> Call:
    handle = await s.running("1")
    s.turns["1"].text("half")
    return handle.cancel


@scenario("Handle.cancel", "of a queued turn")
async def _(s: Stage) -> Call:
    await s.running("1")
    return (await s.ask("quick", "2")).cancel


@scenario("Handle.cancel", "from another process")
async def _(s: Stage) -> Call:
    handle = await s.running("1", gate=await s.opened_gate())
    found = await s.gate.find(handle.id, principal=s.principal)
    assert found is not None
    return found.cancel


# -- the engine -------------------------------------------------------------------------------------------------------


@scenario("Engine.open")
async def _(s: Stage) -> Call:
    gate = await s.opened_gate()
    await gate.__aexit__(None, None, None)
    made = await _unopened(s, gate)

    async def close(answer: Any) -> None:
        if made.process.supervisor.tasks:
            await made.close()

    s.afterwards.append(close)

    async def opened() -> None:
        await made.open()
        await made.close()

    return opened


async def _unopened(s: Stage, gate: Gate) -> Any:
    from oneturn.runtime.engine import Engine

    return Engine(
        settings=s.settings,
        records=s.backend,
        leases=s.backend,
        handlers=gate._handlers,
        clock=s.time,
        ids=s.ids,
        sink=s.decisions.append,
        keeper_on="loop",
    )


@scenario("Engine.close", "while work ignores its stop", dies=True)
async def _(s: Stage) -> Call:
    gate = await s.opened_gate()
    process = gate.engine.process

    async def stubborn() -> None:
        try:
            await s.go.wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0.2)

    await s.running("1", gate=gate)
    process.supervisor.spawn(stubborn(), name="stubborn")
    engine = gate.engine
    gate.abandon_without_closing()
    return engine.close


@scenario("Engine.ask")
async def _(s: Stage) -> Call:
    handler = s.process.handlers["quick"]
    ask = s.gate.engine.ask
    s.identity("1")
    return lambda: ask(
        handler, payload=b"{}", sent={}, conversation=s.scope, key="1", principal=s.principal, on_busy="enqueue"
    )


@scenario("Engine.ask", "the same message again")
async def _(s: Stage) -> Call:
    target = await s.ended("1")
    handler = s.process.handlers["quick"]
    s.identity("2")
    return lambda: s.gate.engine.ask(
        handler,
        payload=None,
        sent={"regenerate": target.id},
        conversation=s.scope,
        key="2",
        principal=s.principal,
        regenerate=target.id,
    )


@scenario("Engine.admit")
async def _(s: Stage) -> Call:
    asked = s.asked("quick", "1")
    return lambda: s.gate.engine.admit(asked)


@scenario("Engine.find")
async def _(s: Stage) -> Call:
    record = await s.ended("1")
    return lambda: s.gate.engine.find(record.id, principal=s.principal, conversation=s.scope)


@scenario("Engine.outcome", "of a forgotten turn")
async def _(s: Stage) -> Call:
    record = await s.ended("1")

    async def gone() -> None:
        try:
            await s.gate.engine.outcome(record, wait=1)
        except ResultUnavailable:
            return

    return gone


@scenario("Engine.outcome")
async def _(s: Stage) -> Call:
    handle = await s.running("1")
    s.soon(s.go.set)
    return lambda: s.gate.engine.outcome(handle.ticket.record, wait=None)


@scenario("Engine.cancel")
async def _(s: Stage) -> Call:
    handle = await s.running("1")
    return lambda: s.gate.engine.cancel(handle.ticket.record)


@scenario("Engine.position")
async def _(s: Stage) -> Call:
    await s.running("1")
    handle = await s.ask("quick", "2")
    return lambda: s.gate.engine.position(handle.ticket.record)


@scenario("Engine.turns")
async def _(s: Stage) -> Call:
    await s.ended("1")
    return lambda: s.gate.engine.turns(tenant="acme", scope=s.scope)


@scenario("Engine.reader")
async def _(s: Stage) -> Call:
    handle = await s.running("1")

    async def read() -> None:
        async with s.gate.engine.reader(handle.ticket.record, after=0) as reader:
            await reader.next(1)
            await reader.next(1)

    return read


@scenario("Engine.conversation")
async def _(s: Stage) -> Call:
    await s.running("1")

    async def read() -> None:
        async with s.gate.engine.conversation(tenant="acme", scope=s.scope, after=None) as reader:
            await reader.next(1)
            await reader.next(1)

    return read


@scenario("Engine.forget")
async def _(s: Stage) -> Call:
    await s.ended("1")
    await s.running("2")
    return lambda: s.gate.engine.forget(tenant="acme", conversation=s.scope)


@scenario("Engine.ready")
async def _(s: Stage) -> Call:
    return s.gate.engine.ready


# -- admission --------------------------------------------------------------------------------------------------------


@scenario("Admission.admit", dies=True)
async def _(s: Stage) -> Call:
    asked = s.asked("quick", "1")
    return lambda: Admission(s.process).admit(asked)


@scenario("Admission.admit", "into the queue", dies=True)
async def _(s: Stage) -> Call:
    await s.running("1")
    asked = s.asked("quick", "2")
    return lambda: Admission(s.process).admit(asked)


@scenario("Admission.admit", "while the same is being admitted", dies=True)
async def _(s: Stage) -> Call:
    lease, kept = await s.leased("1")
    process = s.process
    s.soon(lambda: process.supervisor.spawn(process.give_back(lease, kept), name="give back"))
    asked = s.asked("quick", "1")
    return lambda: Admission(process).admit(asked)


@scenario("Admission.admit", "over a dead execution", dies=True)
async def _(s: Stage) -> Call:
    await s.orphan("1")
    await asyncio.sleep(s.settings.ttl + 0.5)
    asked = s.asked("quick", "2")
    return lambda: Admission(s.process).admit(asked)
