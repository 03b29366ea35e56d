"""The OpenAI-compatible model against a real endpoint on loopback, and the embedded one: each fault ends as a plain reason."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from querydata.campus import build
from querydata.model import Attempt, Declined, Exchange, ModelFailed, Proposal, Request
from querydata.model.embedded import EmbeddedModel
from querydata.model.openai_compatible import OpenAICompatible
from querydata.parser import Values

from .scripted_openai import Fault, Reply, ScriptedOpenAI, declined, faulty, raw, said

KEY = "sk-never-to-be-shown"


@asynccontextmanager
async def scripted(*script: Reply, reply_within: float = 30) -> AsyncIterator[tuple[ScriptedOpenAI, OpenAICompatible]]:
    async with ScriptedOpenAI(*script) as endpoint:
        model = OpenAICompatible(base_url=endpoint.url, name="scripted", api_key=KEY, reply_within=reply_within)
        try:
            yield endpoint, model
        finally:
            await model.aclose()


def ignore(_: str) -> None:
    pass


async def test_a_reply_is_streamed_as_it_comes_and_read_as_a_proposal() -> None:
    pieces: list[str] = []
    async with scripted(said("SELECT 1", "数一数")) as (endpoint, model):
        reply = await model.propose(Request(question="有多少？"), delta=pieces.append)
        assert reply == Proposal(sql="SELECT 1", reading="数一数", language="zh")
        assert len(pieces) > 2
        assert endpoint.requests[0]["stream"] is True
        assert endpoint.headers[0]["authorization"] == f"Bearer {KEY}"


async def test_the_first_piece_arrives_before_the_reply_is_complete() -> None:
    first = asyncio.Event()
    async with scripted(said("SELECT 1", fault="hold-midway")) as (endpoint, model), asyncio.TaskGroup() as group:
        asking = group.create_task(model.propose(Request(question="q"), delta=lambda _: first.set()))
        await first.wait()
        assert not asking.done()
        endpoint.release()


async def test_a_slow_first_piece_is_waited_for() -> None:
    async with scripted(said("SELECT 1", fault="hold")) as (endpoint, model), asyncio.TaskGroup() as group:
        asking = group.create_task(model.propose(Request(question="q"), delta=ignore))
        await endpoint.until(lambda it: it.calls == 1)
        assert not asking.done()
        endpoint.release()
        assert isinstance(await asking, Proposal)


async def test_a_model_may_decline() -> None:
    async with scripted(declined("Which term?")) as (_, model):
        reply = await model.propose(Request(question="grades?"), delta=ignore)
    assert reply == Declined(message="Which term?", language="en")


async def test_json_in_a_fence_is_read() -> None:
    async with scripted(raw('```json\n{"sql": "SELECT 1", "reading": "r"}\n```')) as (_, model):
        assert isinstance(await model.propose(Request(question="q"), delta=ignore), Proposal)


@pytest.mark.case("D7")
@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ("cut", "model-cut"),
        ("no-finish", "model-cut"),
        ("length", "model-too-long"),
        ("filtered", "model-filtered"),
        ("broken-chunk", "model-malformed"),
        ("error-event", "model-unavailable"),
        ("401", "model-refused"),
        ("429", "model-rate-limited"),
        ("500", "model-unavailable"),
    ],
)
async def test_each_fault_is_a_plain_reason_after_one_call(fault: Fault, code: str) -> None:
    async with scripted(faulty(fault)) as (endpoint, model):
        with pytest.raises(ModelFailed) as failed:
            await model.propose(Request(question="q"), delta=ignore)
        assert failed.value.code == code
        assert KEY not in failed.value.message
        assert "Traceback" not in failed.value.message
        assert endpoint.calls == 1


@pytest.mark.case("D7")
@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1",
        "[]",
        "{}",
        '{"sql": "SELECT 1"}',
        '{"sql": "", "reading": "r"}',
        '{"sql": 1, "reading": "r"}',
        '{"sql": "SELECT 1", "reading": "r", "note": "x"}',
        '{"sql": "SELECT 1", "reading": "r", "decline": "no"}',
        '{"decline": ""}',
        '{"sql": "SELECT 1", "read',
        "",
    ],
)
async def test_a_reply_in_any_other_form_is_malformed(text: str) -> None:
    async with scripted(raw(text)) as (_, model):
        with pytest.raises(ModelFailed) as failed:
            await model.propose(Request(question="q"), delta=ignore)
    assert failed.value.code == "model-malformed"


@pytest.mark.case("D7")
@pytest.mark.parametrize("fault", ["hang", "hang-midway"])
async def test_a_model_that_hangs_is_left_in_time_and_its_connection_closed(fault: Fault) -> None:
    async with scripted(faulty(fault), reply_within=0.2) as (endpoint, model):
        with pytest.raises(ModelFailed) as failed:
            await model.propose(Request(question="q"), delta=ignore)
        assert failed.value.code == "model-timeout"
        await endpoint.until(lambda it: it.hang_ups == 1)


async def test_an_endpoint_that_is_not_there_is_unavailable() -> None:
    async with ScriptedOpenAI() as gone:
        url = gone.url
    model = OpenAICompatible(base_url=url, name="scripted", api_key="", reply_within=30)
    with pytest.raises(ModelFailed) as failed:
        await model.propose(Request(question="q"), delta=ignore)
    await model.aclose()
    assert failed.value.code == "model-unavailable"


@pytest.mark.parametrize("fault", ["hold", "hang", "hang-midway"])
async def test_cancelling_closes_the_connection(fault: Fault) -> None:
    begun = asyncio.Event()
    async with scripted(faulty(fault)) as (endpoint, model), asyncio.TaskGroup() as group:
        asking = group.create_task(model.propose(Request(question="q"), delta=lambda _: begun.set()))
        await endpoint.until(lambda it: it.calls == 1)
        if fault == "hang-midway":
            await begun.wait()
        asking.cancel()
        await endpoint.until(lambda it: it.hang_ups == 1)
    assert asking.cancelled()


async def test_an_error_of_the_listener_ends_the_call_and_closes_the_connection() -> None:
    class Stop(Exception):
        pass

    def stop(_: str) -> None:
        raise Stop

    async with scripted(faulty("hang-midway")) as (endpoint, model):
        with pytest.raises(Stop):
            await model.propose(Request(question="q"), delta=stop)
        await endpoint.until(lambda it: it.hang_ups == 1)
        gc.collect()


async def test_the_prompt_has_tables_terms_history_and_earlier_errors_in_order() -> None:
    request = Request(
        question="and by department?",
        tables="student(id)",
        knowledge=("failing: no pass",),
        history=(Exchange(question="how many students?", reading="all students", sql="SELECT count(*) FROM student"),),
        errors=(Attempt(sql="SELECT nope", message="no such column: nope", code="query-failed"),),
    )
    async with scripted(said("SELECT 1")) as (endpoint, model):
        await model.propose(request, delta=ignore)
    messages = endpoint.requests[0]["messages"]
    assert [each["role"] for each in messages] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert "student(id)" in messages[0]["content"]
    assert "failing: no pass" in messages[0]["content"]
    assert messages[1]["content"] == "how many students?"
    assert messages[3]["content"] == "and by department?"
    assert "SELECT nope" in messages[4]["content"]
    assert "no such column: nope" in messages[5]["content"]


# -- the embedded model ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> EmbeddedModel:
    path = tmp_path_factory.mktemp("campus") / "campus.db"
    build(path)
    return EmbeddedModel(Values.load(path))


async def test_the_embedded_model_proposes_what_the_parser_reads(embedded: EmbeddedModel) -> None:
    pieces: list[str] = []
    reply = await embedded.propose(Request(question="查询当前仍有挂科的学生"), delta=pieces.append)
    assert isinstance(reply, Proposal)
    assert reply.language == "zh"
    assert reply.reading
    assert "".join(pieces) == reply.sql


@pytest.mark.case("D6")
@pytest.mark.parametrize("question", ["今天天气怎么样？", "what is the meaning of life?"])
async def test_the_embedded_model_declines_what_it_does_not_know(embedded: EmbeddedModel, question: str) -> None:
    reply = await embedded.propose(Request(question=question), delta=ignore)
    assert isinstance(reply, Declined)
    assert reply.message


async def test_the_embedded_model_declines_after_an_error_instead_of_guessing(embedded: EmbeddedModel) -> None:
    errors = (Attempt(sql="SELECT 1", message="The statement took too long.", code="statement-timeout"),)
    reply = await embedded.propose(Request(question="How many students?", errors=errors), delta=ignore)
    assert isinstance(reply, Declined)
    assert "The statement took too long" in reply.message
