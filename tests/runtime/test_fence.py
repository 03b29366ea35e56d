"""The application's own rows and ours: one commit, or neither, on SQLite, async and sync."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, event, func, select
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from asking import Ask
from oneturn import ConfigurationError, Handle, Refused, ResultUnavailable, Settings, Stopped, StopReason, Turn
from oneturn.runtime.clock import SystemClock
from oneturn.testing.harness import Harness
from oneturn.wiring import connect


class Base(DeclarativeBase):
    pass


class Row(Base):
    __tablename__ = "message"
    id: Mapped[int] = mapped_column(primary_key=True)
    conversation: Mapped[str]
    text: Mapped[str]


class App:
    """An application with a table of its own in the database of the records."""

    def __init__(self, harness: Harness, engine: AsyncEngine, file: Path) -> None:
        self.harness = harness
        self.sessions = async_sessionmaker(engine)
        self.sync_engine = create_engine(f"sqlite:///{file}")

    async def rows(self) -> list[str]:
        async with self.sessions() as session:
            return list(await session.scalars(select(Row.text).order_by(Row.id)))


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[App]:
    file = tmp_path / "app.db"
    engine = create_async_engine(f"sqlite+aiosqlite:///{file}")
    backend = await connect(f"sqlite+aiosqlite:///{file}", setting="records")
    async with engine.begin() as connection:
        await connection.run_sync(Base.metadata.create_all)
    settings = Settings(records=f"sqlite:///{file}", grace=0, hard_deadline=2)
    async with Harness(backend, clock=SystemClock(), settings=settings) as harness:
        one = App(harness, engine, file)
        yield one
        one.sync_engine.dispose()
    await engine.dispose()
    await backend.close()


async def _ask(
    app: App, handler: Callable[..., Any], text: str = "q", *, key: str = "k", session: AsyncSession | None = None
) -> Handle[Any]:
    return await app.harness.gate.ask(
        handler, Ask(text=text), conversation="c", key=key, principal=app.harness.principal, session=session
    )


@pytest.mark.row("Q13")
async def test_my_row_and_the_final_record_are_one_commit(app: App) -> None:
    """The fenced result beats the return value; pending text and the terminal event are in the same transaction."""

    @app.harness.turn("chat")
    async def chat(turn: Turn[Ask]) -> str:
        turn.text("streamed")
        async with app.sessions() as session, session.begin():
            turn.fence(session, result="fenced")
            session.add(Row(conversation=turn.conversation, text="fenced"))
        return "returned"

    handle = await _ask(app, chat)
    assert await handle.result() == "fenced"
    assert await app.rows() == ["fenced"]
    events = [event async for event in handle.events()]
    assert [event.kind for event in events] == ["started", "text", "succeeded"]
    assert events[-1].data == {"result": "fenced"}


async def test_a_rolled_back_fence_leaves_neither(app: App) -> None:
    @app.harness.turn("chat")
    async def chat(turn: Turn[Ask]) -> str:
        async with app.sessions() as session:
            turn.fence(session, result="fenced")
            session.add(Row(conversation=turn.conversation, text="fenced"))
            await session.flush()
            await session.rollback()
        return "returned"

    handle = await _ask(app, chat)
    assert await handle.result() == "returned"
    assert await app.rows() == []


@pytest.mark.row("Q14")
@pytest.mark.case("T24")
async def test_a_stopped_turn_cannot_commit_its_rows(app: App) -> None:
    """Stopped from outside while the work was busy elsewhere: the application's own transaction is refused."""
    reasons: list[StopReason] = []
    ready, told, go, refused = (asyncio.Event() for _ in range(4))

    @app.harness.turn("chat")
    async def chat(turn: Turn[Ask]) -> str:
        turn.on_stop(told.set)
        ready.set()
        while not go.is_set():
            try:
                await go.wait()
            except asyncio.CancelledError:
                continue  # work that ignores every request to stop
        try:
            async with app.sessions() as session, session.begin():
                turn.fence(session)
                session.add(Row(conversation=turn.conversation, text="stale"))
        except Stopped as stopped:
            reasons.append(stopped.reason)
            refused.set()
        return "too late"

    handle = await _ask(app, chat)
    await ready.wait()
    await handle.cancel()
    await told.wait()
    go.set()
    await refused.wait()
    assert reasons == [StopReason.CANCELLED]
    assert await app.rows() == []
    outcome = await handle.outcome()
    assert outcome is not None
    assert (outcome.status, outcome.reason) == ("stopped", "cancelled")


async def test_savepoints_do_not_trigger_the_fence_and_flush_inside_raises(app: App) -> None:
    @app.harness.turn("chat")
    async def chat(turn: Turn[Ask]) -> str:
        async with app.sessions() as session, session.begin():
            turn.fence(session)
            async with session.begin_nested():
                session.add(Row(conversation="c", text="inner"))
            with pytest.raises(RuntimeError, match=r"before turn\.fence"):
                await turn.flush()
        await turn.flush()
        return "done"

    handle = await _ask(app, chat)
    assert await handle.result() == "done"
    assert await app.rows() == ["inner"]


async def test_a_sync_handler_fences_a_sync_session(app: App) -> None:
    @app.harness.turn("chat")
    def chat(turn: Turn[Ask]) -> str:
        with Session(app.sync_engine) as session, session.begin():
            turn.fence(session)
            session.add(Row(conversation=turn.conversation, text="sync"))
        return "done"

    handle = await _ask(app, chat)
    assert await handle.result() == "done"
    assert await app.rows() == ["sync"]


@pytest.mark.row("Q17")
@pytest.mark.case("T3")
async def test_admission_in_my_transaction_starts_after_its_commit(app: App) -> None:
    """My message and the queued record are one commit; a retry finds it; a rollback leaves nothing, not even the key."""

    @app.harness.turn("chat")
    async def chat(turn: Turn[Ask]) -> int:
        async with app.sessions() as session:
            return int(await session.scalar(select(func.count()).select_from(Row)) or 0)

    async with app.sessions() as session:
        await _ask(app, chat, session=session)
        session.add(Row(conversation="c", text="mine"))
        await session.rollback()
    assert await app.rows() == []
    async with app.sessions() as session, session.begin():
        first = await _ask(app, chat, session=session)
        assert (first.admission, first.new, first.sequence) == ("queued", True, 1)
        session.add(Row(conversation="c", text="mine"))
    assert await first.result() == 1
    async with app.sessions() as session, session.begin():
        again = await _ask(app, chat, session=session)
    assert (again.id, again.admission, again.new) == (first.id, "replayed", False)
    async with app.sessions() as session, session.begin():
        with pytest.raises(Refused):
            await _ask(app, chat, "other words", session=session)
    assert app.harness.calls(chat) == 1


async def test_admission_in_my_transaction_waits_for_nothing_while_it_holds_the_scope(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hung replay cache would otherwise keep the conversation's row, and on SQLite the whole file, from everybody."""

    @app.harness.turn("chat")
    async def chat(turn: Turn[Ask]) -> str:
        return "answer"

    async def hang(*_: object, **__: object) -> None:
        await asyncio.Event().wait()

    assert await (await _ask(app, chat)).result() == "answer"
    monkeypatch.setattr(app.harness.gate.engine.process.replays, "put", hang)
    async with app.sessions() as session, session.begin():
        async with asyncio.timeout(10):
            again = await _ask(app, chat, session=session)
    assert again.admission == "replayed"


async def test_a_backend_without_a_database_refuses_the_fence_in_words(harness: Harness, app: App) -> None:
    @harness.turn("chat")
    async def chat(turn: Turn[Ask]) -> str:
        async with app.sessions() as session:
            with pytest.raises(ConfigurationError, match=r"sqlite:///"):
                turn.fence(session)
        return "refused"

    handle = await harness.gate.ask(chat, Ask(), conversation="c", key="k", principal=harness.principal)
    assert await handle.result() == "refused"


async def test_a_commit_that_fails_after_the_fence_leaves_the_turn_going(app: App) -> None:
    """Its events and its result are not lost with the transaction; a second fence needs the first one's end."""

    @app.harness.turn("chat")
    async def chat(turn: Turn[Ask]) -> str:
        turn.text("before ")
        async with app.sessions() as session:
            turn.fence(session, result="fenced")
            session.add(Row(conversation="c", text="one"))
            await session.flush()
            with pytest.raises(RuntimeError, match="still open"):
                turn.fence(session, result="again")
            event.listen(session.sync_session, "before_commit", _fail)
            with pytest.raises(ZeroDivisionError):
                await session.commit()
            await session.rollback()
        turn.text("after")
        return "returned"

    handle = await _ask(app, chat)
    assert await handle.result() == "returned"
    assert await app.rows() == []
    assert "".join([e.data["delta"] async for e in handle.events() if e.kind == "text"]) == "before after"


def _fail(_: object) -> None:
    raise ZeroDivisionError


async def test_a_session_of_another_database_is_refused_in_words(app: App, tmp_path: Path) -> None:
    engine = create_async_engine(f"sqlite+aiosqlite:///{tmp_path / 'other.db'}")

    @app.harness.turn("chat")
    async def chat(turn: Turn[Ask]) -> str:
        async with async_sessionmaker(engine)() as session:
            turn.fence(session)
            with pytest.raises(ConfigurationError, match="does not hold"):
                await session.commit()
        return "refused"

    assert await (await _ask(app, chat)).result() == "refused"
    async with async_sessionmaker(engine)() as session:
        with pytest.raises(ConfigurationError, match="does not hold"):
            await _ask(app, chat, key="k2", session=session)
    await engine.dispose()


async def test_a_handle_of_a_rolled_back_admission_says_that_there_is_no_such_turn(app: App) -> None:
    @app.harness.turn("chat")
    async def chat(turn: Turn[Ask]) -> str:
        return "never"

    async with app.sessions() as session:
        handle = await _ask(app, chat, session=session)
        await session.rollback()
    with pytest.raises(ResultUnavailable) as gone:
        await handle.result()
    assert gone.value.why == "gone"
