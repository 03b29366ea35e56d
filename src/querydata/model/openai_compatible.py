"""The OpenAI-compatible model: any endpoint that speaks streaming chat completions; each call is one request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager

import openai
from openai import AsyncOpenAI, AsyncStream
from openai.types.chat import ChatCompletionChunk

from querydata.model import prompt
from querydata.model.port import Declined, ModelFailed, Proposal, Request

_LONGEST = 100_000
"""A reply of more characters is not an answer in the agreed format."""


class OpenAICompatible:
    """Asks `name` at `base_url`.

    `reply_within` bounds a whole reply, in seconds, from asking to its last piece.
    """

    def __init__(self, *, base_url: str, name: str, api_key: str, reply_within: float) -> None:
        self._name = name
        self._reply_within = reply_within
        # Retries belong to the chain, where they are bounded and visible. An endpoint without keys still wants a header.
        self._client = AsyncOpenAI(base_url=base_url, api_key=api_key or "none", timeout=reply_within, max_retries=0)

    async def propose(self, request: Request, *, delta: Callable[[str], None]) -> Proposal | Declined:
        """See `Model.propose`."""
        with _plain_failures():
            async with asyncio.timeout(self._reply_within):
                text = await self._whole_reply(request, delta=delta)
        return prompt.reply(text, question=request.question)

    async def aclose(self) -> None:
        """See `Model.aclose`."""
        await self._client.close()

    async def _whole_reply(self, request: Request, *, delta: Callable[[str], None]) -> str:
        stream = await self._client.chat.completions.create(
            model=self._name, messages=prompt.messages(request), stream=True, temperature=0
        )
        pieces: list[str] = []
        length = 0
        finished: str | None = None
        # Leaving the block, for whatever reason, closes the response: an endpoint stops working for nobody.
        async with stream:
            async for piece, reason in _choices(stream):
                finished = reason or finished
                if not piece:
                    continue
                pieces.append(piece)
                length += len(piece)
                if length > _LONGEST:
                    raise ModelFailed("The model's reply is far too long.", code="model-too-long")
                delta(piece)
        _require_whole(finished)
        return "".join(pieces)


async def _choices(stream: AsyncStream[ChatCompletionChunk]) -> AsyncIterator[tuple[str, str | None]]:
    async for chunk in stream:
        # Some endpoints send chunks without choices: usage, filters, keep-alives.
        for choice in (chunk.choices or ())[:1]:
            yield (choice.delta.content or "") if choice.delta else "", choice.finish_reason


def _require_whole(finished: str | None) -> None:
    match finished:
        case "stop":
            return
        case None:
            raise ModelFailed("The model's reply ended before it was complete.", code="model-cut")
        case "length":
            raise ModelFailed("The model ran out of room for its reply.", code="model-too-long")
        case "content_filter":
            raise ModelFailed("The model's provider withheld the reply.", code="model-filtered")
        case other:
            raise ModelFailed(f"The model ended its reply in an unexpected way ({other[:40]}).", code="model-malformed")


@contextmanager
def _plain_failures() -> Iterator[None]:
    """Name what happened. What an endpoint says is not repeated: it may echo the key or the prompt."""
    try:
        yield
    except (TimeoutError, openai.APITimeoutError):
        raise ModelFailed("The model did not answer in time.", code="model-timeout") from None
    except openai.RateLimitError:
        raise ModelFailed("The model is busy (429).", code="model-rate-limited") from None
    except openai.APIStatusError as error:
        code = "model-unavailable" if error.status_code >= 500 else "model-refused"  # noqa: PLR2004
        raise ModelFailed(f"The model's endpoint answered with status {error.status_code}.", code=code) from None
    except openai.APIConnectionError as error:
        code = (
            "model-cut"
            if error.__cause__ is not None and "peer closed" in str(error.__cause__)
            else "model-unavailable"
        )
        raise ModelFailed("The connection to the model failed.", code=code) from None
    except openai.OpenAIError:
        raise ModelFailed("The model reported an error.", code="model-unavailable") from None
    except ValueError:
        # A chunk that is not JSON, or not a chat completion.
        raise ModelFailed("The model's stream cannot be read.", code="model-malformed") from None
