"""The chain: from a question to its answer, step by step, with bounded and visible repairs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

from pydantic import BaseModel

from querydata import wording
from querydata.access import Access, Permit
from querydata.chart import Chart, chart_of
from querydata.execute import Database, QueryFailed, Table
from querydata.guard import Guarded, Rejected, guard
from querydata.model.port import (
    CORRECTABLE,
    TRANSPORT,
    Attempt,
    Declined,
    Exchange,
    Language,
    Model,
    ModelFailed,
    Proposal,
    Request,
    language_of,
)
from querydata.retrieval import retrieve

_REPAIRS = 2
_TRANSPORT_REPAIRS = 1
_TABLE_BYTES = 200_000
_SQL_SHOWN = 4_000
"""So many characters of a failed SQL are part of a step; the model may have written any length."""


class Trace(Protocol):
    """Where a chain says what it does; a `Turn` is one."""

    def emit(self, kind: str, data: Any, /) -> None:
        """Log an event for all watchers."""
        ...

    def text(self, delta: str, /) -> None:
        """Stream a piece of the answer."""
        ...

    def check(self) -> None:
        """Raise if the work may not go on."""
        ...

    def on_stop(self, hook: Callable[[], object], /) -> None:
        """Call `hook` once when the work is told to stop."""
        ...


class Asked(Protocol):
    """What was said: a `Turn`'s payload."""

    @property
    def text(self) -> str:
        """The question."""
        ...


class Said(Protocol):
    """An earlier message of the conversation; a `Message` of a turn's history is one."""

    @property
    def payload(self) -> Asked:
        """The question."""
        ...

    @property
    def answer(self) -> bytes | None:
        """The JSON of its `Answer`, None while it has none."""
        ...

    @property
    def partial(self) -> bool:
        """Whether `answer` is only what a stopped turn had said."""
        ...


class Answer(BaseModel):
    """All that is shown of an answered question; `refused` means that nothing was asked of the data."""

    text: str
    reading: str = ""
    sql: str = ""
    asked: str = ""
    """The SQL before it was restricted to what the asker may read; empty if it was not."""
    columns: list[str] = []
    rows: list[list[Any]] = []
    chart: Chart | None = None
    language: Language
    refused: bool = False
    truncated: bool = False


class ChainFailed(Exception):
    """There is no answer. `message` says why in the asker's language; `code` says it for programs."""

    def __init__(self, message: str, *, code: str) -> None:
        super().__init__(message)
        self.message = message
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The data that is asked: where it is, and what of it may be read."""

    database: Database
    tables: Mapping[str, tuple[str, ...]]
    max_rows: int
    access: Access
    """Who may ask what of it."""


class _Withheld(Exception):
    """The proposed SQL asks for what this asker may not see: no repair makes that right."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class _NotServed(Exception):
    """An attempt came to nothing."""

    def __init__(self, attempt: Attempt, *, kind: Literal["model", "guard", "query"]) -> None:
        super().__init__(attempt.message)
        self.attempt = attempt
        self.kind = kind


async def answer(
    question: str,
    *,
    history: Sequence[Said],
    trace: Trace,
    source: Source,
    model: Model,
    claims: Mapping[str, str],
) -> Answer:
    """Answer `question` of an asker with these `claims` (a role, whose rows), telling `trace` each step as it happens.

    A question that the model declines, or whose asker may not see what it asks for, is answered with `refused`. What cannot be answered after the repairs raises
    `ChainFailed`. `trace.check()` may end the work between any two steps, and while the model is replying.
    """
    permit = source.access.permit(claims)
    if permit is None:
        language = language_of(question)
        text = wording.reason("not-registered", language=language)
        trace.text(text)
        return Answer(text=text, language=language, refused=True)
    chain = _Chain(trace, source=source, model=model, permit=permit)
    return await chain.answer(question, exchanges=tuple(_exchanges(history)))


class _Chain:
    """One question on its way."""

    def __init__(self, trace: Trace, *, source: Source, model: Model, permit: Permit) -> None:
        self._trace = trace
        self._source = source
        self._model = model
        self._permit = permit
        self._attempt = 1

    async def answer(self, question: str, *, exchanges: tuple[Exchange, ...]) -> Answer:
        self._begin("retrieve")
        found = retrieve(question, tables=self._permit.tables, earlier=[each.question for each in exchanges[-1:]])
        self._end("retrieve", tables=list(found.tables), terms=list(found.terms))
        request = Request(question=question, tables=found.schema, knowledge=found.knowledge, history=exchanges)
        transport = 0
        while True:
            try:
                return await self._try(request)
            except _NotServed as failed:
                code = failed.attempt.code
                transport += code in TRANSPORT
                if not _repairable(failed) or transport > _TRANSPORT_REPAIRS or self._attempt > _REPAIRS:
                    raise self._failed(failed, language=language_of(question)) from None
                if code not in TRANSPORT:
                    request = replace(request, errors=(*request.errors, failed.attempt))
            self._attempt += 1

    async def _try(self, request: Request) -> Answer:
        proposal = await self._ask(request)
        if isinstance(proposal, Declined):
            self._trace.text(proposal.message)
            return Answer(text=proposal.message, language=proposal.language, refused=True)
        self._data("reading", proposal.reading)
        try:
            guarded = self._guarded(proposal)
        except _Withheld as withheld:
            name = self._permit.called(withheld.name, proposal.language)
            text = wording.reason("not-permitted", language=proposal.language, detail=name)
            self._trace.text(text)
            return Answer(text=text, reading=proposal.reading, language=proposal.language, refused=True)
        self._data("sql", guarded.sql)
        table = await self._run(guarded.sql)
        return self._worded(table, guarded=guarded, proposal=proposal)

    async def _ask(self, request: Request) -> Proposal | Declined:
        self._begin("model")
        try:
            reply = await self._model.propose(request, delta=lambda _: self._trace.check())
        except ModelFailed as error:
            raise self._not_served("model", sql="", message=error.message, code=error.code, kind="model") from error
        if isinstance(reply, Declined):
            self._end("model", declined=reply.message)
        else:
            self._end("model", reading=reply.reading)
        return reply

    def _guarded(self, proposal: Proposal) -> Guarded:
        self._begin("guard")
        # One row more than is shown: so the database can tell a result that was cut from one that just fits.
        verdict = guard(
            proposal.sql, tables=self._source.tables, max_rows=self._source.max_rows + 1, permit=self._permit
        )
        if isinstance(verdict, Rejected):
            failed = self._not_served(
                "guard", sql=proposal.sql, message=verdict.reason, code=verdict.code, kind="guard"
            )
            raise _Withheld(verdict.name) if verdict.code == "not-permitted" else failed
        self._end("guard", **({"restricted": list(verdict.restricted)} if verdict.restricted else {}))
        return verdict

    async def _run(self, sql: str) -> Table:
        self._begin("run")
        try:
            table = await self._source.database.run(sql, on_stop=self._trace.on_stop)
        except QueryFailed as error:
            # A query that Stop interrupted has not failed: nobody wants it repaired.
            self._trace.check()
            raise self._not_served("run", sql=sql, message=error.message, code=error.code, kind="query") from error
        self._end("run", rows=len(table.rows), truncated=table.truncated)
        return table

    def _worded(self, table: Table, *, guarded: Guarded, proposal: Proposal) -> Answer:
        self._begin("word")
        columns = list(table.columns)
        rows, cut = _fitting(table.rows)
        truncated = table.truncated or cut
        self._data("table", {"columns": columns, "rows": rows, "truncated": truncated})
        # Half a table would draw a wrong picture.
        chart = None if truncated else chart_of(columns, rows)
        if chart is not None:
            self._data("chart", chart)
        text = wording.answer_text(columns, rows, chart=chart, truncated=truncated, language=proposal.language)
        if note := self._permit.note(guarded.restricted, proposal.language):
            text += note if proposal.language == "zh" else f" {note}"
        self._trace.text(text)
        self._end("word")
        return Answer(
            text=text,
            reading=proposal.reading,
            sql=guarded.sql,
            asked=guarded.asked,
            columns=columns,
            rows=rows,
            chart=chart,
            language=proposal.language,
            truncated=truncated,
        )

    # -- what the trace is told -------------------------------------------------------------------------------------

    def _begin(self, name: str) -> None:
        self._trace.check()
        self._step(name, "running")

    def _end(self, name: str, **detail: Any) -> None:
        self._step(name, "done", **detail)

    def _step(self, name: str, state: str, **detail: Any) -> None:
        self._trace.emit("step", {"name": name, "state": state, "attempt": self._attempt, "detail": detail})

    def _data(self, name: str, value: Any) -> None:
        self._trace.emit("data", {"name": name, "value": value})

    def _not_served(
        self, step: str, *, sql: str, message: str, code: str, kind: Literal["model", "guard", "query"]
    ) -> _NotServed:
        self._step(step, "failed", reason=message, code=code, **({"sql": sql[:_SQL_SHOWN]} if sql else {}))
        return _NotServed(Attempt(sql=sql, message=message, code=code), kind=kind)

    def _failed(self, failed: _NotServed, *, language: Language) -> ChainFailed:
        code = failed.attempt.code
        kind = "guard" if failed.kind == "guard" else "query"
        text = wording.reason(code, language=language, kind=kind, detail=failed.attempt.message, attempts=self._attempt)
        return ChainFailed(text, code=code)


def _repairable(failed: _NotServed) -> bool:
    code = failed.attempt.code
    return code in CORRECTABLE | TRANSPORT if failed.kind == "model" else code != "interrupted"


def _exchanges(history: Sequence[Said]) -> Iterator[Exchange]:
    """The finished, answered turns; a refusal or half an answer says nothing about the next question."""
    for said in history:
        if said.answer is None or said.partial:
            continue
        try:
            given = Answer.model_validate_json(said.answer)
        except ValueError:  # an answer of an older version
            continue
        if not given.refused and given.sql:
            # The model is shown what it wrote: the filter is not its to repeat.
            yield Exchange(question=said.payload.text, reading=given.reading, sql=given.asked or given.sql)


def _fitting(rows: Sequence[Sequence[Any]]) -> tuple[list[list[Any]], bool]:
    """As many rows as an event can carry, as plain JSON values; and whether some were left out."""
    fitting: list[list[Any]] = []
    left = _TABLE_BYTES
    for row in rows:
        plain = [each if each is None or isinstance(each, str | int | float) else str(each) for each in row]
        left -= len(json.dumps(plain, ensure_ascii=False).encode()) + 1
        if left < 0:
            return fitting, True
        fitting.append(plain)
    return fitting, False
