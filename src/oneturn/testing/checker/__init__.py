"""The one checker: every invariant of the design that a run's evidence breaks, whatever ran it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from oneturn.testing.checker import (
    answers,
    endings,
    entries,
    epochs,
    fenced,
    leases,
    left,
    logs,
    order,
    owners,
    reads,
    regenerations,
    said,
    told,
    vouchers,
)
from oneturn.testing.checker.view import View
from oneturn.testing.evidence import Evidence, Violation

__all__ = ["check"]

_Rule = Callable[[View], Iterable[Violation]]

_RULES: tuple[_Rule, ...] = tuple(
    rule
    for module in (
        epochs,
        entries,
        endings,
        told,
        logs,
        reads,
        answers,
        regenerations,
        leases,
        owners,
        left,
        order,
        fenced,
        vouchers,
        said,
    )
    for rule in module.RULES
)


def check(evidence: Evidence) -> list[Violation]:
    """Every violation of I1 to I16. What needs a part of the evidence that is empty is not judged."""
    view = View(evidence)
    return [violation for rule in _RULES for violation in rule(view)]
