"""A campaign: many seeds on several processors, counted; what fails is shrunk and told so that it can be run again."""

from __future__ import annotations

import gc
import logging
import multiprocessing
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from oneturn.testing.evidence import Violation
from oneturn.testing.simulation.failpoints import failpoints
from oneturn.testing.simulation.run import LAST, Run, run_seed
from oneturn.testing.simulation.shrink import shrink

ENOUGH = 1000
"""Seeds within which every failpoint has to be reached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """One run without its evidence: what travels between processes."""

    seed: int
    violations: tuple[Violation, ...]
    admissions: int
    faults: int
    hosts: int
    boundaries: dict[str, int]


@dataclass(slots=True)
class Tally:
    """What a campaign has given so far."""

    seeds: int = 0
    admissions: int = 0
    faults: int = 0
    hosts: int = 0
    boundaries: Counter[str] = field(default_factory=Counter)
    failed: list[Counted] = field(default_factory=list)

    def add(self, run: Counted) -> None:
        """One seed more."""
        self.seeds += 1
        self.admissions += run.admissions
        self.faults += run.faults
        self.hosts += run.hosts
        self.boundaries.update(run.boundaries)
        if run.violations:
            self.failed.append(run)

    def missed(self) -> list[str]:
        """Failpoints that nobody has reached."""
        return sorted(failpoints().difference(self.boundaries))

    def complaints(self) -> list[str]:
        """Why this campaign proves less than it should, in sentences."""
        said = [
            f"{what} per seed: {number / self.seeds:.1f}, at least {least} are needed"
            for what, number, least in (
                ("hosts", self.hosts, 3),
                ("admissions", self.admissions, 10),
                ("faults", self.faults, 3),
            )
            if number < least * self.seeds
        ]
        if self.seeds >= ENOUGH and self.missed():
            said.append(f"failpoints that were never reached: {', '.join(self.missed())}")
        return said


def run_seeds(seeds: Sequence[int], *, processes: int | None = None) -> Iterator[Counted]:
    """Run each seed, as many at once as there are processors; in no particular order."""
    processes = min(processes or os.cpu_count() or 1, len(seeds))
    if processes <= 1:
        yield from map(counted, seeds)
        return
    # Started afresh, never forked: a worker's threads are its own.
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        yield from pool.imap_unordered(counted, seeds, chunksize=4)


def counted(seed: int) -> Counted:
    """Run one seed."""
    gc.set_threshold(50_000)  # a run makes and drops some 100,000 small things; nobody waits for them
    logging.disable(logging.CRITICAL)  # handlers and processes that die are what this is about
    run = run_seed(seed)
    return Counted(
        seed=seed,
        violations=run.violations,
        admissions=run.admissions,
        faults=run.faults,
        hosts=run.hosts,
        boundaries=run.boundaries,
    )


def shrunk(failed: Run) -> tuple[list[str], Run]:
    """The fewest items of the plan, found with a bounded number of runs, with which the same invariant breaks."""
    names = failed.items
    invariants = {violation.invariant for violation in failed.violations}

    def fails(without: frozenset[str]) -> bool:
        run = run_seed(failed.seed, without=without)
        return any(violation.invariant in invariants for violation in run.violations)

    kept = shrink(fails, names)
    return kept, run_seed(failed.seed, without=frozenset(names).difference(kept))


def report(failed: Counted) -> Iterator[str]:
    """What is known of a failure, line by line: seed, violations, what was done, the last decisions, how to see it again."""
    run = run_seed(failed.seed)
    kept, smallest = shrunk(run)
    yield f"seed {run.seed}"
    yield from (f"  {violation.invariant}: {violation.what}" for violation in run.violations)
    yield f"  needs {len(kept)} of {len(run.plan)} items of its plan:"
    yield from (f"    {item}" for item in smallest.plan)
    yield "  with these alone:"
    yield from (f"    {violation.invariant}: {violation.what}" for violation in smallest.violations)
    yield "  the last decisions:"
    yield from (f"    {line}" for line in smallest.trace[-LAST:])
    only = ",".join(kept)
    yield f'  again: python -m oneturn.testing.simulation --seeds 1 --base {run.seed} --only "{only}"'
