"""Every failpoint of the library, read from its source: a campaign says which of them it has reached."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import oneturn
from oneturn.core.lease import LeaseStore
from oneturn.core.store import RecordStore


@cache
def failpoints() -> frozenset[str]:
    """Names as written, and those of each port's steps, which a store makes of its methods' names."""
    source = Path(oneturn.__file__).parent
    written = {
        name
        for part in ("core", "runtime", "backends/memory")
        for file in sorted((source / part).rglob("*.py"))
        for name in _written(ast.parse(file.read_text(encoding="utf-8")))
    }
    steps = {
        f"{port}.{method}.{end}"
        for port, protocol in (("leases", LeaseStore), ("records", RecordStore))
        for method, member in inspect.getmembers(protocol, inspect.iscoroutinefunction)
        if not method.startswith("_") and member is not None
        for end in ("before", "after")
    }
    return frozenset(written | steps)


def _written(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "failpoint":
            for argument in node.args:
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    yield argument.value
