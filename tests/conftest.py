"""What every test runs under: coverage of the requirement rows, servers and browsers that CI must have, leak checks."""

from __future__ import annotations

import asyncio
import os
import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

REQUIREMENTS = Path(__file__).parents[1] / "docs" / "reference" / "requirements.md"
ROW = re.compile(r"^\| ([A-Z]\d+) \| (works|planned) \|", re.MULTILINE)

_shown: dict[str, list[str]] = defaultdict(list)
_named: dict[str, set[str]] = {}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rows",
        action="store_true",
        help="print the requirement rows that passed tests show; fail if a row that works has none",
    )


Loops = Mapping[str, Callable[[], asyncio.AbstractEventLoop]]


def pytest_asyncio_loop_factories(config: pytest.Config, item: pytest.Function) -> Loops:
    """Tests run on the loop of production, unless their module names its `LOOPS`."""
    chosen: Loops = getattr(item.module, "LOOPS", {"asyncio": asyncio.new_event_loop})
    return chosen


def _ids(item: pytest.Item) -> set[str]:
    return {str(row) for mark in ("row", "case") for found in item.iter_markers(mark) for row in found.args}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    known = {row for row, _ in ROW.findall(REQUIREMENTS.read_text(encoding="utf8"))}
    for item in items:
        ids = _ids(item)
        if unknown := ids - known:
            raise pytest.UsageError(f"{item.nodeid} names rows that do not exist: {sorted(unknown)}")
        _named[item.nodeid] = ids


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call" and report.passed:
        for row in _named.get(report.nodeid, ()):
            _shown[row].append(report.nodeid)


def _states() -> dict[str, str]:
    return dict(ROW.findall(REQUIREMENTS.read_text(encoding="utf8")))


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    if session.config.getoption("--rows") and exitstatus == pytest.ExitCode.OK and _missing():
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _missing() -> list[str]:
    return [row for row, state in _states().items() if state == "works" and not _shown[row]]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if not config.getoption("--rows"):
        return
    terminalreporter.section("requirement rows and cases")
    for row, state in _states().items():
        tests = _shown[row]
        if tests or state == "works":
            first = tests[0].rsplit("/", 1)[-1] if tests else "NO TEST RAN"
            more = f" (+{len(tests) - 1})" if len(tests) > 1 else ""
            terminalreporter.write_line(f"{row:>4} {state:<8} {first}{more}")
    if missing := _missing():
        terminalreporter.write_line(f"rows without a passed test: {', '.join(missing)}", red=True)


def missing(what: str) -> None:
    """A server or browser that is not there: skip locally with a reason, fail in CI."""
    if os.environ.get("CI"):
        pytest.fail(f"{what} is missing, and CI must have it")
    pytest.skip(f"{what} is missing: run `make setup-tests`")
