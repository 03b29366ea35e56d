"""Admission: one decision about a message, made before anything is spent, for every entry point alike."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, cast

from oneturn.core.errors import BackendUnavailable, Refused, ResultUnavailable
from oneturn.core.failpoint import failpoint
from oneturn.core.identity import QUEUE_TOPIC, Identity, Principal
from oneturn.core.lease import Held
from oneturn.core.record import Record
from oneturn.core.status import OnBusy, Status
from oneturn.core.steps import Busy, Claim, Claimed, Enqueued, Existing, Full, NotRegenerable
from oneturn.core.store import ClaimAnswer
from oneturn.runtime.handler import Handler
from oneturn.runtime.process import Process
from oneturn.runtime.waiting import listening

DecidedClaim = Claimed | Enqueued | Existing | Busy | Full | NotRegenerable
Admitted = Literal["started", "queued", "attached", "replayed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """An admitted message: its record as it stood then, and how it got in."""

    record: Record
    admission: Admitted

    @property
    def new(self) -> bool:
        """Started or queued by this very call."""
        return self.admission in ("started", "queued")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One logical request, as it is compared with others of the same name."""

    identity: Identity
    principal: Principal
    handler: Handler
    fingerprint: str
    payload: bytes
    on_busy: OnBusy
    regenerate: str | None = None


class Admission:
    """Admits messages. Runs as a task of the process, never of the request: a client that leaves cancels nothing here."""

    def __init__(self, process: Process) -> None:
        self._process = process

    async def admit(self, asked: Asked) -> Ticket:
        """Started, queued, attached or replayed; else `Refused`, `ResultUnavailable` or `BackendUnavailable`."""
        process = self._process
        while True:
            if (record := await self._known(asked)) is not None:
                return await self._remembered(self.existing(record, asked))
            if not process.accepting:
                raise Refused("this process is shutting down: ask again", reason="draining", retry_after=1.0)
            owner = process.ids.new()
            with listening(
                process.signals, asked.identity.topic(), asked.identity.request_lock(), clock=process.clock
            ) as bell:
                got = await process.acquire(asked.identity, owner=owner, run_limit=asked.handler.run_limit)
                if isinstance(got, Held):
                    # The same request is being admitted or runs. Wait for its record, or for the key; then look again.
                    await bell.wait(min(got.remaining, process.settings.check_every, 0.25))
                    continue
            lease, kept = got
            started = False
            try:
                await failpoint("admission.leased")
                claimed_at, answer = await self._claim(asked, owner=owner)
                if isinstance(answer, Claimed):
                    process.execute(answer, lease=lease, kept=kept, claimed_at=claimed_at)
                    started = True
            finally:
                if not started:
                    await process.give_back(lease, kept)
            return await self._answer(answer, asked)

    async def _known(self, asked: Asked) -> Record | None:
        if self._process.settings.keep_replays > 0:
            try:
                cached = await self._process.replays.get(asked.identity)
            except BackendUnavailable:
                cached = None
            if cached is not None:
                return cached
        return await self._process.records.find(asked.identity)

    async def _claim(self, asked: Asked, *, owner: str) -> tuple[float, DecidedClaim]:
        process = self._process
        claim = claim_of(asked, process=process, owner=owner)

        async def step(dead: str | None, alive: str | None) -> ClaimAnswer:
            return await process.records.claim(replace(claim, dead=dead, alive=alive))

        return await process.precede(step)

    async def _answer(self, answer: DecidedClaim, asked: Asked) -> Ticket:
        process = self._process
        match answer:
            case Claimed(record=record):
                return Ticket(record=record, admission="started")
            case Enqueued(record=record, position=position):
                process.decide("queued", record, position=position)
                process.announce(record)
                process.signals.publish(QUEUE_TOPIC)
                return Ticket(record=record, admission="queued")
            case Existing(record=record):
                return await self._remembered(self.existing(record, asked))
            case Busy() | Full() | NotRegenerable():
                raise self.refusal(answer, asked)

    def refusal(self, answer: Busy | Full | NotRegenerable, asked: Asked) -> Refused:
        """Say what stands in the way; nothing was written and the key is not used up."""
        match answer:
            case Busy(record=record):
                self._process.decide("refused busy", record, by=asked.identity.key)
                return Refused(
                    "another message of this conversation is being answered",
                    reason="busy",
                    retry_after=1.0,
                    turn=record.id,
                )
            case Full(limit=limit):
                return Refused(f"{limit} messages of this conversation wait already", reason="limit", retry_after=5.0)
            case NotRegenerable(turn=turn):
                return Refused(
                    f"{turn!r} is not the newest answered message of this conversation, nor one without an answer",
                    reason="not-regenerable",
                    turn=turn,
                )

    async def _remembered(self, ticket: Ticket) -> Ticket:
        if ticket.admission == "replayed":
            await self._process.remember(ticket.record)
        return ticket

    def existing(self, record: Record, asked: Asked) -> Ticket:
        """The same key again: a reuse is refused before anything else is looked at.

        Waits for nothing: its caller may be in an application's open transaction, which holds the scope's row.
        """
        process = self._process
        if record.fingerprint != asked.fingerprint:
            process.decide("refused key reused", record)
            raise Refused(
                "this idempotency key was used before with other content: use a new key for a new message",
                reason="key-reused",
                turn=record.id,
            )
        if record.expired:
            raise ResultUnavailable("the result of this turn is no longer kept", why="expired", turn=record.id)
        if record.status is Status.ABANDONED:
            raise ResultUnavailable(
                "this turn was started and its process died: whether it had any effect is not known",
                why="abandoned",
                turn=record.id,
            )
        if not record.status.final:
            return Ticket(record=record, admission="attached")
        process.decide("replayed", record)
        return Ticket(record=record, admission="replayed")


def claim_of(asked: Asked, *, process: Process, owner: str) -> Claim:
    """The claim of a request, under a fresh turn id."""
    return Claim(
        id=process.ids.new(),
        identity=asked.identity,
        handler=asked.handler.name,
        fingerprint=asked.fingerprint,
        payload=asked.payload,
        owner=owner,
        ttl=process.settings.ttl,
        claims=asked.principal.claims,
        recovery=asked.handler.recovery,
        run_limit=asked.handler.run_limit,
        on_busy=cast("Literal['reject', 'enqueue']", asked.on_busy),
        queue_limit=process.settings.queue_limit,
        regenerate=asked.regenerate,
    )
