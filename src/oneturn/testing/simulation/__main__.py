"""`python -m oneturn.testing.simulation --seeds 500 --base 1`: exit 1 on a violation, with the seed to run again."""

from __future__ import annotations

import argparse
import logging
import subprocess
import sys
import time

from oneturn.testing.simulation.campaign import Tally, report, run_seeds
from oneturn.testing.simulation.failpoints import failpoints
from oneturn.testing.simulation.run import LAST, run_seed

SHOWN = 3
"""Failures that are shrunk and told in full."""


def main() -> int:
    """Run a range of seeds and say what they gave."""
    parser = argparse.ArgumentParser(prog="python -m oneturn.testing.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=200, help="how many")
    parser.add_argument("--base", default="1", help='the first one; "commit": a fresh one for each commit')
    parser.add_argument("--processes", type=int, help="how many at once; default: one for each processor")
    parser.add_argument("--only", help="one seed with these items of its plan alone, as a failure names them")
    chosen = parser.parse_args()
    if chosen.seeds < 1:
        parser.error("--seeds must be at least 1")
    try:
        base = _base(chosen.base)
    except ValueError as error:
        parser.error(f'--base is a number or "commit": {error}')
    logging.disable(logging.CRITICAL)
    if chosen.only is not None:
        return _again(base, frozenset(chosen.only.split(",")))
    began, tally = time.perf_counter(), Tally()
    for run in run_seeds(range(base, base + chosen.seeds), processes=chosen.processes):
        tally.add(run)
        if run.violations and len(tally.failed) <= SHOWN:
            _say(*report(run))
    minutes = (time.perf_counter() - began) / 60
    known = len(failpoints())
    _say(
        f"seeds={tally.seeds} violations={len(tally.failed)} admissions={tally.admissions} faults={tally.faults} "
        f"seeds_per_min={tally.seeds / minutes:.0f} admissions_per_min={tally.admissions / minutes:.0f} "
        f"hosts={tally.hosts} failpoints={known - len(tally.missed())}/{known} base={base}"
    )
    complaints = tally.complaints()
    _say(*complaints)
    return int(bool(tally.failed or complaints))


def _again(seed: int, only: frozenset[str]) -> int:
    run = run_seed(seed, without=frozenset(run_seed(seed).items) - only)
    _say(*run.plan, *run.trace[-LAST:], *(f"{violation.invariant}: {violation.what}" for violation in run.violations))
    return int(bool(run.violations))


def _base(given: str) -> int:
    if given != "commit":
        return int(given)
    head = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False)  # noqa: S607 - whichever git there is
    return int(head.stdout[:8] or "1", 16)  # outside of a checkout: always the same ones


def _say(*lines: str) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
