"""Planted bugs of ends: final records, what is told of them, and the order of what follows a commit."""
# ruff: noqa: SLF001 - a mutant sits inside of what it mutates

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from oneturn.core import transitions
from oneturn.core.errors import BackendUnavailable
from oneturn.core.event import failure_body, stop_body
from oneturn.core.record import Record
from oneturn.core.rows import Rows
from oneturn.core.status import Status
from oneturn.core.steps import Ended, Finish, Gone, Stop
from oneturn.runtime.engine import Engine
from oneturn.runtime.execution import Execution
from oneturn.runtime.waiting import listening
from oneturn.testing.simulation.zoo.bug import Bug, patched

_real_finalise, _real_finish, _real_stop = Execution._finalise, transitions.finish, transitions.stop


async def _cache_first(self: Execution, status: Status, body: bytes, reason: Any) -> None:
    await self._process.remember(replace(self.record, status=status, body=body, reason=reason))
    await _real_finalise(self, status, body, reason)


@contextmanager
def _reply_before_the_commit() -> Iterator[None]:
    early: dict[str, Record] = {}

    async def finalise(self: Execution, status: Status, body: bytes, reason: Any) -> None:
        early[self.record.id] = replace(self.record, status=status, body=body, reason=reason)
        self._process.announce(self.record)
        await _real_finalise(self, status, body, reason)

    async def outcome(self: Engine, record: Record, *, wait: float | None, through_drain: bool = False) -> Record:
        process = self.process
        end = None if wait is None else process.clock.monotonic() + wait
        with listening(process.signals, record.identity.topic(), clock=process.clock) as bell:
            while record.id not in early or record.id not in process.executions:
                record = await process.records.read(tenant=record.identity.tenant, id=record.id) or record
                left = None if end is None else end - process.clock.monotonic()
                if record.status.final or (left is not None and left <= 0) or not (process.accepting or through_drain):
                    return record
                await bell.wait(min(process.settings.check_every, left or process.settings.check_every))
            return early[record.id]

    with patch.object(Execution, "_finalise", finalise), patch.object(Engine, "outcome", outcome):
        yield


async def _unknown_is_failed(self: Execution, status: Status, body: bytes, reason: Any) -> None:
    try:
        await _finalise_once(self, status, body, reason)
    except BackendUnavailable:
        failed = failure_body(code="store-away", message="The answer could not be stored.")
        await self._process.ended(replace(self.record, status=Status.FAILED, body=failed))
        raise


async def _finalise_once(self: Execution, status: Status, body: bytes, reason: Any) -> None:
    after, events = self.emitter.pending()
    finish = replace(self._finish(status, body, reason), after=after, events=events)
    answer = await self._process.records.finish(finish)
    if answer.record is not None and answer.record.status.final:
        await self._process.ended(answer.record)


def _answer_by_any_end(rows: Rows, asked: Finish) -> Ended | Gone:
    answer = _real_finish(rows, asked)
    if isinstance(answer, Ended) and answer.here:
        rows.answer(answer.record)
    return answer


def _stop_what_has_ended(rows: Rows, asked: Stop) -> Ended | Gone:
    record = rows.read(asked.tenant, asked.id)
    if record is not None and record.status is Status.SUCCEEDED:
        return Ended(record=rows.end(record, status=Status.STOPPED, body=stop_body(asked.reason), reason=asked.reason))
    return _real_stop(rows, asked)


async def _until_nothing(self: Engine, seconds: float) -> None:  # noqa: ARG001 - that is the bug
    return


def _answer_by_any_success(rows: Rows, asked: Finish) -> Ended | Gone:
    answer = _real_finish(rows, asked)
    if isinstance(answer, Ended) and answer.here and asked.status is Status.SUCCEEDED:
        rows.answer(answer.record)
    return answer


BUGS: tuple[Bug, ...] = (
    Bug(
        name="the cache is filled before the commit",
        breaks=("I4", "I5", "I11"),
        plant=patched((Execution, "_finalise", _cache_first)),
    ),
    Bug(name="the reply leaves before the commit", breaks=("I4", "I11"), plant=_reply_before_the_commit),
    Bug(
        name="an unknown commit is told as failed",
        breaks=("I4", "I5", "I11"),
        plant=patched((Execution, "_finalise", _unknown_is_failed)),
    ),
    Bug(
        name="a finish is not tried again",
        breaks=("I3",),
        plant=patched((Execution, "_finalise", _finalise_once), (Execution, "_finalised", _finalise_once)),
    ),
    Bug(
        name="a failed turn answers its message",
        breaks=("I7", "I8"),
        plant=patched((transitions, "finish", _answer_by_any_end)),
    ),
    Bug(
        name="a stop of what has ended",
        breaks=("I3", "I4"),
        plant=patched((transitions, "stop", _stop_what_has_ended)),
    ),
    Bug(
        name="a drain leaves records",
        breaks=("I16",),
        plant=patched((Engine, "_until_idle", _until_nothing)),
    ),
    Bug(
        name="any success answers its message anew",
        breaks=("I7", "I8"),
        plant=patched((transitions, "finish", _answer_by_any_success)),
    ),
)
