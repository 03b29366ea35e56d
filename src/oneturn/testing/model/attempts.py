"""The attempt: acquire, claim, run, finish, release; each call may be slow, its reply lost, or itself applied late."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from oneturn.testing.model import leases, records
from oneturn.testing.model.records import NONE, Answer
from oneturn.testing.model.services import serve
from oneturn.testing.model.state import (
    ACQUIRE,
    CLAIM,
    FINISH,
    LOOK,
    OVER,
    RELEASE,
    RUN,
    Attempt,
    Call,
    Configuration,
    Message,
    Move,
    Moves,
    State,
    drop_attempt,
    fresh_owner,
    put_attempt,
)
from oneturn.testing.model.switches import Switch

Hear = Callable[[State, Attempt, Answer, int], State]
"""(state, attempt, answer, when it was asked) → what the process makes of it."""
SLOW: Final = frozenset({"acquire", "claim", "start", "renew", "regrant", "touch"})


class Turn:
    """The moves of the attempts that are under way."""

    def __init__(self, bounds: Configuration, wrong: Switch | None) -> None:
        self._bounds = bounds
        self._wrong = wrong

    def moves(self, state: State) -> Moves:
        """What any of them may do next."""
        for attempt in state.attempts:
            match attempt.phase:
                case "acquire":
                    yield from self.call("acquire", state, attempt, self._acquired)
                    yield from self._cancel(state, attempt)
                case "claim":
                    op = "start" if attempt.starting else "claim"
                    first = state.now if attempt.asked_at == NONE else attempt.asked_at
                    attempt = attempt._replace(asked_at=first)  # noqa: PLW2901 - the same attempt, a moment later
                    yield from self.call(op, state, attempt, self._preceded)
                case "look":
                    yield self._look(state, attempt)
                case "run":
                    yield from self._run(state, attempt)
                case "finish":
                    yield from self._finish(state, attempt)
                case "release":
                    yield from self.call("release", state, attempt, self._released)

    # -- calls --------------------------------------------------------------------------------------------------------

    def call(self, op: str, state: State, attempt: Attempt, hear: Hear, slot: str = "call") -> Moves:
        """Send, apply and hear a call, in one step or, where it is slow, in three; or lose it on the way."""
        call: Call | None = getattr(attempt, slot)
        who = (attempt.owner, attempt.request)
        if call is None and self._bounds.slow and op in SLOW:
            sent = attempt._replace(**{slot: Call(op, state.now)})  # type: ignore[arg-type]
            yield Move(("send", op, *who), put_attempt(state, sent))
            return
        if call is not None and call.answer:
            open_again = attempt._replace(**{slot: None})  # type: ignore[arg-type]
            answer = Answer(call.answer, call.about, attempt.token if op == "acquire" else call.about)
            yield Move(("hear", op, *who, call.answer), hear(state, open_again, answer, call.asked_at))
            if state.budget.losses:
                yield Move(("lose reply", op, *who), self._unknown(_lose(state), open_again, op))
            return
        after, answer = serve(op, state, attempt, self._bounds, self._wrong)
        open_again = attempt._replace(**{slot: None})  # type: ignore[arg-type]
        if call is None:
            yield Move((op, *who, answer.word), hear(after, open_again, answer, state.now))
            if state.budget.losses:
                yield Move((op, *who, answer.word, "reply lost"), self._unknown(_lose(after), open_again, op))
        else:
            about = answer.value if answer.word == records.CLAIMED else answer.about
            applied = call._replace(answer=answer.word, about=about)
            put = attempt._replace(token=answer.value) if op == "acquire" else attempt
            yield Move(("apply", op, *who, answer.word), put_attempt(after, put._replace(**{slot: applied})))  # type: ignore[arg-type]
            if state.budget.losses:
                yield Move(("lose", op, *who), self._unknown(_lose(state), open_again, op))
        if state.budget.lates:
            late = _late(state, Message(op, _bare(attempt)))
            yield Move(("give up", op, *who), self._unknown(late, open_again, op))

    def _unknown(self, state: State, attempt: Attempt, op: str) -> State:
        """Nobody answered: the same owner asks again, until it is told the truth."""
        if op == "acquire" and self._wrong is Switch.NEW_OWNER:
            return put_attempt(drop_attempt(state, attempt), attempt._replace(owner=fresh_owner(state)))
        if op == "finish" and self._wrong is Switch.UNKNOWN_IS_FAILURE:
            return put_attempt(tell(state, attempt.request, "failed"), attempt._replace(phase=RELEASE))
        return put_attempt(state, attempt)

    # -- acquire ------------------------------------------------------------------------------------------------------

    def _acquired(self, state: State, attempt: Attempt, answer: Answer, asked_at: int) -> State:
        if answer.word == leases.HELD:
            # The same request is being admitted, or runs: its client looks again later.
            if self._wrong is Switch.ATTACH_WITHOUT_RECORD and not state.told[attempt.request]:
                state = tell(state, attempt.request, "admitted")
            return drop_attempt(state, attempt)
        keys = (attempt.request, self._bounds.requests)[: answer.about]
        until = self.deadline(state, asked_at)
        read = len(state.scope.answers) if self._wrong is Switch.CONTEXT_BEFORE_LOCK else NONE
        token = answer.value if self._wrong is Switch.LOCK_SERVICE_FENCE else 0
        held = attempt._replace(keys=keys, until=until if until > state.now else 0, read=read, token=token)
        # A cancelled acquire is released once its outcome is known, not before.
        return put_attempt(state, held._replace(phase=RELEASE if attempt.cancelled else CLAIM))

    def deadline(self, state: State, asked_at: int) -> int:
        """Counted from before the request left."""
        return (state.now if self._wrong is Switch.DEADLINE_FROM_REPLY else asked_at) + self._bounds.ttl

    def _cancel(self, state: State, attempt: Attempt) -> Moves:
        if not state.budget.cancels or attempt.call is None or attempt.cancelled or attempt.starting:
            return
        state = state._replace(budget=state.budget._replace(cancels=state.budget.cancels - 1))
        if self._wrong is Switch.DEL_OVERTAKES_SET:
            wanted = attempt._replace(keys=(attempt.request, self._bounds.requests))
            after, _ = serve("release", state, wanted, self._bounds, self._wrong)
            if not attempt.call.answer:
                after = _post(after, Message("acquire", _bare(attempt)))
            yield Move(("cancel", attempt.owner, attempt.request), drop_attempt(after, attempt))
        else:
            after = put_attempt(state, attempt._replace(cancelled=True))
            yield Move(("cancel", attempt.owner, attempt.request), after)

    # -- claim and start ----------------------------------------------------------------------------------------------

    def _preceded(self, state: State, attempt: Attempt, answer: Answer, asked_at: int) -> State:
        del asked_at  # a step that was repeated counts from its first sending
        match answer.word:
            case "lapsed":
                return put_attempt(state, attempt._replace(phase=LOOK, dead=NONE, alive=NONE))
            case "claimed":
                return self._begun(tell(state, attempt.request, "admitted"), attempt, answer.value)
            case "enqueued" | "existing":
                state = tell(state, attempt.request, _truth(state, attempt.request))
        return put_attempt(state, attempt._replace(phase=RELEASE))

    def _begun(self, state: State, attempt: Attempt, epoch: int) -> State:
        begun = self.extend(state, attempt, attempt.asked_at)._replace(epoch=epoch, beats=self._bounds.beats)
        begun = begun._replace(asked_at=NONE, dead=NONE, alive=NONE, read=NONE, token=0)
        if not begun.until and self._wrong is not Switch.LATE_ENTRY:
            return put_attempt(state, begun._replace(phase=FINISH, status=records.STOPPED))
        entered = tuple(n + (request == attempt.request) for request, n in enumerate(state.entered))
        return put_attempt(state._replace(entered=entered), begun._replace(phase=RUN, entered=True))

    def extend(self, state: State, attempt: Attempt, asked_at: int) -> Attempt:
        """A voucher was answered. Late, it revives nothing."""
        if not attempt.until and self._wrong is not Switch.LOST_REVIVED:
            return attempt
        until = max(attempt.until, self.deadline(state, asked_at))
        return attempt._replace(until=until if until > state.now else 0)

    def _look(self, state: State, attempt: Attempt) -> Move:
        """A record's time has passed: whether its request key is held says what to claim with."""
        number = state.scope.running()
        if number == NONE:
            return Move(("look", attempt.owner, "nobody"), put_attempt(state, attempt._replace(phase=CLAIM)))
        if held_for(state, number):
            seen, word = attempt._replace(alive=number), "held"
        else:
            seen, word = attempt._replace(dead=number), "free"
        return Move(("look", attempt.owner, number, word), put_attempt(state, seen._replace(phase=CLAIM)))

    # -- running ------------------------------------------------------------------------------------------------------

    def _run(self, state: State, attempt: Attempt) -> Moves:
        row = state.scope.rows[attempt.request]
        if self._bounds.events and row is not None and row.last_seq <= self._bounds.events:
            after, answer = serve("append", state, attempt, self._bounds, self._wrong)
            if answer.word == records.GONE:
                after = put_attempt(after, attempt._replace(until=0))
            yield Move(("append", attempt.owner, attempt.request, answer.word), after)
        if self._bounds.writes and self._may_write(state, attempt):
            yield Move(("write", attempt.owner, attempt.request), state, (attempt.request, attempt.epoch))
        for status in (records.SUCCEEDED,) if attempt.until else (records.SUCCEEDED, records.STOPPED):
            after = put_attempt(state, attempt._replace(phase=FINISH, status=status))
            yield Move(("end", attempt.owner, attempt.request, status), after)

    def _may_write(self, state: State, attempt: Attempt) -> bool:
        if self._wrong is Switch.STALE_WRITER:
            return attempt.until > 0
        return records.fenced(state.scope, attempt.request, attempt.epoch)

    def _finish(self, state: State, attempt: Attempt) -> Moves:
        if self._wrong is Switch.CHECK_THEN_COMMIT and not attempt.checked:
            if records.fenced(state.scope, attempt.request, attempt.epoch):
                yield Move(("check", attempt.owner), put_attempt(state, attempt._replace(checked=True)))
            else:
                yield Move(("check", attempt.owner, "gone"), put_attempt(state, attempt._replace(phase=RELEASE)))
            return
        yield from self.call("finish", state, attempt, self._finished)

    def _finished(self, state: State, attempt: Attempt, answer: Answer, asked_at: int) -> State:
        del asked_at, answer
        # Whoever ended it: clients are told what the record says.
        state = tell(state, attempt.request, _truth(state, attempt.request))
        return put_attempt(state, attempt._replace(phase=RELEASE))

    def _released(self, state: State, attempt: Attempt, answer: Answer, asked_at: int) -> State:
        del asked_at, answer
        if attempt.beat is None:
            return drop_attempt(state, attempt)
        return put_attempt(state, attempt._replace(phase=OVER, until=0))


def held_for(state: State, number: int) -> bool:
    """Whether the lock service vouches for a running record: its request key is its owner's."""
    key, row = state.keys[number], state.scope.rows[number]
    return key is not None and row is not None and key.owner == row.owner


def tell(state: State, request: int, word: str) -> State:
    """The clients of a request are told."""
    return state._replace(told=(*state.told[:request], word, *state.told[request + 1 :]))


def _truth(state: State, request: int) -> str:
    row = state.scope.rows[request]
    return "admitted" if row is None or row.status in records.OPEN else row.status


def _lose(state: State) -> State:
    return state._replace(budget=state.budget._replace(losses=state.budget.losses - 1))


def _late(state: State, message: Message) -> State:
    return _post(state._replace(budget=state.budget._replace(lates=state.budget.lates - 1)), message)


def _post(state: State, message: Message) -> State:
    net = sorted([*state.net, message], key=lambda one: (one.op, one.attempt.owner))
    return state._replace(net=tuple(net))


def _bare(attempt: Attempt) -> Attempt:
    """What of an attempt its request carries."""
    return attempt._replace(phase=ACQUIRE, until=0, beats=0, call=None, beat=None, entered=False, cancelled=False)
