"""The table of the zoo: which seed finds each bug, and by what; written to a page, and read from it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

from oneturn.testing.evidence import Violation
from oneturn.testing.link import Crashed
from oneturn.testing.simulation import run_seed
from oneturn.testing.simulation.zoo.bug import Bug

LONGEST = 150
"""Characters of what a violation said."""

HEAD = """# The zoo of planted bugs

Each row is a small mutation of the real code (`oneturn.testing.simulation.zoo`), the first seed under which the simulation reports one
of the invariants that the bug is known to break, and what the checker said. `make zoo` finds all of them afresh and writes this page.

| bug | seed | invariant | said |
| --- | --- | --- | --- |
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A bug, and the seed that found it."""

    bug: str
    seed: int
    invariant: str
    said: str


def seen(bug: Bug, seed: int) -> Violation | None:
    """What one seed reports of an invariant that the bug breaks. The bug has to be planted."""
    try:
        run = run_seed(seed)
    except (Exception, asyncio.CancelledError, Crashed):  # noqa: BLE001 - a mutant may break a run off: then nothing was reported
        return None
    return next((broken for broken in run.violations if broken.invariant in bug.breaks), None)


def find(bug: Bug, seeds: Iterable[int]) -> Found | None:
    """Plant the bug and try one seed after another until one reports it."""
    with bug.plant():
        for seed in seeds:
            broken = seen(bug, seed)
            if broken is not None:
                return Found(bug=bug.name, seed=seed, invariant=broken.invariant, said=broken.what)
    return None


def render(rows: Iterable[Found]) -> str:
    """The page."""
    return HEAD + "".join(f"| {row.bug} | {row.seed} | {row.invariant} | {_short(row.said)} |\n" for row in rows)


def _short(said: str) -> str:
    one_line = " ".join(said.split()).replace("|", "\\|").replace("`", "'")
    return one_line if len(one_line) <= LONGEST else f"{one_line[:LONGEST]}…"


def parse(page: str) -> dict[str, int]:
    """Bug → seed, from a page that `render` made."""
    rows = [line.strip("| \n").split(" | ") for line in page.splitlines() if line.startswith("| ")]
    return {cells[0]: int(cells[1]) for cells in rows if cells[1].isdecimal()}
