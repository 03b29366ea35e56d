"""I14 and I16: what holds is silent, what breaks is named."""

from __future__ import annotations

from typing import Any

import pytest

from checker.build import BOUNDS, Script, broken, final, grant, record, text
from oneturn.core.lease import Renewal
from oneturn.testing.evidence import Evidence, Left


@pytest.mark.parametrize("what", ["key", "task", "thread", "subscription", "execution"])
@pytest.mark.parametrize(("when", "invariant"), [("idle", "I14"), ("closed", "I14"), ("drained", "I16")])
def test_nothing_is_left(what: Any, when: Any, invariant: str) -> None:
    assert broken(Evidence(bounds=BOUNDS)) == set()
    assert broken(Evidence(bounds=BOUNDS, left=[Left(what=what, name="x", where="h1", when=when)])) == {invariant}


def _orphaned(*, weather: str = "", target: str = "all", used: bool = False, looked: float = 22.0) -> set[str]:
    script, one = Script(left=[Left(what="key", name="k", where="owner of t1", when="idle")]), record()
    if weather:
        script.incident(weather, target, 15)
    script.step("acquire", ("k",), grant("k", owner=one.owner), port="leases", after={"k": one.owner}, at=20)
    if used:
        script.claim(one)
        script.finish(final(one))
    script.step("due", None, None, at=looked)
    return script.broken()


def test_a_grant_that_nobody_heard_of_lapses_by_itself() -> None:
    assert _orphaned() == {"I14"}
    assert _orphaned(weather="network") == set()
    assert _orphaned(weather="network", used=True) == {"I14"}
    assert _orphaned(weather="network", looked=100) == {"I14"}


def test_so_does_the_key_of_a_process_that_was_killed() -> None:
    assert _orphaned(weather="kill", target="h1", used=True) == set()
    assert _orphaned(weather="kill", target="h2", used=True) == {"I14"}


def _overtaken(*, weather: str = "") -> set[str]:
    script, one = Script(), grant("k", owner="o")
    if weather:
        script.incident(weather, "all", 0, 15)
    script.step("release", one, False, port="leases", at=20)
    script.step("acquire", ("k",), one, port="leases", after={"k": "o"})
    return script.broken()


def test_a_release_does_not_overtake_the_acquire_that_it_undoes() -> None:
    assert _overtaken() == {"I14"}
    assert _overtaken(weather="network") == set()


def _drained(*, weather: str = "", at: float = 12.0) -> Script:
    script = Script()
    if weather:
        script.incident(weather, "all", 0, 40)
    script.incident("drain", "h1", 10, 11)
    script.now = at
    return script


STEPS = ("acquire", "renew", "append", "touch", "finish")


def _take(script: Script, method: str, host: str) -> None:
    one, other = record(), record("t1", epoch=1)
    script.claim(one, host="h2")
    match method:
        case "acquire":
            script.step(method, ("k",), grant("k", owner="me"), port="leases", after={"k": "me"}, host=host)
        case "renew":
            held = {"k": "me"}
            asked = [grant("k", owner="me")]
            script.step(method, asked, [Renewal.KEPT], port="leases", before=held, after=held, host=host)
        case "append":
            script.append(one, text("late"), host=host)
        case "touch":
            script.touch(one, host=host)
        case _:
            script.finish(final(other), host=host)


@pytest.mark.parametrize("method", STEPS)
def test_a_drained_process_takes_no_step(method: str) -> None:
    for host, expected in (("h2", set()), ("h1", {"I16"})):
        script = _drained()
        _take(script, method, host)
        assert script.broken() == expected
    before = _drained(at=9)
    _take(before, method, "h1")
    assert before.broken() == set()


def test_in_bad_weather_its_calls_may_arrive_late_but_not_for_ever() -> None:
    for at, expected in ((12.0, set()), (25.0, {"I16"})):
        script = _drained(weather="network", at=at)
        _take(script, "acquire", "h1")
        assert script.broken() == expected


def _ran(*, ended_at: float, incident: tuple[str, str] = ("", ""), known: bool = True) -> set[str]:
    script, one = Script(), record()
    script.incident("drain", "h1", 10, 11)
    if incident[0]:
        script.incident(*incident, 10.5)
    script.claim(one, at=5)
    if known:
        script.entered(one)
    script.stop(final(one, "stopped"), at=ended_at)
    return script.broken()


def test_what_a_drained_process_ran_is_final() -> None:
    assert _ran(ended_at=10.9) == set()
    assert _ran(ended_at=11.1) == {"I16"}
    assert _ran(ended_at=11.1, known=False) == set()  # its claim arrived after its process had given up asking


def test_a_call_that_had_left_before_the_drain_may_arrive_after_it() -> None:
    def late(sent: float) -> set[str]:
        script, one = Script(), record()
        script.incident("drain", "h1", 10, 11)
        script.incident("network", "records", sent, 40)
        script.claim(one, at=5)
        script.entered(one)
        script.stop(final(one, "stopped"), at=9)
        script.touch(one, at=38)
        return script.broken() & {"I16"}

    assert late(10.9) == set()
    assert late(11.1) == {"I16"}


def test_unless_something_else_was_done_to_it() -> None:
    assert _ran(ended_at=11.1, incident=("kill", "h1")) == set()
    assert _ran(ended_at=11.1, incident=("outage", "records")) == set()
    assert _ran(ended_at=11.1, incident=("kill", "h2")) == {"I16"}
