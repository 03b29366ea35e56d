"""`python -m oneturn.testing.simulation.zoo --most 5000 --write docs/reference/zoo.md`: exit 1 if a bug is not found."""

from __future__ import annotations

import argparse
import multiprocessing
import sys
from functools import partial
from pathlib import Path

from oneturn.testing.simulation.zoo import ZOO
from oneturn.testing.simulation.zoo.hunt import hunt
from oneturn.testing.simulation.zoo.table import Found, render

PROCESSES = 2


def main() -> int:
    """Run every bug over the seeds from 1 until one finds it, and say which did."""
    parser = argparse.ArgumentParser(prog="zoo")
    parser.add_argument("--most", type=int, default=5000, help="seeds for each bug")
    parser.add_argument("--write", type=Path, help="the page to generate")
    parser.add_argument("--only", default="", help="bugs whose name contains this")
    chosen = parser.parse_args()
    numbers = [number for number, bug in enumerate(ZOO) if chosen.only in bug.name]
    rows: list[Found] = []
    with multiprocessing.get_context("spawn").Pool(PROCESSES) as pool:
        answers = pool.imap(partial(hunt, most=chosen.most), numbers)
        for number, found in zip(numbers, answers, strict=True):
            said = f"seed {found.seed}: {found.invariant}: {found.said}" if found else "NOT FOUND"
            sys.stdout.write(f"{ZOO[number].name}: {said}\n")
            sys.stdout.flush()
            rows += [found] if found else []
    sys.stdout.write(f"found={len(rows)} of={len(numbers)}\n")
    if chosen.write and len(rows) == len(ZOO):
        chosen.write.write_text(render(rows), encoding="utf8")
    return int(len(rows) < len(numbers))


if __name__ == "__main__":
    sys.exit(main())
