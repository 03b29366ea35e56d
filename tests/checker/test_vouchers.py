"""I3, what lives is vouched for: what holds is silent, what breaks is named."""

from __future__ import annotations

import pytest

from checker.build import Script, final, record
from oneturn.core.record import Record
from oneturn.core.status import Status
from oneturn.core.steps import Due, Finish, Gone


def finish_of(of: Record) -> Finish:
    return Finish(tenant="a", id=of.id, epoch=of.epoch or 0, status=Status.SUCCEEDED, body=b"1", after=1)


def _lapsed(script: Script, *, at: float) -> None:
    for second in range(5):
        script.step("due", None, Due(startable=(), lapsed=()), at=at - 5 + second)
    script.step("due", None, Due(startable=(), lapsed=(record(remaining=-11.0),)), at=at)


def _running(*, cared_for: bool = True) -> Script:
    script, one = Script(), record()
    script.claim(one, at=10)
    if cared_for:
        script.touch(one, at=12)
    return script


def test_what_its_process_runs_does_not_lapse() -> None:
    script = _running()
    assert script.broken() == set()
    _lapsed(script, at=30)
    assert script.broken() == {"I3"}


def test_who_could_not_speak_with_the_store_is_excused() -> None:
    script = _running()
    script.step("due", None, Due(startable=(), lapsed=(record(remaining=-11.0),)), at=30)
    assert script.broken() == set()


def test_a_right_that_nobody_heard_of_lapses() -> None:
    script = _running(cared_for=False)
    _lapsed(script, at=30)
    assert script.broken() == set()


@pytest.mark.parametrize(
    ("kind", "target", "until", "expected"),
    [
        ("kill", "h1", 15, set()),
        ("kill", "h2", 15, {"I3"}),
        ("drain", "h1", 15, {"I16"}),  # it should have ended it
        ("pause", "h1", 25, set()),
        ("pause", "h1", 17, {"I3"}),
        ("outage", "records", 25, set()),
        ("outage", "leases", 25, {"I3"}),
        ("network", "all", 25, {"I3"}),  # it could speak of it
        ("outage", "records", 17, {"I3"}),
    ],
)
def test_so_does_what_something_has_happened_to(kind: str, target: str, until: float, expected: set[str]) -> None:
    script = _running()
    script.incident(kind, target, 14, until)
    _lapsed(script, at=30)
    assert script.broken() == expected


def _abandoned(script: Script) -> Script:
    one = record()
    last = final(one, "abandoned")
    script.abandon(one, last, at=30)
    script.evidence.finals = {one.id: last}
    return script


def test_a_living_process_tries_to_end_what_it_ran() -> None:
    script = _abandoned(_running())
    assert script.broken() == {"I3"}
    script.step("finish", finish_of(record()), Gone(record=script.evidence.finals["t1"].record))
    assert script.broken() == set()


@pytest.mark.parametrize(("kind", "expected"), [("kill", set()), ("pause", {"I3"})])
def test_a_dead_one_does_not(kind: str, expected: set[str]) -> None:
    script = _running()
    script.incident(kind, "h1", 14)
    assert _abandoned(script).broken() == expected


def test_nor_does_one_that_never_heard_of_it() -> None:
    assert _abandoned(_running(cared_for=False)).broken() == set()


def _given_up(*looks: float, at: float, host: str = "h2") -> set[str]:
    """Seen lapsed by h2 at these times, and given up by `host`; its own process was killed before."""
    script, one = Script(), record(alive_until=0.0, remaining=-1.0)
    script.claim(one, at=1)
    script.incident("kill", "h1", 1.5)
    for look in looks:
        script.step("due", None, Due(startable=(), lapsed=(one,)), host="h2", at=look)
    script.step("due", None, Due(startable=(), lapsed=()), host="h3", at=max(looks) + 0.01)
    last = final(one, "abandoned")
    script.abandon(one, last, host=host, at=at)
    script.evidence.finals = {one.id: last}
    return script.broken()


def test_a_sweeper_looks_twice() -> None:
    """A renewal and the margin apart: 4 s here."""
    assert _given_up(12, 16, at=16.1) == set()
    assert _given_up(12, 14, at=14.1) == {"I3"}
    assert _given_up(16, at=16.1) == {"I3"}


def test_a_look_of_another_sweeper_does_not_count() -> None:
    assert _given_up(12, at=16.1, host="h3") == {"I3"}
