"""Simulated runs of the real runtime, replayed against the model: every step that the stores applied, whatever the weather."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator

import pytest

from oneturn.testing.simulation import run_seed
from oneturn.testing.simulation.run import judge

SEEDS = 20


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def test_the_real_runtime_makes_no_step_that_the_model_does_not_allow() -> None:
    """Only what the nemesis did to the lock service and to the clocks is excused."""
    seen = Counter[str]()
    for seed in range(1, SEEDS + 1):
        run = run_seed(seed, judge=judge)
        assert [violation for violation in run.violations if violation.invariant == "model"] == [], seed
        seen.update(step.method for step in run.evidence.steps)
    assert seen.keys() >= {"claim", "start", "append", "finish", "stop", "abandon", "touch"}
    assert seen.keys() >= {"acquire", "renew", "release", "revoke"}
    assert seen.total() > 100 * SEEDS
