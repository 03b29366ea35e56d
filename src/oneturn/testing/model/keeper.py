"""The keeper: renews keys, vouches for records and takes absent keys again, beside the attempt that it keeps."""

from __future__ import annotations

from oneturn.testing.model import leases, records
from oneturn.testing.model.attempts import Hear, Turn
from oneturn.testing.model.records import Answer
from oneturn.testing.model.state import (
    OVER,
    RELEASE,
    RUN,
    Attempt,
    Call,
    Configuration,
    Moves,
    State,
    drop_attempt,
    put_attempt,
)
from oneturn.testing.model.switches import Switch


class Keeper:
    """One beat (a renewal or a voucher) at a time for each attempt that runs."""

    def __init__(self, turn: Turn, bounds: Configuration, wrong: Switch | None) -> None:
        self._turn = turn
        self._bounds = bounds
        self._wrong = wrong

    def moves(self, state: State) -> Moves:
        """What it may do next."""
        for attempt in state.attempts:
            if attempt.beat is not None:
                yield from self._turn.call(attempt.beat.op, state, attempt, self._heard(attempt.beat.op), "beat")
            elif attempt.phase == RUN and attempt.beats and attempt.until:
                spent = attempt._replace(beats=attempt.beats - 1)
                for op in ("renew", "touch"):
                    yield from self._turn.call(op, state, spent, self._heard(op), "beat")

    def _heard(self, op: str) -> Hear:
        return {"renew": self._renewed, "touch": self._touched, "regrant": self._regranted}[op]

    def _touched(self, state: State, attempt: Attempt, answer: Answer, asked_at: int) -> State:
        if answer.word == records.VOUCHED:
            return self._settled(state, self._turn.extend(state, attempt, asked_at))
        return self._settled(state, attempt._replace(until=0))

    def _renewed(self, state: State, attempt: Attempt, answer: Answer, asked_at: int) -> State:
        if answer.word == leases.KEPT:
            return self._settled(state, self._turn.extend(state, attempt, asked_at))
        if answer.word != leases.ABSENT:
            return self._settled(state, attempt._replace(until=0))
        if attempt.until and attempt.phase == RUN:
            # The lock service lost its data, and the record still vouches: the same owner takes its keys again.
            return put_attempt(state, attempt._replace(beat=Call("regrant", state.now)))
        return self._settled(state, attempt)

    def _regranted(self, state: State, attempt: Attempt, answer: Answer, asked_at: int) -> State:
        if answer.word != leases.GRANTED:
            return self._settled(state, attempt._replace(until=0))
        if attempt.phase == OVER and self._wrong is not Switch.REGRANT_KEPT:
            # Given back while we asked: nobody else would release it.
            return put_attempt(state, attempt._replace(phase=RELEASE))
        return self._settled(state, self._turn.extend(state, attempt, asked_at))

    def _settled(self, state: State, attempt: Attempt) -> State:
        return drop_attempt(state, attempt) if attempt.phase == OVER else put_attempt(state, attempt)
