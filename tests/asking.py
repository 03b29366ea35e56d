"""The message that most tests ask with."""

from __future__ import annotations

from pydantic import BaseModel


class Ask(BaseModel):
    text: str = ""
    tone: str = "plain"
