"""Simulated runs of the real runtime, replayed against the model: every step that the stores applied, whatever the weather."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from oneturn.backends.memory.leases import MemoryLeases
from oneturn.backends.memory.records import MemoryRecords
from oneturn.testing.evidence import Step
from oneturn.testing.model import conform
from oneturn.testing.simulation import run_seed

SEEDS = 20
RECORDS = ("claim", "start", "append", "finish", "stop", "abandon", "touch", "sweep", "erase")
LEASES = ("acquire", "renew", "release", "revoke")


@pytest.fixture
def journal(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Step]]:
    """Every step that a store of this process applies from now on."""
    steps: list[Step] = []

    def write_down(store: type[Any], port: Any, method: str) -> None:
        real = getattr(store, method)

        async def step(self: Any, *asked: Any, **named: Any) -> Any:
            time, before = _now(self), _held(self)
            answer = await real(self, *asked, **named)
            steps.append(
                Step(
                    seq=len(steps),
                    time=time,
                    host="",
                    port=port,
                    method=method,
                    asked=asked[0] if asked else None,
                    named=named,
                    answer=answer,
                    before=before,
                    after=_held(self),
                )
            )
            return answer

        monkeypatch.setattr(store, method, step)

    for method in RECORDS:
        write_down(MemoryRecords, "records", method)
    for method in LEASES:
        write_down(MemoryLeases, "leases", method)
    logging.disable(logging.CRITICAL)
    yield steps
    logging.disable(logging.NOTSET)


def _now(store: Any) -> float:
    now: float = store._times.monotonic() if isinstance(store, MemoryLeases) else store.table.now
    return now


def _held(store: Any) -> dict[str, str]:
    if not isinstance(store, MemoryLeases):
        return {}
    keys = store._keys
    keys.now = _now(store)
    return {name: entry.owner for name in list(keys._entries) if (entry := keys.live(name)) and entry.owner}


def test_the_real_runtime_makes_no_step_that_the_model_does_not_allow(journal: list[Step]) -> None:
    """The nemesis empties the lock service and evicts keys; all else is judged."""
    seen = Counter[str]()
    for seed in range(1, SEEDS + 1):
        journal.clear()
        run_seed(seed)
        assert conform(journal, keys_may_vanish=True) == [], seed
        seen.update(step.method for step in journal)
    assert seen.keys() >= {"claim", "start", "append", "finish", "stop", "abandon", "touch"}
    assert seen.keys() >= {"acquire", "renew", "release"}
    assert seen.total() > 100 * SEEDS
