"""The engine: one process's parts, put together, opened and closed; every entry point goes through it."""

from __future__ import annotations

import asyncio
import logging
from contextlib import AbstractAsyncContextManager
from typing import Any, Literal

from oneturn.core.backend import Backend, Capability
from oneturn.core.clock import Clock
from oneturn.core.decision import DecisionLog, DecisionSink, log_decision
from oneturn.core.errors import BackendUnavailable, ConfigurationError, OneturnError, Refused, ResultUnavailable
from oneturn.core.fingerprint import fingerprint
from oneturn.core.identity import Identity, Principal
from oneturn.core.ids import Ids
from oneturn.core.record import Record
from oneturn.core.status import OnBusy, StopReason
from oneturn.runtime.admission import Admission, Asked, Ticket
from oneturn.runtime.handler import Handler
from oneturn.runtime.keeper import KeeperHost
from oneturn.runtime.pool import Threads, real_threads
from oneturn.runtime.process import Process
from oneturn.runtime.queue import Queue
from oneturn.runtime.reader import ConversationReader, Reader, Readers
from oneturn.runtime.recovery import Recovery
from oneturn.runtime.session import enqueue_in_session
from oneturn.runtime.settings import Settings
from oneturn.runtime.waiting import listening, settled

logger = logging.getLogger(__name__)

MAX_NAME = 255


class Engine:
    """Everything that one process does for executions. Made when a gate opens; ends when it closes."""

    def __init__(
        self,
        *,
        settings: Settings,
        records: Backend,
        leases: Backend,
        handlers: dict[str, Handler],
        clock: Clock,
        ids: Ids,
        sink: DecisionSink = log_decision,
        keeper_on: Literal["thread", "loop"] = "thread",
        threads: Threads = real_threads,
    ) -> None:
        if Capability.ATOMIC_MULTI_KEY not in leases.capabilities:
            raise ConfigurationError(
                f"the lease backend {leases.name!r} cannot take two keys in one step, which a conversation needs: use "
                "another one for ONETURN_LEASES"
            )
        self.settings = settings
        self._backends = {id(backend): backend for backend in (records, leases)}
        decisions = DecisionLog(process=ids.new()[:8], clock=clock, sink=sink)
        self.process = Process(
            settings=settings,
            records=records,
            leases=leases,
            clock=clock,
            ids=ids,
            decisions=decisions,
            threads=threads,
        )
        self.process.handlers = handlers
        self._keeper = KeeperHost(self.process.keeper, on=keeper_on)
        self._admission = Admission(self.process)
        self._readers = Readers(self.process)
        self.queue = Queue(self.process)
        self.recovery = Recovery(self.process)

    # -- life ---------------------------------------------------------------------------------------------------------

    async def open(self) -> None:
        """Start the keeper, the queue and the sweeper."""
        supervisor = self.process.supervisor
        await self._keeper.start(supervisor.spawn)
        supervisor.spawn(self.queue.run(), name="queue")
        supervisor.spawn(self.recovery.run(), name="recovery")

    @property
    def accepting(self) -> bool:
        """False once draining."""
        return self.process.accepting

    def drain(self) -> None:
        """Admit nothing new from now on. Call it on the loop; `Gate.drain` may be called from any thread."""
        self.process.accepting = False
        self._readers.wake()

    async def close(self) -> None:
        """Drain, let work end within the grace, stop the rest, finalise, and free everything."""
        self.drain()
        process, settings = self.process, self.settings
        began = process.clock.monotonic()
        try:
            await self._until_idle(settings.grace)
            process.stopping = StopReason.SHUTDOWN
            for execution in tuple(process.executions.values()):
                execution.lease.stop(StopReason.SHUTDOWN)
            left = settings.hard_deadline - (process.clock.monotonic() - began)
            await self._until_idle(max(left, 0.1))
        finally:
            # Reached when the caller is cancelled, too, and not cut short by a second time: nothing of this process stays.
            await process.supervisor.finish(self._end(), name="end")

    async def _end(self) -> None:
        process = self.process
        await process.supervisor.close(keep="keeper")
        await self._keeper.stop()
        await process.supervisor.close()
        process.pool.close()
        process.closed = True
        self._readers.wake()
        for backend in self._backends.values():
            await backend.close()

    async def _until_idle(self, seconds: float) -> None:
        """Until nothing that was begun is under way."""
        supervisor, clock = self.process.supervisor, self.process.clock
        end = clock.monotonic() + seconds
        while (left := end - clock.monotonic()) > 0:
            # Admissions and starts come first: cut off in a store's step they would leave keys, or a record, to nobody.
            tasks = supervisor.named("admission ", "start ") or supervisor.named("observer ")
            if not tasks:
                return
            await settled(tasks[0], clock, left)

    # -- asking -------------------------------------------------------------------------------------------------------

    def asked(
        self,
        handler: Handler,
        *,
        payload: bytes,
        sent: Any,
        conversation: str,
        key: str,
        principal: Principal,
        on_busy: OnBusy | None,
        regenerate: str | None,
    ) -> Asked:
        """Check the parts of a request and name it; ValueError says what is wrong with which part."""
        for name, value in (("conversation", conversation), ("key", key), ("subject", principal.subject)):
            _refuse_bad_name(name, value)
        _refuse_bad_name("tenant", principal.tenant, empty=True)
        if len(payload) > self.settings.max_body:
            raise Refused(
                f"the message has {len(payload)} bytes, at most {self.settings.max_body} are taken", reason="too-large"
            )
        return Asked(
            identity=Identity(tenant=principal.tenant, subject=principal.subject, scope=conversation, key=key),
            principal=principal,
            handler=handler,
            fingerprint=fingerprint(handler=handler.name, sent=sent),
            payload=payload,
            on_busy=handler.policy(on_busy),
            regenerate=regenerate,
        )

    async def ask(
        self,
        handler: Handler,
        *,
        payload: bytes | None,
        sent: Any,
        conversation: str,
        key: str,
        principal: Principal,
        on_busy: OnBusy | None = None,
        regenerate: str | None = None,
    ) -> Ticket:
        """Admit a message. A caller that is cancelled leaves an admission that goes on by itself to its one outcome."""
        if payload is None:
            payload = await self._payload_of(regenerate, principal=principal, conversation=conversation)
        asked = self.asked(
            handler,
            payload=payload,
            sent=sent,
            conversation=conversation,
            key=key,
            principal=principal,
            on_busy=on_busy,
            regenerate=regenerate,
        )
        return await self.admit(asked)

    async def admit(self, asked: Asked) -> Ticket:
        """See `ask`."""
        task = self.process.supervisor.spawn(self._admitted(asked), name=f"admission {asked.identity.key}")
        outcome = await asyncio.shield(task)
        if isinstance(outcome, OneturnError):
            raise outcome
        return outcome

    async def _admitted(self, asked: Asked) -> Ticket | OneturnError:
        # A refusal is a value here: the task may outlive whoever would have caught it.
        try:
            return await self._admission.admit(asked)
        except OneturnError as error:
            return error

    async def _payload_of(self, turn_id: str | None, *, principal: Principal, conversation: str) -> bytes:
        target = None if turn_id is None else await self.find(turn_id, principal=principal, conversation=conversation)
        if target is None or target.payload is None:
            raise Refused(f"there is no message of a turn {turn_id!r} to ask again", reason="not-regenerable")
        return target.payload

    async def ask_in(self, session: Any, asked: Asked) -> Ticket:
        """Admit a message in the application's own transaction: queued by its commit, started afterwards."""
        if not self.accepting:
            raise Refused("this process is shutting down: ask again", reason="draining", retry_after=1.0)
        return await enqueue_in_session(session, asked, process=self.process, admission=self._admission)

    # -- watching -----------------------------------------------------------------------------------------------------

    async def find(self, turn_id: str, *, principal: Principal, conversation: str | None = None) -> Record | None:
        """The record of a turn of this tenant (and conversation); who may see it is the application's decision."""
        record = await self.process.records.read(tenant=principal.tenant, id=turn_id)
        if record is None or (conversation is not None and record.identity.scope != conversation):
            return None
        return record

    async def outcome(self, record: Record, *, wait: float | None, through_drain: bool = False) -> Record:
        """The record as soon as it is final, or as it stands after `wait` seconds.

        When the process begins to drain it answers at once as well, unless the caller waits `through_drain`; then
        BackendUnavailable says that the gate was closed meanwhile.
        """
        process = self.process
        end = None if wait is None else process.clock.monotonic() + wait
        topic = record.identity.topic()
        with listening(process.signals, topic, clock=process.clock) as bell, self._readers.waking(bell):
            while True:
                try:
                    found = await process.records.read(tenant=record.identity.tenant, id=record.id)
                except BackendUnavailable:
                    process.refuse_closed()
                    raise
                record = found or record
                left = None if end is None else end - process.clock.monotonic()
                if found is None:
                    raise ResultUnavailable(
                        "there is no such turn: its admission was rolled back, or it was forgotten long ago",
                        why="gone",
                        turn=record.id,
                    )
                over = left is not None and left <= 0
                if record.status.final or over or not (process.accepting or through_drain):
                    return record
                process.refuse_closed()
                pause = self.settings.check_every
                await bell.wait(pause if left is None else min(left, pause))

    async def cancel(self, record: Record) -> Record:
        """Stop an execution, wherever it runs or waits; answers how it stands then (final stays final)."""
        execution = self.process.executions.get(record.id)
        if execution is not None:
            after = await execution.stop(StopReason.CANCELLED)
        else:
            after = await self.process.stop_record(record, StopReason.CANCELLED)
        return after or record

    async def position(self, record: Record) -> int:
        """The place of a queued record in its conversation, from 1; 0 if it is not queued."""
        return await self.process.records.position(tenant=record.identity.tenant, id=record.id)

    async def turns(
        self, *, tenant: str, scope: str, limit: int = 100, before_sequence: int | None = None
    ) -> list[Record]:
        """A conversation's records, oldest first."""
        return await self.process.records.turns(
            tenant=tenant, scope=scope, limit=limit, before_sequence=before_sequence
        )

    def reader(self, record: Record, *, after: int, through_drain: bool = False) -> AbstractAsyncContextManager[Reader]:
        """Watch one execution."""
        return self._readers.reader(record, after=after, through_drain=through_drain)

    def conversation(
        self, *, tenant: str, scope: str, after: tuple[int, int] | None
    ) -> AbstractAsyncContextManager[ConversationReader]:
        """Watch a whole conversation."""
        return self._readers.conversation(tenant=tenant, scope=scope, after=after)

    async def forget(self, *, tenant: str, conversation: str) -> int:
        """End what runs or waits there and erase what was said; tombstones without content remain."""
        process = self.process
        while True:
            records = await process.records.turns(tenant=tenant, scope=conversation, limit=1000)
            for record in records:
                if not record.status.final:
                    await self.cancel(record)
                await process.replays.drop(record.identity)
            erased = await process.records.erase(tenant=tenant, scope=conversation)
            left = await process.records.turns(tenant=tenant, scope=conversation, limit=1000)
            if all(record.status.final for record in left):
                return erased

    async def ready(self) -> bool:
        """Whether the stores answer and new work is taken."""
        if not self.accepting:
            return False
        try:
            await self.process.records.read(tenant="", id="")
            await self.process.leases.inspect("oneturn-ready")
        except BackendUnavailable:
            return False
        return True


def _refuse_bad_name(name: str, value: str, *, empty: bool = False) -> None:
    if not isinstance(value, str) or (not value and not empty):
        raise ValueError(f"{name} must be a text of 1 to {MAX_NAME} characters")
    if len(value) > MAX_NAME:
        raise ValueError(f"{name} has {len(value)} characters, at most {MAX_NAME} are taken")
    if "\x00" in value:
        raise ValueError(f"{name} must not contain NUL")
