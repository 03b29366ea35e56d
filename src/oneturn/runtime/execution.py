"""The execution: starts the work, observes its real end, and finalises it under the fence."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from oneturn.core.errors import BackendUnavailable, Stopped, TurnFailed
from oneturn.core.event import failure_body, stop_body
from oneturn.core.failpoint import failpoint
from oneturn.core.identity import stop_topic
from oneturn.core.record import Record
from oneturn.core.status import Status, StopReason
from oneturn.core.steps import Claimed, Ended, Finish, Gone
from oneturn.runtime.emitter import Emitter, ended
from oneturn.runtime.fence import Fence
from oneturn.runtime.handler import Handler
from oneturn.runtime.lease import Lease
from oneturn.runtime.turn import Message, Turn, bind, message_of, to_message
from oneturn.runtime.waiting import Bell, settled, wake

if TYPE_CHECKING:
    from oneturn.runtime.keeper import Kept
    from oneturn.runtime.process import Process

logger = logging.getLogger(__name__)

Outcome = tuple[Status, bytes, StopReason | None]


class Execution:
    """One running attempt in this process. Lives until its work has really ended, however its watchers fare."""

    def __init__(
        self, claimed: Claimed, *, handler: Handler | None, lease: Lease, kept: Kept, process: Process
    ) -> None:
        self.record: Record = claimed.record
        self.lease = lease
        self._claimed = claimed
        self._handler = handler
        self._kept = kept
        self._process = process
        self._followed: list[concurrent.futures.Future[Any] | asyncio.Future[Any]] = []
        self._work: asyncio.Future[Any] | None = None
        self._fence: Fence | None = None
        self.observed = False
        """Whether `run` has begun."""
        self.emitter = Emitter(
            self.record,
            records=process.records,
            clock=process.clock,
            packing=process.settings.packing,
            max_event=process.settings.max_event,
            announce=lambda: process.announce_events(self.record),
            gone=self._gone,
        )

    # -- what the turn asks for -----------------------------------------------------------------------------------

    async def history(self, *, limit: int) -> tuple[Message[Any], ...]:
        """Answered before this turn's epoch: nothing older can appear any more, so reading late reads the claim's context."""
        assert self._handler is not None  # noqa: S101 - only a handler's turn asks
        record = self.record
        regenerating = record.message if record.message != record.id else ""
        # A store that is away for a moment is no reason to fail the turn; a stop ends this wait.
        stored = await self._process.persistently(
            lambda: self._process.records.history(
                tenant=record.identity.tenant,
                scope=record.identity.scope,
                before_epoch=record.epoch,
                without=regenerating,
                limit=limit,
            )
        )
        load = self._handler.payload.validate_json
        return tuple(message for item in stored if (message := to_message(item, load)) is not None)

    def follow(self, future: concurrent.futures.Future[Any] | asyncio.Future[Any]) -> None:
        """The work is not over before `future` is."""
        self._followed.append(future)

    def on_stop(self, hook: Callable[[], object]) -> None:
        """Call `hook` when the lease is told to stop; what it raises is logged."""

        def guarded(_: StopReason) -> None:
            try:
                hook()
            except Exception:
                logger.exception("an on_stop hook failed", extra={"turn": self.record.id})

        self.lease.on_stop(guarded)

    def fence(self, session: Any, **result: Any) -> None:
        """See `Turn.fence`."""
        assert self._handler is not None  # noqa: S101 - only a handler's turn asks
        if self._fence is not None and self._fence.open:
            raise RuntimeError("this turn has fenced a transaction that is still open: commit it or roll it back first")
        finish = None
        if "result" in result:
            body = self._handler.result.dump_json(result["result"], warnings="error")
            finish = self._finish(Status.SUCCEEDED, body, None)
        self._fence = Fence(session, self, finish=finish, store=self._process.transactional())

    def refuse_while_fenced(self, what: str) -> None:
        """A call that would wait for the application's own open transaction raises instead."""
        if self._fence is not None and self._fence.open:
            raise RuntimeError(f"{what} would wait for your own fenced transaction: call it before turn.fence or after")

    # -- running --------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """The observer. Runs in a task that nobody cancels but the process's end.

        Cancelled: the record is left as it is, its vouchers lapse, and a sweeper abandons it. Dies: the same.
        """
        process, record = self._process, self.record
        self.observed = True
        listen = process.signals.subscribe(stop_topic(record.id), lambda: process.keeper.look(self._kept))
        emitting = process.supervisor.spawn(self.emitter.run(), name=f"emitter {record.id}")
        try:
            await failpoint("execution.started")
            outcome = await self._outcome()
            self.emitter.close(self.lease.stopping)
            await ended(emitting)
            await failpoint("execution.finish.before")
            await self._finalised(*outcome)
            await failpoint("execution.finish.after")
            await self._real_end()
        except BaseException:
            # Nobody observes the work any more: it must not go on as if it were leased.
            self.lease.lose(StopReason.LEASE_LOST)
            raise
        finally:
            listen()
            emitting.cancel()
            process.keeper.remove(self._kept)
            try:
                await failpoint("execution.release.before")
            finally:
                await process.release(self.lease)

    async def _outcome(self) -> Outcome:
        if self._handler is None:
            return (
                Status.FAILED,
                failure_body(
                    code="unknown-handler", message=f"No process knows the handler {self.record.handler!r} any more."
                ),
                None,
            )
        try:
            payload = self._handler.payload.validate_json(self.record.payload or b"null")
        except ValueError:
            return (
                Status.FAILED,
                failure_body(
                    code="invalid-payload", message="The stored message no longer fits this version of the service."
                ),
                None,
            )
        turn = Turn(self, payload=payload, unanswered=self._unanswered(payload))
        self._work = self._start(turn, self._handler)
        self.lease.on_stop(self._cancel_work)
        await self._until_over_or_stopped(self._work)
        return self._judge(self._work, self._handler)

    def _unanswered(self, payload: Any) -> tuple[Message[Any], ...]:
        assert self._handler is not None  # noqa: S101 - as above
        load = self._handler.payload.validate_json
        older = (to_message(item, load) for item in self._claimed.unanswered[:-1])
        return (*(message for message in older if message is not None), message_of(self.record, payload))

    def _start(self, turn: Turn[Any], handler: Handler) -> asyncio.Future[Any]:
        """Asks once more, at the very first step: a claim whose answer came too late, or a stop, begins nothing."""
        if handler.asynchronous:

            async def work() -> Any:
                bind(turn)
                self.lease.check()
                try:
                    return await handler.function(turn)
                except SystemExit as error:
                    # asyncio would end the loop, and with it everybody else's turns.
                    raise RuntimeError("the handler tried to end the process") from error

            return self._process.supervisor.spawn(work(), name=f"turn {self.record.id}", judged=True)

        def work_in_thread() -> Any:
            bind(turn)
            self.lease.check()
            return handler.function(turn)

        context = contextvars.Context()
        thread = self._process.pool.submit(self.record.identity.tenant, lambda: context.run(work_in_thread))
        self._followed.append(thread)
        return asyncio.wrap_future(thread)

    def _cancel_work(self, _: StopReason) -> None:
        work = self._work
        if isinstance(work, asyncio.Task):
            work.cancel()  # at its next await; a thread is asked by check() instead

    async def _until_over_or_stopped(self, work: asyncio.Future[Any]) -> None:
        """Return when the work and what it follows have ended; or, told to stop, have not ended a while later."""
        clock, bell = self._process.clock, Bell(self._process.clock)
        self.lease.on_stop(lambda _: bell.ring_here())
        watched: list[Any] = []
        stop_at: float | None = None
        while True:
            for future in (work, *self._followed):
                if future not in watched:
                    watched.append(future)
                    # A thread's future calls back in that thread.
                    future.add_done_callback(lambda _: bell.ring())
            if all(future.done() for future in watched):
                return
            reason = self.lease.stopping
            if reason is not None and stop_at is None:
                stop_at = clock.monotonic() + self._patience(reason)
            if stop_at is not None and clock.monotonic() >= stop_at:
                return
            await bell.wait(None if stop_at is None else stop_at - clock.monotonic())

    def _patience(self, reason: StopReason) -> float:
        """How long work that was told to stop may take before its record is ended without it."""
        settings = self._process.settings
        if reason is StopReason.SHUTDOWN:
            return min(settings.check_every, (settings.hard_deadline - settings.grace) / 2)
        return settings.check_every

    async def _settled(
        self, future: concurrent.futures.Future[Any] | asyncio.Future[Any], seconds: float | None
    ) -> bool:
        if isinstance(future, concurrent.futures.Future):
            mirror: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            loop = asyncio.get_running_loop()

            def over(_: concurrent.futures.Future[Any]) -> None:
                try:
                    loop.call_soon_threadsafe(wake, mirror)
                except RuntimeError:
                    return  # the loop is gone, and the observer with it

            future.add_done_callback(over)
            return await settled(mirror, self._process.clock, seconds)
        return await settled(future, self._process.clock, seconds)

    async def _real_end(self) -> None:
        """The keys are given back when the work has really ended, or its run limit frees them."""
        futures: list[Any] = [*self._followed, *([self._work] if self._work is not None else [])]
        for future in futures:
            limit_at = self.lease.limit_at
            left = None if limit_at is None else max(limit_at - self._process.clock.monotonic(), 0.0)
            await self._settled(future, left)

    # -- finalising -----------------------------------------------------------------------------------------------

    def _judge(self, work: asyncio.Future[Any], handler: Handler) -> Outcome:
        reason = self.lease.stopping
        if work.cancelled() and reason is None:
            return self._internal_error(None)
        # Not done, or cancelled: it was told to stop.
        error = asyncio.CancelledError() if not work.done() or work.cancelled() else work.exception()
        # A lapsed lease does not undo a finished result: the fence decides whether anybody took over. Any other stop, and
        # whatever the work raises after one, stays a stop.
        if reason is not None and (error is not None or reason is not StopReason.LEASE_LOST):
            return _stopped(reason)
        match error:
            case None:
                return self._succeeded(work.result(), handler)
            case Stopped():
                return _stopped(error.reason)
            case TurnFailed():
                return Status.FAILED, failure_body(code=error.code, message=error.message), None
            case _:
                return self._internal_error(error)

    def _succeeded(self, value: Any, handler: Handler) -> Outcome:
        try:
            return Status.SUCCEEDED, handler.result.dump_json(value, warnings="error"), None
        except ValueError as error:
            return self._internal_error(error)

    def _internal_error(self, error: BaseException | None) -> Outcome:
        log_id = self._process.ids.new()
        logger.error("a handler failed", exc_info=error, extra={"turn": self.record.id, "log_id": log_id})
        body = failure_body(code="internal-error", message="The answer could not be made.", log_id=log_id)
        return Status.FAILED, body, None

    def _finish(self, status: Status, body: bytes, reason: StopReason | None) -> Finish:
        record = self.record
        return Finish(
            tenant=record.identity.tenant,
            id=record.id,
            epoch=record.epoch or 0,
            status=status,
            body=body,
            reason=reason,
            after=0,
            keep_payload=self._process.settings.keep_payloads != "until_answered",
        )

    async def _finalised(self, status: Status, body: bytes, reason: StopReason | None) -> None:
        """Finalise; what cannot be stored as it is ends as a failure, at once, rather than as abandoned much later."""
        try:
            await self._finalise(status, body, reason)
        except Exception as error:  # noqa: BLE001 - anything that a handler's content may do to a store
            self.emitter.discard()
            await self._finalise(*self._internal_error(error))

    async def _finalise(self, status: Status, body: bytes, reason: StopReason | None) -> None:
        if status is Status.STOPPED and self._handler is not None and self._handler.partial == "drop":
            self.emitter.drop_text()
        after, events = self.emitter.pending()
        finish = replace(self._finish(status, body, reason), after=after, events=events)
        answer = await self._process.persistently(lambda: self._process.records.finish(finish))
        record = answer.record if isinstance(answer, Ended | Gone) else None
        self._process.decide(
            "finish" if isinstance(answer, Ended) else "finish refused", self.record, status=status.value
        )
        if record is not None and record.status.final:
            await self._process.ended(record)

    def _gone(self, record: Record | None) -> None:
        """The store says that this attempt may not write any more."""
        if record is not None and record.status is Status.STOPPED and record.reason is not None:
            self.lease.stop(record.reason)
        elif record is None or not self._fenced_result(record):
            self.lease.lose(StopReason.LEASE_LOST)

    def _fenced_result(self, record: Record) -> bool:
        return record.epoch == self.record.epoch and record.status is Status.SUCCEEDED

    async def stop(self, reason: StopReason) -> Record | None:
        """End it from outside in this very process: what it has said so far is logged first, then the record is final."""
        try:
            async with asyncio.timeout(1):
                await self.emitter.flush()
        except (TimeoutError, Stopped, BackendUnavailable):
            pass
        return await self._process.stop_record(self.record, reason)


def _stopped(reason: StopReason) -> Outcome:
    return Status.STOPPED, stop_body(reason), reason
