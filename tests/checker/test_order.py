"""I15: what holds is silent, what breaks is named."""

from __future__ import annotations

from checker.build import BOUNDS, Script, broken, final, finals, record
from oneturn.core.record import Record
from oneturn.testing.evidence import Evidence


def test_every_scope_is_served() -> None:
    assert broken(Evidence(bounds=BOUNDS)) == set()
    assert broken(Evidence(bounds=BOUNDS, unserved=["a/s"])) == {"I15"}


def _started(*records: Record) -> set[str]:
    return broken(Evidence(bounds=BOUNDS, finals=finals(*(final(one) for one in records))))


def test_messages_are_started_in_their_order() -> None:
    assert _started(record("t1", epoch=1, sequence=1), record("t2", epoch=2, sequence=2)) == set()
    assert _started(record("t1", epoch=2, sequence=1), record("t2", epoch=1, sequence=2)) == {"I15"}
    assert _started(record("t1", epoch=2, sequence=1), record("t2", epoch=1, sequence=2, scope="x")) == set()


def test_a_rerun_has_a_new_epoch() -> None:
    again = record("t1", epoch=2, sequence=1, attempt=2, recovery="rerun")
    lasts = finals(final(again, "succeeded", "started", "restarted"), final(record("t2", epoch=1, sequence=2)))
    assert broken(Evidence(bounds=BOUNDS, finals=lasts)) == set()


def test_a_regenerating_turn_has_an_old_place() -> None:
    first, second = record("t1", epoch=1, sequence=1), record("t2", epoch=2, sequence=2)
    again = record("t3", message="t1", replaces="t1", epoch=3, sequence=1)
    lasts = finals(final(first, answered_by="t3"), final(second), final(again))
    assert broken(Evidence(bounds=BOUNDS, finals=lasts)) == set()


def _waited(until: float, *, healed_at: float | None = 0.0, started: bool = True) -> set[str]:
    """The first ends at 5; the second, queued since 2, is started at `until`, or still waits then."""
    script = Script(healed_at=healed_at)
    first, second = record("t1"), record("t2", epoch=2, sequence=2)
    script.claim(first, at=1)
    script.enqueue(second, at=2)
    script.finish(final(first), at=5)
    if started:
        script.start(second, at=until)
    else:
        script.step("due", None, None, at=until)
    return script.broken()


def test_nobody_waits_in_an_idle_scope() -> None:
    bound = BOUNDS.check_every + BOUNDS.ttl + 2
    assert _waited(5 + bound - 0.1) == set()
    assert _waited(5 + bound + 0.1) == {"I15"}
    assert _waited(5 + bound + 0.1, started=False) == {"I15"}


def test_the_bound_begins_with_the_healing() -> None:
    assert _waited(30, healed_at=20) == set()
    assert _waited(40, healed_at=20) == {"I15"}
    assert _waited(40, healed_at=None) == set()


def test_a_scope_in_which_somebody_runs_is_not_idle() -> None:
    script = Script(healed_at=0.0)
    script.claim(record("t1"), at=1)
    script.enqueue(record("t2", sequence=2), at=2)
    script.step("due", None, None, at=100)
    assert script.broken() == set()


def test_who_was_stopped_in_the_queue_waits_no_more() -> None:
    script = Script(healed_at=0.0)
    script.ran(record("t1"), at=1)
    script.enqueue(record("t2", sequence=2), at=2)
    script.stop(final(record("t2", sequence=2, epoch=None, attempt=0), "stopped", "queued"), at=3)
    script.evidence.finals |= finals(final(record("t2", sequence=2, epoch=None, attempt=0), "stopped", "queued"))
    script.step("due", None, None, at=100)
    assert script.broken() == set()
