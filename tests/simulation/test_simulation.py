"""The real runtime under the seeded scheduler: no violation in what is right."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from oneturn.testing.simulation import run_seed

BASE = int(os.environ.get("SIMULATION_BASE", "1"))
SEEDS = int(os.environ.get("SIMULATION_SEEDS", "60"))


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.row("Q4", "Q18")
def test_no_invariant_is_broken_in_fresh_seeds() -> None:
    runs = [run_seed(seed) for seed in range(BASE, BASE + SEEDS)]
    assert [(run.seed, run.violations) for run in runs if run.violations] == []
    assert sum(run.admissions for run in runs) >= 10 * SEEDS
    assert sum(run.faults for run in runs) >= 3 * SEEDS


DIGEST = """
import hashlib, logging
from oneturn.testing.simulation import run_seed
logging.disable(logging.CRITICAL)
for seed in (1, 2, 10):
    run = run_seed(seed)
    said = (run.steps, run.plan, run.trace, run.evidence.steps, run.evidence.told, run.evidence.reads)
    print(seed, hashlib.sha256(repr(said).encode()).hexdigest())
"""
"""Of all that happened in a run. The records of seed 10 are in SQLite."""


def test_a_seed_is_the_same_run_under_any_hash_seed() -> None:
    outputs = {
        subprocess.run(
            [sys.executable, "-c", DIGEST],
            env={"PYTHONHASHSEED": seed, "PATH": "", "PYTHONPATH": os.environ.get("PYTHONPATH", "")},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1
    assert len(outputs.pop().splitlines()) == 3
