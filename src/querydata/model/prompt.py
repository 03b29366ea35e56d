"""The prompt: how a request is put to a language model, and how its reply is read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Literal

from openai.types.chat import ChatCompletionMessageParam
from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from querydata.model.port import Attempt, Declined, ModelFailed, Proposal, Request, language_of

_RULES = """\
You answer questions about a university's data by writing one SQLite SELECT statement.
Reply with one JSON object and nothing else, either
{"sql": "SELECT …", "reading": "how you understood the question, one sentence in the language of the question"}
or, if the question is vague, uses a term that is not defined below, or is about something that is not in the tables,
{"decline": "what is missing or unclear, in the language of the question"}.
Rules: exactly one statement, read only; use only the tables and columns below; name every result column with an alias \
in the language of the question; never guess a meaning; do not add a comment."""

_FENCE = re.compile(r"\A\s*```(?:json)?\s*\n(.*?)\n?```\s*\Z", re.DOTALL)
_ECHOED = 4000
"""So many characters of a failed attempt are shown to the model again."""


class _Wrote(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    sql: str
    reading: str

    @field_validator("sql", "reading")
    @classmethod
    def _said(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("is empty")
        return value.strip()


class _Refused(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    decline: str

    @field_validator("decline")
    @classmethod
    def _said(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("is empty")
        return value.strip()


def messages(request: Request) -> list[ChatCompletionMessageParam]:
    """The conversation that a model is shown for `request`."""
    return list(_messages(request))


def _messages(request: Request) -> Iterator[ChatCompletionMessageParam]:
    parts = [_RULES, f"Tables:\n{request.tables}"]
    if request.knowledge:
        parts.append("Terms:\n" + "\n".join(f"- {term}" for term in request.knowledge))
    yield {"role": "system", "content": "\n\n".join(parts)}
    for earlier in request.history:
        yield {"role": "user", "content": earlier.question}
        yield {"role": "assistant", "content": _said(earlier.sql, earlier.reading)}
    yield {"role": "user", "content": request.question}
    for attempt in request.errors:
        if attempt.sql:
            yield {"role": "assistant", "content": _said(attempt.sql[:_ECHOED], "")}
        yield {"role": "user", "content": _correction(attempt)}


def _said(sql: str, reading: str) -> str:
    return json.dumps({"sql": sql, "reading": reading}, ensure_ascii=False)


def _correction(attempt: Attempt) -> str:
    return f"That did not work ({attempt.code}): {attempt.message}\nReply again with one corrected JSON object."


def reply(text: str, *, question: str) -> Proposal | Declined:
    """Read a whole reply; `ModelFailed("model-malformed")` unless it is exactly one of the two agreed objects."""
    fenced = _FENCE.match(text)
    try:
        value = json.loads(fenced[1] if fenced else text)
    except ValueError:
        raise _malformed("it is not JSON") from None
    if not isinstance(value, dict):
        raise _malformed("it is not a JSON object")
    language: Literal["zh", "en"] = language_of(question)
    try:
        if "decline" in value:
            return Declined(message=_Refused.model_validate(value).decline, language=language)
        wrote = _Wrote.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        raise _malformed(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    return Proposal(sql=wrote.sql, reading=wrote.reading, language=language)


def _malformed(why: str) -> ModelFailed:
    return ModelFailed(f"The model's reply cannot be used: {why}.", code="model-malformed")
