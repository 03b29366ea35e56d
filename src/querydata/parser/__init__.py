"""The embedded parser: a stated class of questions in Chinese and English; what it does not cover it refuses in words."""

from __future__ import annotations

from querydata.parser.parse import NotUnderstood, Parsed, parse
from querydata.parser.words import Values

__all__ = ["NotUnderstood", "Parsed", "Values", "parse"]
