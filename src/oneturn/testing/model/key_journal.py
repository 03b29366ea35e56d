"""The lock service's journal: each step is decided again in the model, from who held its keys before."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from oneturn.core.lease import Grant, Held
from oneturn.testing.evidence import Step
from oneturn.testing.model import leases
from oneturn.testing.model.leases import NOBODY, Key, Keys


class KeyJournal:
    """What the model knows of the keys after the steps so far."""

    def __init__(self, *, clock_may_jump: bool, keys_may_vanish: bool, slack: float) -> None:
        self._jumps = clock_may_jump
        self._vanish = keys_may_vanish
        self._slack = slack
        self._keys: dict[str, Key] = {}
        self._marks: dict[str, dict[Key, None]] = {}
        """Every mark that was set."""

    def judge(self, step: Step) -> Iterator[str]:
        """Walk one step; what the model does not allow of it."""
        names = _names(step)
        if not names:
            return
        yield from self._lives(step, names)
        before = self._before(step, names)
        said = {
            keys: self._misfit(step, names, keys) for keys in (before, *self._otherwise_marked(step, names, before))
        }
        fitting = [keys for keys, misfit in said.items() if misfit is None]
        if not fitting:
            yield from sorted({misfit for misfit in said.values() if misfit is not None})
        self._stand(step, names, fitting[0] if fitting else before)

    # -- what lives ---------------------------------------------------------------------------------------------------

    def _lives(self, step: Step, names: Sequence[str]) -> Iterator[str]:
        """Keys are held by whom the steps let in, until their time has passed, and not longer."""
        for name in names:
            known, holder = self._keys.get(name, Key(NOBODY, 0.0)), step.before.get(name, NOBODY)
            left = known.until - step.time if known.owner else 0.0
            if holder and holder != known.owner and not self._vanish:
                yield f"{name} is held by {holder}, whom no step let in"
            if holder and holder == known.owner and left < -self._slack and not self._jumps:
                yield f"{name} is held by {holder} {-left:g} seconds past its time"
            if not holder and known.owner and left > self._slack and not (self._jumps or self._vanish):
                yield f"{name} was lost to {known.owner} {left:g} seconds before its time"

    def _before(self, step: Step, names: Sequence[str]) -> Keys:
        keys: list[Key | None] = []
        for name in names:
            known, holder = self._keys.get(name), step.before.get(name, NOBODY)
            if holder:
                keys.append(Key(holder, known.until if known else step.time))
            elif known is not None and known.revoked_from and known.until > step.time:
                keys.append(known)
            else:
                keys.append(None)
        return tuple(keys)

    def _otherwise_marked(self, step: Step, names: Sequence[str], keys: Keys) -> Iterator[Keys]:
        """A mark goes as a key does, with the service's data or a jump of its clock, each by itself; and so it comes back."""
        if not (self._jumps or self._vanish):
            return
        choices = [
            (key,) if key is not None and key.owner else (None, *self._living_marks(name, step.time))
            for name, key in zip(names, keys, strict=True)
        ]
        yield from itertools.product(*choices)

    def _living_marks(self, name: str, time: float) -> list[Key]:
        return [mark for mark in self._marks.get(name, ()) if self._jumps or mark.until > time]

    # -- what is answered ---------------------------------------------------------------------------------------------

    def _misfit(self, step: Step, names: Sequence[str], keys: Keys) -> str | None:
        after, meant = _walk(step, names, keys)
        said = _said(step)
        if said != meant:
            return f"{step.method} of {', '.join(names)}: the model answers {meant}, the answer was {said}"
        holders = {name: key.owner for name, key in zip(names, after, strict=True) if key is not None and key.owner}
        seen = {name: holder for name, holder in step.after.items() if name in names}
        return None if seen == holders else f"{step.method}: then the model has {holders}, the store {seen}"

    def _stand(self, step: Step, names: Sequence[str], before: Keys) -> None:
        """Where the store says that it stands; how long, says the model."""
        after, _ = _walk(step, names, before)
        for name, key in zip(names, after, strict=True):
            holder = step.after.get(name, NOBODY)
            if key is not None and (holder or NOBODY) == key.owner:
                self._keys[name] = key
                if key.revoked_from:
                    self._marks.setdefault(name, {})[key] = None
            elif holder:
                self._keys[name] = Key(holder, step.time)
            else:
                self._keys.pop(name, None)


def _walk(step: Step, names: Sequence[str], keys: Keys) -> tuple[Keys, list[str]]:
    """The step in the model: the keys after it, and its answer in words."""
    place = {name: number for number, name in enumerate(names)}
    match step.method:
        case "acquire":
            owner, until = step.named["owner"], step.time + step.named["ttl"]
            keys, refused = leases.acquire(keys, tuple(range(len(names))), owner=owner, until=until)
            return keys, [leases.GRANTED if refused is None else f"held {names[refused]}"]
        case "renew":
            words = []
            for grant in step.asked:
                wanted = tuple(place[name] for name in grant.keys)
                keys, word = leases.renew(keys, wanted, owner=grant.owner, until=step.time + grant.ttl)
                words.append(word)
            return keys, words
        case "release":
            keys, all_ours = leases.release(keys, tuple(range(len(names))), owner=step.asked.owner)
            return keys, [str(all_ours)]
        case _:
            held = keys[0] is not None and keys[0].owner != NOBODY
            if held and keys[0] is not None:
                keys = (Key(NOBODY, step.time + step.named["mark_for"], keys[0].owner),)
            return keys, [str(held)]


def _names(step: Step) -> tuple[str, ...]:
    """The keys that a step is about; none for one that changes nothing."""
    asked: Any = step.asked
    match step.method:
        case "acquire":
            return tuple(asked)
        case "renew":
            return tuple(dict.fromkeys(name for grant in asked for name in grant.keys))
        case "release":
            return tuple(asked.keys)
        case "revoke":
            return (asked,)
        case _:
            return ()


def _said(step: Step) -> list[str]:
    match step.answer:
        case Grant():
            return [leases.GRANTED]
        case Held(key=name):
            return [f"held {name}"]
        case list():
            return [str(word) for word in step.answer]
        case _:
            return [str(step.answer)]
