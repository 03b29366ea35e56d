"""Order: I15, nobody waits in vain, and the queue is served from its front."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from oneturn.testing.checker.ledger import ScopeName, named
from oneturn.testing.checker.view import SLACK, View, scope_of
from oneturn.testing.evidence import Violation


def served(view: View) -> Iterator[Violation]:
    """After healing, every scope answers a fresh question within its bound; whoever asked it has looked at the clock."""
    for scope in view.evidence.unserved:
        yield Violation(invariant="I15", what=f"after healing {scope} was not served")


def in_order(view: View) -> Iterator[Violation]:
    """Messages are started in the order of their sequences, which is the order of their epochs.

    Judged for what was started once: a regenerating turn has the sequence of an old message, and a rerun a new epoch.
    """
    started: dict[ScopeName, list[tuple[int, int, str]]] = defaultdict(list)
    for turn, final in view.finals.items():
        record = final.record
        if record.epoch is not None and record.attempt == 1 and record.message in ("", turn):
            started[scope_of(record)].append((record.epoch, record.sequence, turn))
    for scope, turns in started.items():
        turns.sort()
        for (_, earlier, first), (_, later, second) in pairwise(turns):
            if later < earlier:
                what = f"{named(scope)} started {first} ({earlier}) before {second} ({later})"
                yield Violation(invariant="I15", what=what)


def no_idle_wait(view: View) -> Iterator[Violation]:
    """After healing, the first in the queue of a scope in which nothing runs is started within its bound."""
    healed = view.evidence.healed_at
    if healed is None:
        return
    bound = view.bounds.check_every + view.bounds.ttl + SLACK
    for wait in view.ledger.waits:
        since = max(wait.since, healed)
        if wait.until - since > bound:
            what = f"{named(wait.scope)} stood still from {since:.1f} to {wait.until:.1f} with messages in its queue"
            yield Violation(invariant="I15", what=what)


RULES = (served, in_order, no_idle_wait)
