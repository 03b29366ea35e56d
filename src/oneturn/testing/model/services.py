"""What happens where a call arrives: it is applied to the lock service or to the record store, in one step."""

from __future__ import annotations

from oneturn.testing.model import leases, records
from oneturn.testing.model.records import Answer, Ask, Moment
from oneturn.testing.model.state import REST, Attempt, Configuration, State
from oneturn.testing.model.switches import Switch

Served = tuple[State, Answer]


def serve(op: str, state: State, attempt: Attempt, bounds: Configuration, wrong: Switch | None) -> Served:
    """Apply a call of this attempt; the state after it and the answer, whether or not anybody hears it."""
    match op:
        case "acquire" | "regrant":
            return _acquire(op, state, attempt, bounds, wrong)
        case "renew":
            keys, word = leases.renew(
                state.keys, attempt.keys, owner=attempt.owner, until=state.now + bounds.ttl, wrong=wrong
            )
            return state._replace(keys=keys), Answer(word)
        case "release":
            keys, _ = leases.release(state.keys, attempt.keys, owner=attempt.owner, wrong=wrong)
            return state._replace(keys=keys), Answer("released")
        case "claim" | "start":
            return _precede(op, state, attempt, bounds, wrong)
        case "touch":
            at = Moment(state.now, bounds.ttl)
            scope, answer = records.touch(state.scope, attempt.request, epoch=attempt.epoch, at=at)
        case "append":
            row = state.scope.rows[attempt.request]
            after = row.last_seq if row else 0
            scope, answer = records.append(
                state.scope, attempt.request, epoch=attempt.epoch, after=after, count=1, wrong=wrong
            )
        case _:
            scope, answer = records.finish(
                state.scope, attempt.request, epoch=attempt.epoch, status=attempt.status, wrong=wrong
            )
    return state._replace(scope=scope), answer


def _acquire(op: str, state: State, attempt: Attempt, bounds: Configuration, wrong: Switch | None) -> Served:
    until = state.now + bounds.ttl
    wanted = attempt.keys if op == "regrant" else (attempt.request, bounds.requests)
    keys, refused = leases.acquire(state.keys, wanted, owner=attempt.owner, until=until)
    if refused == bounds.requests and op == "acquire":
        # Precedence is somebody else's, and busy is a fact of the record: go on with the request key alone.
        wanted = wanted[:1]
        keys, refused = leases.acquire(state.keys, wanted, owner=attempt.owner, until=until)
    if refused is not None:
        return state, Answer(leases.HELD, refused)
    token = state.token + 1 if wrong is Switch.LOCK_SERVICE_FENCE else 0
    return state._replace(keys=keys, token=token), Answer(leases.GRANTED, len(wanted), token)


def _precede(op: str, state: State, attempt: Attempt, bounds: Configuration, wrong: Switch | None) -> Served:
    ask = Ask(
        attempt.request,
        attempt.owner,
        dead=attempt.dead,
        alive=attempt.alive,
        reject=bounds.reject,
        rerun=bounds.rerun[attempt.request],
        token=attempt.token,
        read=attempt.read,
    )
    step = records.claim if op == "claim" else records.start
    scope, answer = step(state.scope, ask, Moment(state.now, bounds.ttl), wrong)
    if answer.word == records.CLAIMED:
        answer = answer._replace(value=scope.rows[attempt.request].epoch)  # type: ignore[union-attr] # it runs
    return state._replace(scope=scope), answer


def tick(state: State) -> State:
    """One unit of time passes: keys lapse, and deadlines. LOST is 0, and stays so."""
    return _at(state, state.now + 1)


def rest(state: State) -> State:
    """So much time passes that everything has lapsed; nothing goes wrong any more, and no client asks."""
    return _at(state, REST)._replace(budget=state.budget._replace(asks=(0,) * len(state.told), stops=0, cancels=0))


def _at(state: State, now: int) -> State:
    attempts = tuple(attempt._replace(until=0) if 0 < attempt.until <= now else attempt for attempt in state.attempts)
    return state._replace(now=now, keys=leases.lapse(state.keys, now=now), attempts=attempts)
