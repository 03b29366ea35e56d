"""Conformance: a journal of real stores' steps is walked again in the model, and every answer has to be one of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from oneturn.testing.evidence import Step, Violation
from oneturn.testing.model.key_journal import KeyJournal
from oneturn.testing.model.record_journal import RecordJournal


def conform(
    steps: Sequence[Step], *, clock_may_jump: bool = False, keys_may_vanish: bool = False, slack: float = 1e-6
) -> list[Violation]:
    """What the model does not allow, in the order of the steps. The stores are taken to have been empty before the first.

    `clock_may_jump`: what has lapsed is then not judged (a store's clock was set); everything else is. `keys_may_vanish`: the lock
    service lost data, so keys may go, or come back, between steps. `slack`: how far a step's time may be from the store's own, in
    seconds. After a violation the records of that scope are judged no further: all that follows would be one.

    Judged: `claim`, `enqueue`, `start`, `append`, `finish`, `stop`, `abandon`, `touch`; `acquire`, `renew`, `release`, `revoke`. Followed:
    `erase`, `sweep`. Every step has to be in the journal, those in an application's own transaction too, at its commit: a `finish`
    as ever, an `enqueue_in` as `enqueue`.
    """
    records = RecordJournal(clock_may_jump=clock_may_jump, slack=slack)
    keys = KeyJournal(clock_may_jump=clock_may_jump, keys_may_vanish=keys_may_vanish, slack=slack)
    found: list[Violation] = []
    for step in steps:
        said: list[str] = []
        if step.port == "leases":
            said = list(keys.judge(step))
        elif step.port == "records":
            said = [what for one in _singly(step) if (what := records.judge(*one)) is not None]
        found.extend(Violation(invariant="model", what=f"step {step.seq} at {step.time:g}: {what}") for what in said)
    return found


def _singly(step: Step) -> Iterator[tuple[str, float, Any, Any]]:
    """(method, time, asked, answer) of each item: a batch of vouchers is as many steps."""
    if step.method == "touch":
        yield from (("touch", step.time, *pair) for pair in zip(step.asked, step.answer, strict=True))
    else:
        yield step.method, step.time, step.named if step.asked is None else step.asked, step.answer
