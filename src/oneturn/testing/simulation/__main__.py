"""`python -m oneturn.testing.simulation --seeds 500 --base 1`: exit 1 on a violation, with the seed to run again."""

from __future__ import annotations

import argparse
import logging
import sys
import time

from oneturn.testing.simulation import Run, run_seed


def main() -> int:
    """Run a range of seeds and say what they gave."""
    parser = argparse.ArgumentParser(prog="simulation")
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--base", type=int, default=1)
    chosen = parser.parse_args()
    logging.disable(logging.CRITICAL)  # handlers that crash are what this is about
    began, runs = time.perf_counter(), list[Run]()
    for seed in range(chosen.base, chosen.base + chosen.seeds):
        run = run_seed(seed)
        runs.append(run)
        for violation in run.violations:
            sys.stdout.write(f"seed {seed}: {violation.invariant}: {violation.what}\n")
        if run.violations:
            sys.stdout.write("".join(f"    {line}\n" for line in run.trace[-20:]))
            sys.stdout.write(f"  again: python -m oneturn.testing.simulation --seeds 1 --base {seed}\n")
    minutes = (time.perf_counter() - began) / 60
    sys.stdout.write(
        f"seeds={len(runs)} violations={sum(bool(run.violations) for run in runs)} "
        f"admissions={sum(run.admissions for run in runs)} faults={sum(run.faults for run in runs)} "
        f"seeds_per_min={len(runs) / minutes:.0f}\n"
    )
    return int(any(run.violations for run in runs))


if __name__ == "__main__":
    sys.exit(main())
