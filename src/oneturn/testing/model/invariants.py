"""The invariants, by their names: of a state, of a step, and of a world that has come to rest."""

from __future__ import annotations

from collections.abc import Iterator

from oneturn.testing.evidence import Violation
from oneturn.testing.model import records
from oneturn.testing.model.records import Row
from oneturn.testing.model.state import CLAIM, LOOK, REST, RUN, Attempt, Configuration, Move, State

Found = Iterator[tuple[str, str]]
"""(invariant, what) of each violation; only the first is asked for."""


def of_state(state: State, bounds: Configuration) -> Violation | None:
    """What must hold at every instant."""
    return _first(_in_state(state, bounds))


def of_step(before: State, move: Move) -> Violation | None:
    """What no step may do."""
    return _first(_in_step(before, move))


def at_rest(state: State) -> Violation | None:
    """What must hold once nobody has anything to do any more and everything that lapses has lapsed."""
    return _first(_at_rest(state))


def _first(found: Found) -> Violation | None:
    for invariant, what in found:
        return Violation(invariant=invariant, what=what)
    return None


# -- of a state -------------------------------------------------------------------------------------------------------


def _in_state(state: State, bounds: Configuration) -> Found:
    for number, row in enumerate(state.scope.rows):
        yield from _of_told(state, bounds, number, row)
        if row is not None:
            yield from _of_record(state, number, row)
    healthy = _healthy(state, bounds)
    for attempt in state.attempts:
        if attempt.until and attempt.phase in {CLAIM, LOOK, RUN}:
            yield from _of_belief(state, attempt, healthy=healthy)
    answers = state.scope.answers
    if len(set(answers)) != len(answers):
        yield "I8", f"a message is answered twice: {answers}"
    if not state.attempts and not state.net and _calm(state, bounds):
        for number, key in enumerate(state.keys):
            if key is not None:
                yield "I14", f"key {number} is held by {key.owner}, who has gone"


def _of_told(state: State, bounds: Configuration, number: int, row: Row | None) -> Found:
    told = state.told[number]
    if told == records.SUCCEEDED and (row is None or row.status != records.SUCCEEDED):
        yield "I4", f"{number} was told succeeded and is {row and row.status}"
    if told == "failed" and row is not None and row.status == records.SUCCEEDED:
        yield "I11", f"{number} was told failed and has succeeded"
    if state.entered[number] > (records.MAX_ATTEMPTS if bounds.rerun[number] else 1):
        yield "I2", f"{number} was entered {state.entered[number]} times"


def _of_record(state: State, number: int, row: Row) -> Found:
    if row.terminal != (row.status not in records.OPEN):
        yield "I3", f"{number} is {row.status} and has {row.terminal} terminal events"
    if (row.status == records.SUCCEEDED) != (number in state.scope.answers):
        yield "I8", f"{number} is {row.status}, answers are {state.scope.answers}"


def _of_belief(state: State, attempt: Attempt, *, healthy: bool) -> Found:
    """An attempt that believes that it may go on."""
    row = state.scope.rows[attempt.request]
    ours = row is not None and attempt.phase == RUN and row.epoch == attempt.epoch
    if attempt.phase == RUN and row is not None and (healthy or row.alive_until > state.now):
        # It is alive: a voucher of its own stands. (One by keys alone goes with the lock service's data.)
        dead = row.status in {records.QUEUED, records.ABANDONED} or (row.status == records.RUNNING and not ours)
        if dead:
            yield "I3", f"{attempt.owner} is alive, and its record is {row.status} without it"
    if not healthy or (ours and row is not None and (row.status != records.RUNNING or row.alive_until > state.now)):
        return  # the record vouches; or it was ended from outside, which is learnt at the next check
    for number in attempt.keys:
        key = state.keys[number]
        if key is None or key.owner != attempt.owner:
            yield "I10", f"{attempt.owner} believes in key {number}, which is not its own"


def _calm(state: State, bounds: Configuration) -> bool:
    """Nobody crashed and nothing came late: whoever took a key knows of it."""
    faults = (state.budget.crashes, state.budget.lates)
    return faults == (bounds.budget.crashes, bounds.budget.lates) and state.now < REST


def _healthy(state: State, bounds: Configuration) -> bool:
    """The lock service lost nothing."""
    return (state.budget.emptied, state.budget.evicted) == (bounds.budget.emptied, bounds.budget.evicted)


# -- of a step --------------------------------------------------------------------------------------------------------


def _in_step(before: State, move: Move) -> Found:
    after = move.after
    if move.wrote is not None:
        yield from _of_write(before, after, *move.wrote)
    if before.entered is not after.entered:
        yield from _of_entry(before, after)
    if before.attempts is not after.attempts:
        yield from _of_lives(before, after)
    if before.keys is not after.keys and "renew" in move.label:
        yield from _of_renewal(before, move)
    if before.scope is not after.scope:
        if after.scope.epoch < before.scope.epoch:
            yield "I1", f"the epoch fell from {before.scope.epoch} to {after.scope.epoch}"
        for number, (old, new) in enumerate(zip(before.scope.rows, after.scope.rows, strict=True)):
            if old is not new and new is not None:
                yield from _of_change(before, after, number, old, new)


def _of_change(before: State, after: State, number: int, old: Row | None, new: Row) -> Found:
    if old is not None and old.status not in records.OPEN:
        if new.status != old.status or new.terminal != old.terminal:
            yield "I3", f"{number} was {old.status} for good and is {new.status}"
        if new.last_seq != old.last_seq:
            yield "I12", f"{number} has an event after its terminal one"
    if new.status == records.RUNNING and (old is None or old.status != records.RUNNING):
        yield from _of_beginning(before, after, number, new)
        return
    wrote = new.status == records.SUCCEEDED or (
        new.status == records.RUNNING and old is not None and new.last_seq != old.last_seq
    )
    if wrote:
        yield from _of_write(before, after, number, new.epoch)
    if new.status == records.SUCCEEDED and new.context != len(before.scope.answers):
        yield "I7", f"{number} was given {new.context} answers, accepted were {before.scope.answers}"


def _of_beginning(before: State, after: State, number: int, new: Row) -> Found:
    highest = max((row.epoch for row in before.scope.rows if row is not None), default=0)
    if new.epoch and new.epoch <= max(highest, before.scope.epoch):
        yield "I1", f"{number} claimed epoch {new.epoch} after {highest}"
    for other in after.scope.queue():
        waiting, old = after.scope.rows[other], before.scope.rows[other]
        if waiting and old and old.status == records.QUEUED and waiting.sequence < new.sequence:
            yield "I15", f"{number} was started, and {other} has waited longer"


def _of_write(before: State, after: State, number: int, epoch: int) -> Found:
    """A write of an attempt became visible."""
    for other, row in enumerate(before.scope.rows):
        if row is not None and row.epoch > epoch:
            yield "I6", f"{number} wrote under {epoch} after {other} began under {row.epoch}"
    row = before.scope.rows[number]
    if row is not None and row.status not in records.OPEN:
        yield "I6", f"{number} wrote under {epoch} after its end"
    if after.scope.epoch != epoch:
        yield "I1", f"{number} wrote under {epoch}, the scope's is {after.scope.epoch}"


def _of_entry(before: State, after: State) -> Found:
    """The work is entered by one who may; that a stop has just come from outside it learns at its next check."""
    for number, row in enumerate(after.scope.rows):
        entered = after.entered[number] > before.entered[number]
        if entered and (row is None or row.status not in {records.RUNNING, records.STOPPED}):
            yield "I2", f"{number} was entered, and its record is {row and row.status}"


def _of_lives(before: State, after: State) -> Found:
    """LOST is absorbing: what was declared dead while it thought so itself does not think otherwise again."""
    was = {attempt.owner: attempt for attempt in before.attempts}
    for attempt in after.attempts:
        old, row = was.get(attempt.owner), after.scope.rows[attempt.request]
        if old is not None and old.keys and attempt.until > old.until == 0 and row and row.status != records.RUNNING:
            yield "I3", f"{attempt.owner} is alive again, and its record is {row.status}"


def _of_renewal(before: State, move: Move) -> Found:
    for attempt in before.attempts:
        extended = [number for number in attempt.keys if before.keys[number] != move.after.keys[number]]
        held = [key for number in attempt.keys if (key := move.after.keys[number]) and key.owner == attempt.owner]
        if attempt.owner in move.label and extended and len(held) < len(attempt.keys):
            yield "I10", f"a renewal of {attempt.owner} extended {extended} alone"


# -- at rest ----------------------------------------------------------------------------------------------------------


def _at_rest(state: State) -> Found:
    if state.now != REST or state.attempts:
        yield "I15", "somebody waits for ever"
    for number, row in enumerate(state.scope.rows):
        if row is None and state.told[number]:
            yield "I3", f"{number} was told {state.told[number]} and has no record"
        if row is not None and row.status == records.QUEUED:
            yield "I15", f"{number} is queued for ever"
        if row is not None and row.status == records.RUNNING:
            yield "I3", f"{number} runs for ever"
