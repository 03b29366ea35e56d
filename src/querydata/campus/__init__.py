"""The demo campus: its schema, its made-up data, and what may be asked of it."""

from __future__ import annotations

import re
from importlib.resources import files

from querydata.campus.build import build

__all__ = ["TABLES", "build"]


def _tables() -> dict[str, tuple[str, ...]]:
    schema = files("querydata.campus").joinpath("schema.sql").read_text(encoding="utf8")
    found = re.findall(r"CREATE TABLE (\w+) \((.*?)\);", schema, re.DOTALL)
    return {table: tuple(re.findall(r"(?:^|,)\s*([a-z_]+) (?:INTEGER|TEXT|REAL)", body)) for table, body in found}


TABLES: dict[str, tuple[str, ...]] = _tables()
"""Table → the columns that may be asked."""
