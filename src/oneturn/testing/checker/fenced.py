"""An application's own rows: I1, I4 and I11 of what was committed under a turn's fence, in the application's transactions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from oneturn.core.status import Status
from oneturn.testing.checker.ledger import ScopeName
from oneturn.testing.checker.view import View
from oneturn.testing.evidence import Violation


def in_order(view: View) -> Iterator[Violation]:
    """I1: in a conversation, no row is committed under an epoch older than that of a row before it."""
    highest: dict[ScopeName, int] = {}
    for row in view.evidence.fenced:
        before = highest.setdefault((row.tenant, row.scope), row.epoch)
        if row.epoch < before:
            what = f"a row of {row.turn} was committed under epoch {row.epoch}, after one under {before}"
            yield Violation(invariant="I1", what=what)
        highest[row.tenant, row.scope] = max(before, row.epoch)


def of_a_right(view: View) -> Iterator[Violation]:
    """I1: a row's epoch is one that its turn was granted."""
    attempts = view.ledger.attempts
    for row in view.evidence.fenced if attempts else ():
        if (row.turn, row.epoch) not in attempts:
            what = f"a row of {row.turn} was committed under epoch {row.epoch}, which it never had"
            yield Violation(invariant="I1", what=what)


def with_the_record(view: View) -> Iterator[Violation]:
    """I4: a row that was to finish its turn is there once, and its turn has succeeded under its epoch."""
    rows = Counter((row.turn, row.epoch) for row in view.evidence.fenced if row.finishes)
    for (turn, epoch), times in rows.items():
        final = view.finals.get(turn)
        if times > 1:
            yield Violation(invariant="I4", what=f"{turn} was finished by {times} commits of rows")
        if final is not None and (final.record.status, final.record.epoch) != (Status.SUCCEEDED, epoch):
            what = f"a row finished {turn} under epoch {epoch}, but it is {final.record.status} ({final.record.epoch})"
            yield Violation(invariant="I4", what=what)


def refused(view: View) -> Iterator[Violation]:
    """I11: nothing of a commit that was refused is there."""
    committed = {(row.turn, row.epoch) for row in view.evidence.fenced}
    for row in view.evidence.refused_by_fence:
        if (row.turn, row.epoch) in committed:
            what = f"a row of {row.turn} under epoch {row.epoch} is there, though its commit was refused"
            yield Violation(invariant="I11", what=what)


RULES = (in_order, of_a_right, with_the_record, refused)
