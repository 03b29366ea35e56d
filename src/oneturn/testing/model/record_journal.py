"""The record store's journal: each step is walked again in the model, beside what the store answered."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from oneturn.core.event import stop_body
from oneturn.core.identity import Identity
from oneturn.core.record import Record
from oneturn.core.status import Status
from oneturn.core.steps import (
    Abandon,
    Append,
    Appended,
    Busy,
    Claim,
    Claimed,
    Ended,
    Enqueued,
    Existing,
    Finish,
    Full,
    Gone,
    Lapsed,
    NotRegenerable,
    Requeued,
    Start,
    Stop,
    Swept,
    Vouch,
)
from oneturn.testing.model import records
from oneturn.testing.model.records import NONE, Answer, Ask, Moment, Outcome, Row, Scope

Name = tuple[str, str]
"""(tenant, scope)."""
Walk = Callable[[Scope, bool | None], Outcome]
"""A step of the model, in a scope, with what the clock is taken to say."""
WORDS = {
    Claimed: records.CLAIMED,
    Enqueued: records.ENQUEUED,
    Existing: records.EXISTING,
    Busy: records.BUSY,
    Lapsed: records.LAPSED,
    Full: records.FULL,
    Gone: records.GONE,
    Ended: records.ENDED,
    Requeued: records.REQUEUED,
    Appended: records.APPENDED,
}


class RecordJournal:
    """What the model knows of a record store after the steps so far."""

    def __init__(self, *, clock_may_jump: bool, slack: float) -> None:
        self._jumps = clock_may_jump
        self._slack = slack
        self._scopes: dict[Name, Scope] = {}
        self._others: dict[Name, tuple[Scope, ...]] = {}
        """How it may stand instead, where a clock that was set leaves that open."""
        self._numbers: dict[Identity, int] = {}
        self._ids: dict[tuple[str, str], tuple[Name, int]] = {}
        """(tenant, id) → where it is."""
        self._faded: set[Name] = set()
        """Scopes of which retention has taken something: what is final there may be a tombstone, or gone."""
        self._broken: set[Name] = set()
        self._offset = 0.0
        """The store's clock minus that of the steps."""

    def judge(self, method: str, time: float, asked: Any, answer: Any) -> str | None:
        """Walk one step; what the model does not allow of its answer, or None."""
        match asked:
            case Claim():
                return self._claimed(method, asked, time, answer)
            case Start(tenant=tenant, id=name) | Append(tenant=tenant, id=name) | Finish(tenant=tenant, id=name):
                return self._of(tenant, name, asked, time, answer)
            case Stop(tenant=tenant, id=name) | Abandon(tenant=tenant, id=name) | Vouch(tenant=tenant, id=name):
                return self._of(tenant, name, asked, time, answer)
        if method == "erase":
            self._erased((asked["tenant"], asked["scope"]))
        elif isinstance(answer, Swept) and answer.results + answer.tombstones:
            self._faded.update(self._scopes)
        return None

    # -- claim --------------------------------------------------------------------------------------------------------

    def _claimed(self, method: str, asked: Claim, time: float, answer: Any) -> str | None:
        identity = asked.identity
        name = (identity.tenant, identity.scope)
        scope = self._scopes.setdefault(name, Scope(()))
        number = self._numbers.setdefault(identity, len(scope.rows))
        if number == len(scope.rows):
            self._scopes[name] = scope = scope._replace(rows=(*scope.rows, None))
            self._others[name] = tuple(o._replace(rows=(*o.rows, None)) for o in self._others.get(name, ()))
        if name in self._broken:
            if isinstance(answer, Claimed | Enqueued):
                self._ids[identity.tenant, answer.record.id] = (name, number)
            return None
        known = scope.rows[number] is not None
        target = self._target(asked)
        if asked.regenerate is not None and isinstance(answer, NotRegenerable):
            return (
                f"{asked.id} was refused as not regenerable, and is known" if known and not self._fades(name) else None
            )
        if asked.regenerate is not None and target is None and not known:
            return f"{asked.id} regenerates {asked.regenerate}, which cannot be: {_short(answer)}"
        ask = Ask(
            number,
            asked.owner,
            dead=self._number(name, asked.dead),
            alive=self._number(name, asked.alive),
            reject=asked.on_busy == "reject",
            queue_limit=asked.queue_limit,
            rerun=asked.recovery == "rerun",
            sequence=target.sequence if target else None,
            again=self._ids.get((identity.tenant, asked.id)) == (name, number),
        )
        take = records.enqueue if method == "enqueue" else records.claim
        said = self._walk(
            name, time, answer, lambda scope, lapses: take(scope, ask, Moment(time, asked.ttl, lapses)), asked.id
        )
        if said is None and isinstance(answer, Claimed):
            self._offset = answer.record.alive_until - self._rows(name)[number].alive_until
        return said

    def _target(self, asked: Claim) -> Row | None:
        """The turn that is asked again, if it is one that may be."""
        name, number = self._ids.get((asked.identity.tenant, asked.regenerate or ""), (("", ""), NONE))
        row = self._scopes[name].rows[number] if number != NONE else None
        ours = name == (asked.identity.tenant, asked.identity.scope)
        return row if ours and row is not None and row.status not in records.OPEN else None

    # -- steps on one record ------------------------------------------------------------------------------------------

    def _of(self, tenant: str, execution: str, asked: Any, time: float, answer: Any) -> str | None:
        place = self._ids.get((tenant, execution))
        if place is None:
            unknown = isinstance(answer, Gone) and answer.record is None
            if isinstance(asked, Vouch):
                unknown = isinstance(answer, Record) and answer.status is Status.ABANDONED
            return None if unknown else f"{execution} does not exist, and the answer was {_short(answer)}"
        name, number = place
        return self._walk(name, time, answer, self._step(name, number, asked, time), execution)

    def _step(self, name: Name, number: int, asked: Any, time: float) -> Walk:
        match asked:
            case Start():
                ask = Ask(
                    number, asked.owner, dead=self._number(name, asked.dead), alive=self._number(name, asked.alive)
                )
                return lambda scope, lapses: records.start(scope, ask, Moment(time, asked.ttl, lapses))
            case Append():
                count = len(asked.events)
                return lambda scope, _: records.append(scope, number, epoch=asked.epoch, after=asked.after, count=count)
            case Finish():
                return lambda scope, _: records.finish(
                    scope,
                    number,
                    epoch=asked.epoch,
                    status=asked.status.value,
                    body=asked.body,
                    after=asked.after,
                    count=len(asked.events),
                )
            case Stop():
                return lambda scope, _: records.stop(scope, number, body=stop_body(asked.reason))
            case Abandon():
                return lambda scope, lapses: self._abandon(scope, number, asked, Moment(time, 0.0, lapses))
            case _:
                at = Moment(time, asked.ttl)
                return lambda scope, _: records.touch(scope, number, epoch=asked.epoch, at=at)

    def _abandon(self, scope: Scope, number: int, asked: Abandon, at: Moment) -> Outcome:
        row = scope.rows[number]
        seen = asked.alive_until - self._offset
        # A jump makes vouchers of one clock incomparable with those of the other: then only the rest is judged.
        unchanged = row is not None and (abs(seen - row.alive_until) <= self._slack or at.lapses is True)
        alive_until = row.alive_until if row is not None and unchanged else seen
        return records.abandon(scope, number, epoch=asked.epoch, alive_until=alive_until, at=at)

    # -- walking ------------------------------------------------------------------------------------------------------

    def _walk(self, name: Name, time: float, answer: Any, step: Walk, execution: str) -> str | None:
        """Take the step wherever the scope may stand; the first outcome that fits the answer is where it stands now."""
        if name in self._broken:
            return None
        expected, fits = "", list[tuple[Scope, Answer]]()
        for scope in (*self._variants(name), *self._others.pop(name, ())):
            for lapses in self._lapses(scope, time):
                after, outcome = step(scope, lapses)
                misfit = self._misfit(name, after, outcome, answer, execution)
                if misfit is None:
                    fits.append((after, outcome))
                expected = expected or misfit or ""
            if fits and not self._jumps:
                break
        if not fits:
            self._broken.add(name)
            return f"{execution}: {expected}; the answer was {_short(answer)}"
        self._stand(name, *fits[0], execution)
        if self._jumps:
            # "Enqueued" does not say whether a dead one was ended by the way, and no clock can be asked: what follows tells.
            others = {scope: None for scope, _ in fits if scope != self._scopes[name]}
            self._others[name] = tuple(others)[:3]
        return None

    def _variants(self, name: Name) -> Iterator[Scope]:
        scope = self._scopes[name]
        yield scope
        if self._fades(name):
            final = [number for number, row in enumerate(scope.rows) if row and row.status not in records.OPEN]
            yield scope._replace(
                rows=tuple(row._replace(body=b"") if row and n in final else row for n, row in enumerate(scope.rows))
            )
            yield scope._replace(rows=tuple(None if n in final else row for n, row in enumerate(scope.rows)))

    def _lapses(self, scope: Scope, time: float) -> tuple[bool | None, ...]:
        number = scope.running()
        row = scope.rows[number] if number != NONE else None
        unsure = row is not None and 0 < abs(row.alive_until - time) <= self._slack
        return (None, True, False) if self._jumps or unsure else (None,)

    def _stand(self, name: Name, scope: Scope, outcome: Answer, execution: str) -> None:
        kept = self._scopes[name]
        rows = tuple(new if new is not None else old for old, new in zip(kept.rows, scope.rows, strict=True))
        self._scopes[name] = scope._replace(rows=rows)
        if outcome.word in {records.CLAIMED, records.ENQUEUED}:
            if self._fades(name):  # it may stand where a deleted one of its name has stood
                self._ids = {known: place for known, place in self._ids.items() if place != (name, outcome.about)}
            self._ids[name[0], execution] = (name, outcome.about)

    def _misfit(self, name: Name, scope: Scope, outcome: Answer, answer: Any, execution: str) -> str | None:
        """What of the answer is not what the model says."""
        if _word(answer) != outcome.word:
            return f"the model answers {outcome.word}"
        value = _value(answer)
        if value is not None and value != outcome.value:
            return f"the model answers {outcome.word} {outcome.value}"
        row = scope.rows[outcome.about] if outcome.about != NONE else None
        record = answer if isinstance(answer, Record) else getattr(answer, "record", None)
        if isinstance(answer, Appended | Full) or answer is None:
            return None
        about = None if record is None else self._ids.get((name[0], record.id))
        # A new record has its place only once the step is taken.
        fresh = outcome.word in {records.CLAIMED, records.ENQUEUED} and record is not None and record.id == execution
        if record is not None and row is not None and about != (name, outcome.about) and not fresh:
            return f"the model answers with record {outcome.about}, not {record.id}"
        return _differs(record, row, nobody=record is answer)

    def _erased(self, name: Name) -> None:
        scope = self._scopes.get(name)
        if scope is not None:
            emptied = [row._replace(body=b"") if row and row.status not in records.OPEN else row for row in scope.rows]
            self._scopes[name] = scope._replace(rows=tuple(emptied))

    def _fades(self, name: Name) -> bool:
        return name in self._faded

    def _number(self, name: Name, execution: str | None) -> int:
        at, number = self._ids.get((name[0], execution or ""), (name, NONE))
        return number if at == name else NONE

    def _rows(self, name: Name) -> list[Row]:
        return [row or Row("", 0) for row in self._scopes[name].rows]


def _differs(record: Record | None, row: Row | None, *, nobody: bool) -> str | None:
    """What of a record is not as the model has it. `nobody`: an abandoned one may stand for one that does not exist."""
    if record is None or row is None:
        unknown = row is None and (record is None or (nobody and record.status is Status.ABANDONED))
        return None if unknown else f"the model has {row}"
    seen, meant = _facts(record), _facts_of(row)
    return None if seen == meant else f"the record is {meant} in the model, and was {seen}"


def _word(answer: Any) -> str:
    if answer is None:
        return records.VOUCHED
    return records.GONE if isinstance(answer, Record) else WORDS.get(type(answer), type(answer).__name__)


def _value(answer: Any) -> int | None:
    """The number that the answer says, if it says one."""
    match answer:
        case Enqueued(position=number) | Full(limit=number) | Appended(last_seq=number):
            return number
        case Ended(here=here):
            return int(here)
        case _:
            return None


def _facts(record: Record) -> dict[str, object]:
    return {
        "status": record.status.value,
        "epoch": record.epoch or 0,
        "attempts": record.attempt,
        "last_seq": record.last_seq,
        "sequence": record.sequence,
        "owner": record.owner,
    }


def _facts_of(row: Row) -> dict[str, object]:
    return {field: getattr(row, field) for field in ("status", "epoch", "attempts", "last_seq", "sequence", "owner")}


def _short(answer: Any) -> str:
    record = answer if isinstance(answer, Record) else getattr(answer, "record", None)
    about = f" of {record.id} {_facts(record)}" if isinstance(record, Record) else ""
    value = _value(answer)
    return f"{_word(answer)}{'' if value is None else f' {value}'}{about}"
