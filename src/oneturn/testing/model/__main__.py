"""`python -m oneturn.testing.model`: exhaust the right model, refute every switch; exit 1 if either fails."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from oneturn.testing.model.configurations import CONFIGURATIONS, PLANTED
from oneturn.testing.model.explore import explore


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what was explored and what was refuted."""
    parser = argparse.ArgumentParser(prog="model")
    parser.add_argument("--traces", action="store_true", help="print the trace that refutes each switch")
    traces, failed, total = parser.parse_args(arguments).traces, False, 0
    sys.stdout.write(f"{'configuration':<16}{'states':>9}{'steps':>9}{'seconds':>9}\n")
    for bounds in CONFIGURATIONS:
        began = time.perf_counter()
        right = explore(bounds)
        total += right.states
        seconds = time.perf_counter() - began
        sys.stdout.write(f"{bounds.name:<16}{right.states:>9}{right.steps:>9}{seconds:>9.1f}\n")
        if right.violation is not None:
            failed = True
            sys.stdout.write("".join(f"    {line}\n" for line in right.lines()))
    sys.stdout.write(f"{total} states in all\n\n{'switch':<72}{'in':<11}{'breaks':<8}steps\n")
    for planted in PLANTED:
        found = explore(planted.bounds, planted.switch)
        broken = found.violation.invariant if found.violation is not None else "nothing"
        failed |= broken not in planted.breaks
        sys.stdout.write(f"{planted.switch.value:<72}{planted.bounds.name:<11}{broken:<8}{len(found.trace)}\n")
        if traces or broken not in planted.breaks:
            sys.stdout.write("".join(f"    {line}\n" for line in found.lines()))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
