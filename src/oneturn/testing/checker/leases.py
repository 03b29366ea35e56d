"""Leases: I10, who holds which key, and who believes to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from oneturn.core.lease import Grant, Renewal
from oneturn.testing.checker.view import View
from oneturn.testing.evidence import Step, Violation


def own_keys_only(view: View) -> Iterator[Violation]:
    """A step changes only keys that are its owner's, or free: renewal all of a grant or none, release what is its own."""
    for step in view.evidence.steps:
        if step.port != "leases":
            continue
        match step.method:
            case "acquire":
                wrong = _acquired(step)
            case "renew":
                wrong = _renewed(step)
            case "release":
                wrong = _released(step)
            case "inspect":
                wrong = "changed a key" if step.before != step.after else ""
            case _:
                wrong = ""
        if wrong:
            yield Violation(invariant="I10", what=f"step {step.seq} (leases.{step.method}) of {step.host} {wrong}")


def _acquired(step: Step) -> str:
    if not isinstance(step.answer, Grant):
        return "took a key and was refused" if step.before != step.after else ""
    owner, before, after = step.answer.owner, step.before, step.after
    keys: Sequence[str] = step.asked if step.asked is not None else step.named["keys"]
    for key in keys:
        if before.get(key, owner) != owner:
            return f"took {key} from {before[key]}"
        if after.get(key) != owner:
            return f"was granted {key}, which {after.get(key)} holds"
    return ""


def _renewed(step: Step) -> str:
    if step.before != step.after:
        return f"made {dict(step.after)} of {dict(step.before)}"
    for grant, answer in zip(step.asked, step.answer, strict=True):
        if answer is Renewal.KEPT and any(step.before.get(key) != grant.owner for key in grant.keys):
            return f"renewed {grant.keys} of {grant.owner}, held were {dict(step.before)}"
    return ""


def _released(step: Step) -> str:
    grant = step.asked
    left = {key: owner for key, owner in step.before.items() if owner != grant.owner or key not in grant.keys}
    return f"made {dict(step.after)} of {dict(step.before)}" if step.after != left else ""


def beliefs(view: View) -> Iterator[Violation]:
    """Who believes that it may go on holds all its keys, while the lock service is healthy, or its record vouches for it.

    What was stopped from outside, or has finished, learns of it, or gives its keys back, a moment later, and its writes are
    refused meanwhile. What was ended as dead had no voucher left by then: whoever believes in it counts its time wrongly.
    """
    for belief in view.evidence.beliefs:
        lost = [key for key, holder in belief.keys.items() if holder != belief.owner]
        if not lost or belief.vouched > 0 or not view.healthy(belief.time):
            continue
        attempt = view.ledger.attempts.get((belief.turn, belief.epoch))
        ended = attempt.ended if attempt is not None and not (attempt.foreign and attempt.certain) else None
        if ended is not None and ended.seq < belief.step:
            continue
        holders = {key: belief.keys[key] or "nobody" for key in lost}
        what = f"{belief.host} believed in {belief.turn} at step {belief.step}, and held are its keys by {holders}"
        yield Violation(invariant="I10", what=what)


RULES = (own_keys_only, beliefs)
