"""What was said: I5 and I12 of the work's own words, from where they were emitted, and of a claim that repeats itself (I11)."""

from __future__ import annotations

import json
from collections.abc import Iterator

from oneturn.core.event import RESTARTED, SNAPSHOT, STARTED, TEXT, Logged
from oneturn.core.status import Status
from oneturn.core.steps import Append, Appended, Claim, Ended, Existing, Finish
from oneturn.testing.checker.view import View
from oneturn.testing.evidence import Violation


def heard(view: View) -> Iterator[Violation]:
    """I5: what is logged of an attempt's text is a beginning of what its work has said; all of it, if it has succeeded.

    Work that was told to stop may have said a last piece that was not taken down: so only what succeeded is held to all.
    """
    for said in view.evidence.said:
        last = view.finals.get(said.turn)
        if last is None or last.record.epoch != said.epoch or last.record.expired or _folded(last.events):
            continue
        spoken, logged = "".join(said.texts), _text(last.events)
        if last.record.status is Status.SUCCEEDED and logged != spoken:
            yield Violation(invariant="I5", what=f"{said.turn} has said {spoken!r}, and its log says {logged!r}")


def flushed(view: View) -> Iterator[Violation]:
    """I12: what a flush has vouched for was durable when it answered."""
    waiting = {(said.turn, said.epoch): said.flushed for said in view.evidence.said if said.flushed}
    if not waiting:
        return
    logged: dict[tuple[str, int], list[tuple[int, int]]] = {key: [] for key in waiting}
    for step in view.evidence.steps:
        asked, answer = step.asked, step.answer
        if isinstance(asked, Append | Finish) and (asked.id, asked.epoch) in logged:
            last = answer.last_seq if isinstance(answer, Appended) else _last_seq(answer)
            logged[asked.id, asked.epoch].append((step.seq, last))
    for (turn, epoch), flushes in waiting.items():
        attempt = view.ledger.attempts.get((turn, epoch))
        granted = attempt.record.last_seq if attempt is not None else 0
        for number, seen in flushes:
            durable = max((last for seq, last in logged[turn, epoch] if seq <= seen), default=granted)
            if durable < number:
                what = f"a flush of {turn} vouched for event {number} when {durable} were logged"
                yield Violation(invariant="I12", what=what)


def its_own(view: View) -> Iterator[Violation]:
    """I11: whoever asks again as it has asked is told what it was given: not that somebody else has it."""
    for step in view.evidence.steps:
        asked, answer = step.asked, step.answer
        if not isinstance(asked, Claim) or not isinstance(answer, Existing) or answer.record.id != asked.id:
            continue
        record = answer.record
        attempt = view.ledger.attempts.get((record.id, record.epoch or 0))
        claimed_by_this = attempt is not None and attempt.granted.method == "claim"
        if record.status is Status.RUNNING and claimed_by_this and record.owner != asked.owner:
            what = (
                f"step {step.seq} claimed {asked.id} again as another owner: nobody runs what the first one was given"
            )
            yield Violation(invariant="I11", what=what)


def _last_seq(answer: object) -> int:
    return answer.record.last_seq if isinstance(answer, Ended) else 0


def _folded(events: tuple[Logged, ...]) -> bool:
    return any(event.kind == SNAPSHOT for event in events)


def _text(events: tuple[Logged, ...]) -> str:
    text = ""
    for event in events:
        if event.kind in (STARTED, RESTARTED):
            text = ""
        elif event.kind == TEXT:
            text += json.loads(event.data)["delta"]
    return text


RULES = (heard, flushed, its_own)
