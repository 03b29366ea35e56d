"""The embedded model: the parser behind the model port, without a key, a download or a guess."""

from __future__ import annotations

from collections.abc import Callable

from querydata.model.port import Declined, Proposal, Request, language_of
from querydata.parser import NotUnderstood, Values, parse

_NO_SECOND_TRY = {
    "zh": "我按“{question}”写出的查询没有成功（{reason}）。我不会靠猜测改写，请换一种问法。",
    "en": 'The query I wrote for "{question}" did not work ({reason}). I do not guess; please ask in another way.',
}


class EmbeddedModel:
    """Parses questions over the campus data. The same question always has the same answer."""

    def __init__(self, values: Values) -> None:
        self._values = values

    async def propose(self, request: Request, *, delta: Callable[[str], None]) -> Proposal | Declined:
        """See `Model.propose`. After an error it declines: its second reply could only be its first, or a guess."""
        if request.errors:
            language = language_of(request.question)
            reason = request.errors[-1].message.rstrip("。.")
            text = _NO_SECOND_TRY[language].format(question=request.question, reason=reason)
            return Declined(message=text, language=language)
        match parse(request.question, values=self._values):
            case NotUnderstood(language=language, message=message):
                return Declined(message=message, language=language)
            case parsed:
                delta(parsed.sql)
                return Proposal(sql=parsed.sql, reading=parsed.reading, language=parsed.language)

    async def aclose(self) -> None:
        """See `Model.aclose`: it holds nothing."""
