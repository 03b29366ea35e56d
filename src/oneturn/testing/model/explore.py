"""Exploration: every interleaving, breadth first, so that the first trace that refutes is a shortest one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from oneturn.testing.evidence import Violation
from oneturn.testing.model import invariants
from oneturn.testing.model.attempts import Turn
from oneturn.testing.model.keeper import Keeper
from oneturn.testing.model.outside import Outside
from oneturn.testing.model.state import Configuration, Move, State
from oneturn.testing.model.switches import Switch

Label = tuple[str | int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Exploration:
    """What an exploration gave. Without a violation the whole space was seen."""

    states: int
    steps: int
    violation: Violation | None = None
    trace: tuple[Label, ...] = ()
    """The steps that lead to the violation, one of the shortest such rows."""

    def lines(self) -> list[str]:
        """The trace, for people."""
        told = [f"{place:>3} {' '.join(map(str, label))}" for place, label in enumerate(self.trace, 1)]
        return told if self.violation is None else [*told, f"    {self.violation.invariant}: {self.violation.what}"]


def mover(bounds: Configuration, wrong: Switch | None) -> Callable[[State], list[Move]]:
    """All steps that can be taken from a state."""
    turn = Turn(bounds, wrong)
    parts = (turn, Keeper(turn, bounds, wrong), Outside(bounds, wrong))
    return lambda state: [move for part in parts for move in part.moves(state)]


def explore(bounds: Configuration, wrong: Switch | None = None, *, limit: int = 400_000) -> Exploration:
    """See every state, or the first violation. OverflowError if there are more states than `limit`."""
    moves, first = mover(bounds, wrong), bounds.initial()
    came: dict[State, tuple[State, Label] | None] = {first: None}
    waiting, steps = deque([first]), 0
    while waiting:
        state = waiting.popleft()
        able = moves(state)
        steps += len(able)
        if not able and (found := invariants.at_rest(state)) is not None:
            return Exploration(states=len(came), steps=steps, violation=found, trace=_trace(came, state))
        for move in able:
            fresh = move.after not in came
            found = invariants.of_step(state, move)
            if found is None and fresh:
                found = invariants.of_state(move.after, bounds)
            if found is not None:
                trace = (*_trace(came, state), move.label)
                return Exploration(states=len(came), steps=steps, violation=found, trace=trace)
            if fresh:
                came[move.after] = (state, move.label)
                waiting.append(move.after)
        if len(came) > limit:
            raise OverflowError(f"{bounds.name} has more than {limit} states")
    return Exploration(states=len(came), steps=steps)


def replay(bounds: Configuration, wrong: Switch | None, trace: Sequence[Label]) -> tuple[State, Violation | None]:
    """Take the steps of a trace again. KeyError if one of them cannot be taken."""
    moves, state, found = mover(bounds, wrong), bounds.initial(), None
    for label in trace:
        move = {move.label: move for move in moves(state)}[label]
        found = invariants.of_step(state, move) or invariants.of_state(move.after, bounds)
        state = move.after
    if found is None and not moves(state):
        found = invariants.at_rest(state)
    return state, found


def _trace(came: dict[State, tuple[State, Label] | None], state: State) -> tuple[Label, ...]:
    labels: list[Label] = []
    while (link := came[state]) is not None:
        state, label = link
        labels.append(label)
    return tuple(reversed(labels))
