"""The world around the attempts: clients, the queue, the network, the sweeper, time, and what goes wrong."""

from __future__ import annotations

from collections.abc import Callable

from oneturn.testing.model import records
from oneturn.testing.model.attempts import held_for, tell
from oneturn.testing.model.records import Moment
from oneturn.testing.model.services import rest, serve, tick
from oneturn.testing.model.state import (
    REST,
    Attempt,
    Budget,
    Configuration,
    Look,
    Move,
    Moves,
    State,
    drop_attempt,
    fresh_owner,
    put_attempt,
)
from oneturn.testing.model.switches import Switch


class Outside:
    """The moves of everybody but the attempts."""

    def __init__(self, bounds: Configuration, wrong: Switch | None) -> None:
        self._bounds = bounds
        self._wrong = wrong
        self._parts: tuple[Callable[[State], Moves], ...] = (
            self._ask,
            self._queue,
            self._network,
            self._stop,
            self._sweep,
            self._fail,
            self._time,
        )

    def moves(self, state: State) -> Moves:
        """What may happen next."""
        for part in self._parts:
            yield from part(state)

    def _ask(self, state: State) -> Moves:
        """A client sends a request: the record is looked at first; if there is none, an attempt begins."""
        for request, left in enumerate(state.budget.asks):
            if not left:
                continue
            asks = tuple(n - (number == request) for number, n in enumerate(state.budget.asks))
            asked = state._replace(budget=state.budget._replace(asks=asks))
            row = state.scope.rows[request]
            if row is not None:
                word = "admitted" if row.status in records.OPEN else row.status
                yield Move(("ask", request, word), tell(asked, request, word))
            elif len(state.attempts) < self._bounds.workers:
                attempt = Attempt(fresh_owner(state), request, starting=False)
                yield Move(("ask", request, attempt.owner), put_attempt(asked, attempt))

    def _queue(self, state: State) -> Moves:
        """Any process may take the oldest waiting record once nobody vouches for a running one."""
        queue = state.scope.queue()
        if not queue or len(state.attempts) >= self._bounds.workers:
            return
        running = state.scope.running()
        row = state.scope.rows[running] if running != records.NONE else None
        if row is not None and not Moment(state.now).lapsed(row):
            return
        for number in queue if self._wrong is Switch.QUEUE_SKIPPED else queue[:1]:
            if not any(attempt.starting and attempt.request == number for attempt in state.attempts):
                attempt = Attempt(fresh_owner(state), number, starting=True)
                yield Move(("take from the queue", number, attempt.owner), put_attempt(state, attempt))

    def _network(self, state: State) -> Moves:
        """What was given up may be applied after all; nobody hears of it."""
        for place, message in enumerate(state.net):
            after, answer = serve(message.op, state, message.attempt, self._bounds, self._wrong)
            after = after._replace(net=state.net[:place] + state.net[place + 1 :])
            yield Move(("apply late", message.op, message.attempt.owner, answer.word), after)

    def _stop(self, state: State) -> Moves:
        if not state.budget.stops:
            return
        spent = state._replace(budget=state.budget._replace(stops=state.budget.stops - 1))
        for number, row in enumerate(state.scope.rows):
            if row is not None and row.status in records.OPEN:
                scope, _ = records.stop(state.scope, number, wrong=self._wrong)
                yield Move(("stop", number), spent._replace(scope=scope))

    # -- sweeping -----------------------------------------------------------------------------------------------------

    def _sweep(self, state: State) -> Moves:
        if not (self._bounds.sweeper or state.now == REST):
            return
        look, now = state.look, state.now
        number = state.scope.running()
        row = state.scope.rows[number] if number != records.NONE else None
        if look is not None and look.free:
            scope, answer = records.abandon(
                state.scope,
                look.number,
                epoch=look.epoch,
                alive_until=look.alive_until,
                at=Moment(now),
                wrong=self._wrong,
            )
            yield Move(("abandon", look.number, answer.word), state._replace(scope=scope, look=None))
        if row is None:
            return
        unvouched = Moment(now).lapsed(row) or self._wrong is Switch.VOUCHERS_IGNORED
        seen = (number, row.epoch, row.alive_until)
        if look is None or look[:3] != seen:
            if unvouched:
                yield Move(("sweep", number, "first look"), state._replace(look=Look(*seen, at=now)))
        elif (now > look.at or now == REST) and not look.free:
            held = held_for(state, number) and self._wrong is not Switch.KEYS_IGNORED
            if not held:
                yield Move(("sweep", number, "second look"), state._replace(look=look._replace(free=True)))

    # -- time and faults ----------------------------------------------------------------------------------------------

    def _time(self, state: State) -> Moves:
        if state.now < self._bounds.ticks:
            yield Move(("tick", state.now + 1), tick(state))
        elif state.now < REST and not state.attempts and not state.net:
            yield Move(("the great rest",), rest(state))

    def _fail(self, state: State) -> Moves:
        budget = state.budget
        if state.now == REST:
            return
        if budget.crashes:
            for attempt in state.attempts:
                after = drop_attempt(_spend(state, crashes=budget.crashes - 1), attempt)
                yield Move(("crash", attempt.owner), after)
        held = [number for number, key in enumerate(state.keys) if key is not None]
        if budget.emptied and held:
            free = (None,) * len(state.keys)
            yield Move(("the lock service is emptied",), _spend(state, emptied=budget.emptied - 1)._replace(keys=free))
        if budget.evicted:
            for number in held:
                keys = (*state.keys[:number], None, *state.keys[number + 1 :])
                yield Move(("evict", number), _spend(state, evicted=budget.evicted - 1)._replace(keys=keys))


def _spend(state: State, **left: int) -> State:
    budget: Budget = state.budget._replace(**left)  # type: ignore[arg-type] # the callers name numbers
    return state._replace(budget=budget)
