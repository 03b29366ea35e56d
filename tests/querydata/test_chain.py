"""The chain over the real guard and database, with a real endpoint on loopback or the embedded model."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from oneturn import Message
from querydata.assembly import access_of
from querydata.campus import TABLES, build
from querydata.chain import Answer, ChainFailed, Source, answer
from querydata.execute import Database, Table
from querydata.handler import Ask
from querydata.model import Model, Proposal, Request
from querydata.model.embedded import EmbeddedModel
from querydata.parser import Values
from querydata.settings import Settings

from .scripted_openai import Fault, Reply, ScriptedOpenAI, declined, faulty, raw, said
from .test_model import scripted

ACCESS = access_of(Settings())
ADMIN = {"role": "admin"}
COUNT = "SELECT count(*) AS students FROM student"
BY_YEAR = (
    "SELECT enrolled_year AS year, count(*) AS students FROM student GROUP BY enrolled_year ORDER BY enrolled_year"
)
ENDLESS = "SELECT count(*) AS c FROM student AS s0" + "".join(
    f" JOIN student AS s{n} ON s{n}.id + s{n - 1}.id > 0" for n in range(1, 16)
)
"""6 to the power of 16 rows."""


class Stopped(Exception):
    pass


class Recorder:
    """A trace that remembers, and that can be stopped."""

    def __init__(self) -> None:
        self.events: list[tuple[str, Any]] = []
        self.said = ""
        self.stopping = False
        self.hooks: list[Callable[[], object]] = []
        self.on_event: Callable[[str, Any], None] = lambda _kind, _data: None

    def emit(self, kind: str, data: Any, /) -> None:
        # As a turn does: what is emitted is text at once.
        self.events.append((kind, json.loads(json.dumps(data))))
        self.on_event(kind, data)

    def text(self, delta: str, /) -> None:
        self.said += delta

    def check(self) -> None:
        if self.stopping:
            raise Stopped

    def on_stop(self, hook: Callable[[], object], /) -> None:
        self.hooks.append(hook)

    def stop(self) -> None:
        self.stopping = True
        for hook in self.hooks:
            hook()

    def steps(self) -> list[tuple[str, str, int]]:
        return [(data["name"], data["state"], data["attempt"]) for kind, data in self.events if kind == "step"]

    def failed(self) -> list[dict[str, Any]]:
        return [data["detail"] for kind, data in self.events if kind == "step" and data["state"] == "failed"]

    def data(self) -> dict[str, Any]:
        return {data["name"]: data["value"] for kind, data in self.events if kind == "data"}


@contextmanager
def campus_of_six(path: Path) -> Iterator[Source]:
    """A campus of six students, in department 1."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(files("querydata.campus").joinpath("schema.sql").read_text(encoding="utf8"))
        connection.execute("INSERT INTO department VALUES (1, '数学学院', 'Mathematics')")
        connection.execute("INSERT INTO major VALUES (1, 1, '数学', 'Mathematics')")
        connection.execute("INSERT INTO class VALUES (1, 1, '数学2025-1', 2025)")
        connection.executemany(
            "INSERT INTO student VALUES (?, ?, ?, '女', 1, ?)",
            [(n, f"N{n}", f"S{n}", 2024 + n % 3) for n in range(1, 7)],
        )
    database = Database(path, statement_timeout=30, max_rows=100, tables=TABLES)
    yield Source(database=database, tables=TABLES, max_rows=100, access=ACCESS)
    database.close()


@pytest.fixture
def source(tmp_path: Path) -> Iterator[Source]:
    with campus_of_six(tmp_path / "campus.db") as source:
        yield source


async def ask(
    question: str,
    *,
    source: Source,
    model: Model,
    trace: Recorder | None = None,
    history: Sequence[Message[Ask]] = (),
    claims: Mapping[str, str] = ADMIN,
) -> Answer:
    trace = trace or Recorder()
    return await answer(question, history=history, trace=trace, source=source, model=model, claims=claims)


def last_message(endpoint: ScriptedOpenAI, call: int) -> str:
    return str(endpoint.requests[call]["messages"][-1]["content"])


@pytest.mark.row("Q1")
async def test_a_question_becomes_steps_sql_table_chart_and_wording(source: Source) -> None:
    trace = Recorder()
    async with scripted(said(BY_YEAR, "students by year")) as (endpoint, model):
        given = await ask("How many students enrolled in each year?", source=source, model=model, trace=trace)
    assert given.columns == ["year", "students"]
    assert given.rows == [[2024, 2], [2025, 2], [2026, 2]]
    assert given.chart == {"kind": "line", "x": "year", "y": "students"}
    assert given.reading == "students by year"
    assert given.language == "en"
    assert given.text == trace.said
    assert "3 rows" in given.text
    assert Answer.model_validate_json(given.model_dump_json()) == given
    names = ("retrieve", "model", "guard", "run", "word")
    assert trace.steps() == [(name, state, 1) for name in names for state in ("running", "done")]
    table = {"columns": given.columns, "rows": given.rows, "truncated": False}
    assert trace.data() == {"reading": given.reading, "sql": given.sql, "table": table, "chart": given.chart}
    assert "student(id, number, name" in endpoint.requests[0]["messages"][0]["content"]


@pytest.mark.case("D6")
async def test_declining_is_an_answer_that_asks_nothing_of_the_data(source: Source) -> None:
    trace = Recorder()
    async with scripted(declined("没有天气数据")) as (_, model):
        given = await ask("天气怎么样", source=source, model=model, trace=trace)
    assert given == Answer(text="没有天气数据", language="zh", refused=True)
    assert trace.data() == {}
    assert trace.said == "没有天气数据"


@pytest.mark.case("D8")
async def test_a_follow_up_is_told_the_answered_turns_in_order_and_no_others(source: Source) -> None:
    def message(question: str, given: bytes | None, *, partial: bool = False) -> Message[Ask]:
        return Message(turn=question, payload=Ask(text=question), answer=given, partial=partial)

    def earlier(question: str, sql: str, *, refused: bool = False, partial: bool = False) -> Message[Ask]:
        given = Answer(text="t", reading=f"r:{question}", sql=sql, language="en", refused=refused)
        return message(question, given.model_dump_json().encode(), partial=partial)

    history = [
        earlier("first", "SELECT 1"),
        message("unanswered", None),
        earlier("refused", "", refused=True),
        earlier("half", "SELECT 3", partial=True),
        message("of an older version", b'{"x": 1}'),
        earlier("last", "SELECT 2"),
    ]
    async with scripted(said(COUNT)) as (endpoint, model):
        await ask("and now?", source=source, model=model, history=history)
    asked = [each["content"] for each in endpoint.requests[0]["messages"] if each["role"] == "user"]
    assert asked == ["first", "last", "and now?"]


async def test_a_table_too_big_for_an_event_is_cut_and_says_so(source: Source) -> None:
    wide = Source(database=_Wide(), tables=TABLES, max_rows=100, access=ACCESS)  # type: ignore[arg-type]
    trace = Recorder()
    async with scripted(said(COUNT)) as (_, model):
        given = await ask("students", source=wide, model=model, trace=trace)
    table = trace.data()["table"]
    assert len(json.dumps(table).encode()) < 201_000
    assert table["truncated"] is True
    assert given.truncated
    assert given.chart is None
    assert f"first {len(given.rows)} rows" in given.text


class _Wide:
    async def run(self, sql: str, *, on_stop: object = None) -> Table:
        return Table(columns=("a", "b"), rows=tuple(("x" * 4000 + str(n), n) for n in range(90)), truncated=False)


@pytest.mark.row("Q1")
@pytest.mark.parametrize(
    ("bad", "step"),
    [
        (said("DELETE FROM student"), "guard"),
        (said("SELECT nonsense FROM student"), "guard"),
        (said("SELECT abs(-9223372036854775808) FROM student"), "run"),
        (raw("Sure! SELECT 1"), "model"),
        (faulty("length"), "model"),
    ],
)
async def test_what_fails_goes_back_to_the_model_with_its_error(source: Source, bad: Reply, step: str) -> None:
    trace = Recorder()
    async with scripted(bad, said(COUNT)) as (endpoint, model):
        given = await ask("students", source=source, model=model, trace=trace)
        assert given.rows == [[6]]
        assert endpoint.calls == 2
        assert (step, "failed", 1) in trace.steps()
        assert ("model", "done", 2) in trace.steps()
        (failure,) = trace.failed()
        assert failure["reason"] in last_message(endpoint, 1)
        if step != "model":
            assert json.loads(bad["text"])["sql"] in endpoint.requests[1]["messages"][-2]["content"] or step == "run"


@pytest.mark.row("Q1")
@pytest.mark.case("D7")
async def test_repairs_stop_after_two_and_leave_a_plain_reason(source: Source) -> None:
    trace = Recorder()
    async with scripted(*[said("DROP TABLE student")] * 5) as (endpoint, model):
        with pytest.raises(ChainFailed) as failed:
            await ask("学生人数", source=source, model=model, trace=trace)
        assert endpoint.calls == 3
        assert len([each for each in endpoint.requests[2]["messages"] if "did not work" in each["content"]]) == 2
    assert [attempt for name, state, attempt in trace.steps() if (name, state) == ("guard", "failed")] == [1, 2, 3]
    assert "安全检查" in failed.value.message
    assert failed.value.code == trace.failed()[-1]["code"]


@pytest.mark.case("D7")
@pytest.mark.parametrize("fault", ["cut", "no-finish", "429", "500", "broken-chunk", "error-event", "401", "filtered"])
async def test_a_failing_endpoint_ends_as_a_failed_step_with_a_plain_reason(source: Source, fault: Fault) -> None:
    trace = Recorder()
    async with scripted(*[faulty(fault)] * 5) as (endpoint, model):
        with pytest.raises(ChainFailed) as failed:
            await ask("students", source=source, model=model, trace=trace)
        # Transport is tried once more, a bad reply twice, a refusal never.
        assert endpoint.calls == {"broken-chunk": 3, "401": 1, "filtered": 1}.get(fault, 2)
    assert trace.steps()[-1][:2] == ("model", "failed")
    text = failed.value.message + json.dumps(trace.events)
    assert "sk-hidden" not in text
    assert "Traceback" not in text


@pytest.mark.case("D7")
async def test_a_hanging_endpoint_is_asked_once_more_and_then_given_up(source: Source) -> None:
    async with scripted(faulty("hang"), faulty("hang-midway"), reply_within=0.2) as (endpoint, model):
        with pytest.raises(ChainFailed) as failed:
            await ask("students", source=source, model=model)
        assert failed.value.code == "model-timeout"
        await endpoint.until(lambda it: it.hang_ups == 2)


async def test_a_broken_connection_is_not_reported_to_the_model_as_its_mistake(source: Source) -> None:
    async with scripted(faulty("cut"), said(COUNT)) as (endpoint, model):
        await ask("students", source=source, model=model)
        assert endpoint.requests[0]["messages"] == endpoint.requests[1]["messages"]


@pytest.mark.case("D4")
async def test_a_statement_timeout_is_named(source: Source, tmp_path: Path) -> None:
    slow = Database(tmp_path / "campus.db", statement_timeout=0.05, max_rows=10)
    trace = Recorder()
    async with scripted(*[said(ENDLESS)] * 3) as (_, model):
        with pytest.raises(ChainFailed) as failed:
            await ask(
                "students",
                source=Source(database=slow, tables=TABLES, max_rows=10, access=ACCESS),
                model=model,
                trace=trace,
            )
    slow.close()
    assert ("run", "failed", 3) in trace.steps()
    assert failed.value.code == "statement-timeout"
    assert "too long" in failed.value.message


async def test_cancelling_closes_the_connection_to_the_model(source: Source) -> None:
    async with scripted(faulty("hold")) as (endpoint, model), asyncio.TaskGroup() as group:
        asking = group.create_task(ask("students", source=source, model=model))
        await endpoint.until(lambda it: it.calls == 1)
        asking.cancel()
        await endpoint.until(lambda it: it.hang_ups == 1)
    assert asking.cancelled()


@pytest.mark.parametrize("step", ["retrieve", "model", "guard", "run"])
async def test_no_step_begins_after_a_stop(source: Source, step: str) -> None:
    trace = Recorder()

    def stop_after(kind: str, data: Any) -> None:
        if kind == "step" and (data["name"], data["state"]) == (step, "done"):
            trace.stopping = True

    trace.on_event = stop_after
    async with scripted(said(COUNT)) as (_, model):
        with pytest.raises(Stopped):
            await ask("students", source=source, model=model, trace=trace)
    assert trace.steps()[-1][:2] == (step, "done")
    assert trace.said == ""


async def test_a_stop_while_the_model_replies_ends_the_reply(source: Source) -> None:
    trace = Recorder()
    async with scripted(faulty("hold")) as (endpoint, model):
        with pytest.raises(ExceptionGroup) as ended:  # noqa: PT012 - the group raises, once its task has
            async with asyncio.TaskGroup() as group:
                group.create_task(ask("students", source=source, model=model, trace=trace))
                await endpoint.until(lambda it: it.calls == 1)
                trace.stopping = True
                endpoint.release()
        assert ended.group_contains(Stopped)


@pytest.mark.case("D3")
async def test_a_query_that_stop_interrupts_is_not_repaired(source: Source) -> None:
    trace = Recorder()

    def stop_on_run(kind: str, data: Any) -> None:
        if kind == "step" and (data["name"], data["state"]) == ("run", "running"):
            asyncio.get_running_loop().call_soon(trace.stop)

    trace.on_event = stop_on_run
    async with scripted(*[said(ENDLESS)] * 3) as (endpoint, model):
        with pytest.raises(Stopped):
            await ask("students", source=source, model=model, trace=trace)
        assert endpoint.calls == 1


class _Turnwise:
    """A model that answers only when both questions are waiting for it."""

    def __init__(self) -> None:
        self._both = asyncio.Barrier(2)

    async def propose(self, request: Request, *, delta: Callable[[str], None]) -> Proposal:
        await self._both.wait()
        delta("…")
        if "挂科" in request.question:
            return Proposal(sql="SELECT name AS 姓名 FROM student WHERE id = 1", reading="一", language="zh")
        return Proposal(sql=BY_YEAR, reading="by year", language="en")

    async def aclose(self) -> None:
        pass


@pytest.mark.case("D2")
async def test_two_interleaved_questions_keep_steps_table_and_chart_apart(source: Source) -> None:
    one, two = Recorder(), Recorder()
    model = _Turnwise()
    async with asyncio.TaskGroup() as group:
        first = group.create_task(ask("挂科的学生", source=source, model=model, trace=one))
        second = group.create_task(ask("students by year", source=source, model=model, trace=two))
    assert first.result().rows == [["S1"]]
    assert second.result().chart is not None
    for trace, given in ((one, first.result()), (two, second.result())):
        names = ("retrieve", "model", "guard", "run", "word")
        assert trace.steps() == [(name, state, 1) for name in names for state in ("running", "done")]
        assert trace.data()["reading"] == given.reading
        assert trace.data()["table"]["rows"] == given.rows
        assert trace.data().get("chart") == given.chart
        assert trace.said == given.text
    assert source.database.checked_out == 0


@pytest.fixture(scope="module")
def campus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("campus") / "campus.db"
    build(path)
    return path


@pytest.fixture
def embedded(campus: Path) -> Iterator[tuple[Source, EmbeddedModel]]:
    database = Database(campus, statement_timeout=30, max_rows=500, tables=TABLES)
    yield Source(database=database, tables=TABLES, max_rows=500, access=ACCESS), EmbeddedModel(Values.load(campus))
    database.close()


@pytest.mark.row("Q1")
@pytest.mark.parametrize(
    ("question", "language"),
    [
        ("查询当前仍有挂科的学生", "zh"),
        ("每个专业有多少学生？", "zh"),
        ("How many students are there by department?", "en"),
    ],
)
async def test_the_embedded_model_answers_through_the_whole_chain(
    embedded: tuple[Source, EmbeddedModel], question: str, language: str
) -> None:
    source, model = embedded
    trace = Recorder()
    given = await ask(question, source=source, model=model, trace=trace)
    assert not given.refused, given.text
    assert given.language == language
    assert given.rows
    assert given.reading
    assert trace.failed() == []
    assert source.database.checked_out == 0


async def test_a_result_that_just_fits_is_not_called_cut(embedded: tuple[Source, EmbeddedModel], campus: Path) -> None:
    _, model = embedded
    for max_rows, cut in ((8, False), (7, True)):
        database = Database(campus, statement_timeout=30, max_rows=max_rows)
        source = Source(database=database, tables=TABLES, max_rows=max_rows, access=ACCESS)
        given = await ask("How many students are there by department?", source=source, model=model)
        database.close()
        assert (len(given.rows), given.truncated) == (max_rows, cut)
