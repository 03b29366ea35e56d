"""House rules that no linter knows: where tasks are made, where time and threads come from, what a module offers."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest

import oneturn

SOURCE = Path(oneturn.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))


def _name(path: Path) -> str:
    return str(path.relative_to(SOURCE))


def _found(pattern: str, *, except_in: set[str]) -> list[str]:
    return [
        f"{_name(path)}: {line.strip()}"
        for path in MODULES
        if _name(path) not in except_in
        for line in path.read_text(encoding="utf8").splitlines()
        if re.search(pattern, line)
    ]


def test_tasks_are_made_where_somebody_owns_them() -> None:
    """The supervisor, and task groups that await what they began."""
    owners = {"runtime/supervisor.py", "runtime/keeper.py", "testing/harness.py"}
    owners |= {
        "testing/simulation/host.py",  # a process: whoever spawns awaits, and a kill ends what is left
        "testing/simulation/loop.py",  # makes none of its own: this is the method itself
        "testing/simulation/nemesis.py",  # holds its strikes until the last one is over
        "testing/simulation/run.py",  # awaits the storm it began
        "testing/simulation/scenario.py",  # awaits the storm and the scenario
    }
    assert _found(r"create_task\(", except_in=owners) == []


def test_nothing_runs_in_the_default_executor_and_nothing_sleeps_on_a_thread() -> None:
    lane = {"backends/sqlite/lane.py"}  # a thread of its own that lets other processes at the file between two batches
    lane |= {"backends/sqlite/patience.py"}  # in such a thread, between two tries
    assert _found(r"run_in_executor|to_thread|time\.sleep", except_in=lane) == []


def test_time_comes_from_clocks() -> None:
    clocks = {"runtime/clock.py", "backends/times.py", "backends/sqlite/times.py"}
    clocks |= {"testing/simulation/__main__.py", "testing/model/__main__.py"}  # say how fast they ran
    clocks |= {"backends/sqlite/patience.py"}  # how long a thread waits for a file lock is no decision of the runtime's
    assert _found(r"\btime\.(time|monotonic|clock_gettime|perf_counter)", except_in=clocks) == []


@pytest.mark.parametrize("path", MODULES, ids=_name)
def test_line_one_says_what_the_module_decides(path: Path) -> None:
    text = path.read_text(encoding="utf8")
    assert not text or ast.get_docstring(ast.parse(text)) or path.name == "__init__.py"


@pytest.mark.parametrize("path", MODULES, ids=_name)
def test_a_file_has_one_noun(path: Path) -> None:
    """Past 400 lines, a second thing has moved in."""
    assert len(path.read_text(encoding="utf8").splitlines()) <= 400


def test_every_name_that_is_offered_exists() -> None:
    for path in MODULES:
        module = (
            importlib.import_module(
                ".".join(("oneturn", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")
            )
            if path.name != "__main__.py"
            else oneturn
        )
        for name in getattr(module, "__all__", ()):
            assert hasattr(module, name), f"{module.__name__}.{name}"


def test_importing_the_library_imports_no_extra() -> None:
    """The core needs pydantic alone: FastAPI, SQLAlchemy and drivers are imported when they are used."""
    import subprocess
    import sys

    code = (
        "import sys, oneturn; print([m for m in ('fastapi', 'starlette', 'sqlalchemy', 'sqlite3') if m in sys.modules])"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )
