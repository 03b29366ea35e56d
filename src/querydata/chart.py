"""The chart: whether a table is worth drawing, and as what. Rules only; no model is asked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal

from typing_extensions import TypedDict  # pydantic wants this one on Python 3.11

_FEWEST, _MOST = 2, 60
_TIME_NAME = re.compile(r"学期|学年|年份|年级|日期|月份|\b(term|year|date|month|semester|cohort)\b", re.IGNORECASE)
_TIME_VALUE = re.compile(r"\d{4}(?!\d)")
_IDENTIFIER = re.compile(r"编号|学号|工号|代码|(^|_|\b)(id|no|number|code)$", re.IGNORECASE)


class Chart(TypedDict):
    """What to draw: the column of the labels against the column of the values."""

    kind: Literal["bar", "line"]
    x: str
    y: str


def chart_of(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Chart | None:
    """One column of different labels and a number for each can be drawn; anything else is better read as a table."""
    if not _FEWEST <= len(rows) <= _MOST:
        return None
    labels, measures = [], []
    for index, name in enumerate(columns):
        values = [row[index] for row in rows]
        timely = _is_time(name, values)
        if not timely and not _IDENTIFIER.search(name) and _is_measure(values):
            measures.append(index)
        else:
            labels.append((index, timely))
    if len(labels) != 1 or not measures:
        return None
    x, timely = labels[0]
    if len({row[x] for row in rows}) != len(rows):
        return None
    return {"kind": "line" if timely else "bar", "x": columns[x], "y": columns[measures[0]]}


def _is_measure(values: Sequence[Any]) -> bool:
    numbers = [value for value in values if value is not None]
    return bool(numbers) and all(isinstance(value, int | float) and not isinstance(value, bool) for value in numbers)


def _is_time(name: str, values: Sequence[Any]) -> bool:
    return bool(_TIME_NAME.search(name)) and all(_TIME_VALUE.match(str(value)) for value in values)
