"""A campaign counts what it has seen, and tells a failure so that it can be seen again."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from unittest.mock import patch

import pytest

from oneturn.runtime.process import Process
from oneturn.testing.evidence import Violation
from oneturn.testing.simulation.campaign import ENOUGH, Counted, Tally, counted, report
from oneturn.testing.simulation.failpoints import failpoints
from oneturn.testing.simulation.run import run_seed


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def a_run(**fields: object) -> Counted:
    values: dict[str, object] = {
        "seed": 1,
        "violations": (),
        "admissions": 100,
        "faults": 8,
        "hosts": 4,
        "boundaries": dict.fromkeys(failpoints(), 1),
    }
    return Counted(**(values | fields))  # type: ignore[arg-type]


def test_a_campaign_that_does_too_little_complains() -> None:
    tally = Tally()
    tally.add(a_run())
    assert tally.complaints() == []
    tally.add(a_run(admissions=0, faults=0, hosts=1))
    tally.add(a_run(admissions=0, faults=0, hosts=1))
    assert [said.split(" ")[0] for said in tally.complaints()] == ["hosts", "faults"]


def test_a_failpoint_that_a_thousand_seeds_do_not_reach_is_named() -> None:
    tally, reached = Tally(), dict.fromkeys(failpoints() - {"records.claim.after"}, 1)
    for _ in range(ENOUGH - 1):
        tally.add(a_run(boundaries=reached))
    assert tally.complaints() == []
    tally.add(a_run(boundaries=reached))
    assert tally.complaints() == ["failpoints that were never reached: records.claim.after"]


def test_the_failpoints_are_those_of_the_source_and_of_every_port_step() -> None:
    assert {"admission.leased", "execution.finish.before", "replay.get.after"} <= failpoints()
    assert {"records.claim.before", "records.scope_events.after", "leases.revoke.before"} <= failpoints()


def test_a_failure_names_its_seed_and_the_few_things_it_needs_and_is_seen_again_by_its_command() -> None:
    async def forgets(self: Process, lease: object) -> None:
        """A planted bug: nothing is ever released."""

    with patch.object(Process, "release", forgets):
        seed = next(seed for seed in range(1, 50) if run_seed(seed).violations)
        lines = list(report(counted(seed)))
        only = re.search(rf'again: .* --seeds 1 --base {seed} --only "(.*)"', lines[-1])
        assert only is not None
        names = frozenset(run_seed(seed).items)
        again = run_seed(seed, without=names - frozenset(only[1].split(",")))
        assert again.violations
    assert lines[0] == f"seed {seed}"
    assert any(f"  {violation.invariant}: " in line for violation in again.violations for line in lines)
    assert len(only[1].split(",")) < len(names) / 4
    assert run_seed(seed).violations == ()


def test_the_command_prints_its_counts_and_exits_with_the_verdict() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "oneturn.testing.simulation", "--seeds", "4", "--base", "1", "--processes", "2"],
        env={**os.environ},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(
        r"seeds=4 violations=0 admissions=\d+ faults=\d+ seeds_per_min=\d+ admissions_per_min=\d+ hosts=\d+ "
        r"failpoints=\d+/\d+ base=1\n",
        done.stdout,
    )


def test_violations_are_counted_by_seed() -> None:
    tally = Tally()
    tally.add(a_run(violations=(Violation(invariant="I1", what="x"), Violation(invariant="I2", what="y"))))
    assert len(tally.failed) == 1
