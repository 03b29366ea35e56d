"""The fence in the application's own transaction: its rows and ours are one commit, or neither."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from oneturn.core.errors import ConfigurationError, Stopped
from oneturn.core.status import Status, StopReason
from oneturn.core.steps import Finish, Gone
from oneturn.core.store import Execute, TransactionalRecords

if TYPE_CHECKING:
    from oneturn.runtime.execution import Execution

T = TypeVar("T")


class Fence:
    """Hooks one SQLAlchemy session for one transaction. Savepoints do not trigger it; the outermost commit does."""

    def __init__(
        self, session: Any, execution: Execution, *, finish: Finish | None, store: TransactionalRecords
    ) -> None:
        self._waiting = True
        self._committed = False
        self._session = plain_session(session)
        self._execution = execution
        self._finish = finish
        self._store = store
        self._undo = listen(
            self._session,
            before_commit=self._before_commit,
            after_commit=self._after_commit,
            after_transaction_end=self._transaction_ended,
        )

    def _before_commit(self, session: Any) -> None:
        if session.in_nested_transaction():
            return
        session.flush()
        gone = in_records(partial(self._write, executor(session)))
        if gone is not None and gone.record is None:
            raise ConfigurationError(ELSEWHERE)
        if gone is not None:
            raise Stopped(_reason(gone))

    def _write(self, run: Execute) -> Gone | None:
        record = self._execution.record
        if self._finish is None:
            return self._store.check_in(run, tenant=record.identity.tenant, id=record.id, epoch=record.epoch or 0)
        self._execution.emitter.seal()
        after, events = self._execution.emitter.pending()
        answer = self._store.finish_in(run, replace(self._finish, after=after, events=events))
        return answer if isinstance(answer, Gone) else None

    def _after_commit(self, session: Any) -> None:
        self._committed = self._committed or not session.in_nested_transaction()

    @property
    def open(self) -> bool:
        """Whether the session's transaction is under way: our own steps would wait for it."""
        return self._waiting and self._session.in_transaction()

    def _transaction_ended(self, _: Any, transaction: Any) -> None:
        # Committed, rolled back or closed; a savepoint has a parent.
        if transaction.parent is None:
            self._waiting = False
            self._undo()
            if self._finish is not None and not self._committed:
                self._execution.emitter.unseal()


ELSEWHERE = "the session's database does not hold this gate's records: point ONETURN_RECORDS at the database that the session is bound to"


def in_records(step: Callable[[], T]) -> T:
    """Take a step on the session's database; one that lacks our tables is refused in words."""
    try:
        return step()
    except Exception as error:
        if "no such table: oneturn_" in str(error):
            raise ConfigurationError(ELSEWHERE) from error
        raise


def _reason(gone: Gone) -> StopReason:
    record = gone.record
    if record is not None and record.status is Status.STOPPED and record.reason is not None:
        return record.reason
    return StopReason.LEASE_LOST


def plain_session(session: Any) -> Any:
    """The synchronous session beneath an `AsyncSession`, or the session itself."""
    try:
        from sqlalchemy.orm import Session  # noqa: PLC0415 - an extra, imported when it is used
    except ImportError as error:
        raise ConfigurationError("this needs SQLAlchemy: pip install 'oneturn[sqlalchemy]'") from error
    plain = getattr(session, "sync_session", session)
    if not isinstance(plain, Session):
        raise TypeError(f"a SQLAlchemy Session or AsyncSession is needed, not {type(session).__name__}")
    return plain


def executor(session: Any) -> Execute:
    """Runs statements with positional parameters on the session's connection, in its transaction."""
    connection = session.connection()

    def run(sql: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        result = connection.exec_driver_sql(sql, tuple(parameters))
        return [tuple(row) for row in result.fetchall()] if result.returns_rows else []

    return run


def listen(session: Any, **hooks: Callable[..., None]) -> Callable[[], None]:
    """Call hooks at a session's events; answers how to end that. Safe to end from within a hook."""
    from sqlalchemy import event  # noqa: PLC0415 - as above

    # SQLAlchemy cannot detach a listener while it is being called: so one listener per session and event stays, and calls
    # those hooks that are still wanted.
    wanted: dict[str, list[Callable[..., None]]] = session.info.setdefault("oneturn", {})
    for name, hook in hooks.items():
        if name not in wanted:
            wanted[name] = []
            event.listen(session, name, partial(_call_all, wanted[name]))
        wanted[name].append(hook)

    def undo() -> None:
        for name, hook in hooks.items():
            if hook in wanted[name]:
                wanted[name].remove(hook)

    return undo


def _call_all(hooks: list[Callable[..., None]], *arguments: Any) -> None:
    for hook in tuple(hooks):
        hook(*arguments)
