"""I5 and I12, stored and read, and I6 for a conversation's readers: what holds is silent, what breaks is named."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from checker.build import BOUNDS, Script, broken, final, finals, read, record, text
from oneturn.core.event import Logged, encode
from oneturn.core.identity import Identity
from oneturn.testing.evidence import ConversationRead, Evidence, Final, Read

LAST = final(record(), "succeeded", "started", text("a"), text("b"))
GIVEN: list[tuple[int, str, Any]] = [
    (1, "started", {}),
    (2, "text", {"delta": "a"}),
    (3, "text", {"delta": "b"}),
    (4, "succeeded", {"result": "of t1"}),
]
SNAPSHOT = Logged(seq=3, kind="snapshot", data=encode({"text": "ab", "steps": [], "data": {}}))
FOLDED = replace(LAST, events=(SNAPSHOT, LAST.events[-1]))


def _of(last: Final, *reads: Read, conversations: tuple[ConversationRead, ...] = ()) -> set[str]:
    return broken(Evidence(bounds=BOUNDS, finals=finals(last), reads=list(reads), conversations=list(conversations)))


# -- stored -----------------------------------------------------------------------------------------------------------


def test_a_log_has_no_gaps() -> None:
    assert _of(LAST) == set()
    assert _of(FOLDED) == set()
    assert _of(replace(LAST, events=(LAST.events[0], *LAST.events[2:]))) == {"I12"}
    assert _of(replace(FOLDED, events=(replace(SNAPSHOT, seq=2), LAST.events[-1]))) == {"I12"}
    assert _of(replace(LAST, record=replace(LAST.record, last_seq=7))) == {"I12"}


def test_nothing_follows_the_terminal_event() -> None:
    more = replace(
        LAST, record=replace(LAST.record, last_seq=5), events=(*LAST.events, Logged(seq=5, kind="text", data="{}"))
    )
    assert _of(more) == {"I3", "I12"}


def test_the_terminal_event_says_what_the_record_says() -> None:
    wrong = replace(LAST.events[-1], data='{"result":"another"}')
    assert _of(replace(LAST, events=(*LAST.events[:-1], wrong))) == {"I5"}


def _written(*pieces: str, last: Final = LAST, logged: int | None = None) -> set[str]:
    script = Script(finals=finals(last))
    script.claim(record())
    script.append(record(), *pieces, logged=logged)
    script.append(record(), *pieces, logged=logged)  # the same call, delivered twice
    script.finish(last)
    return script.broken()


def test_what_was_written_stands_in_the_log_once() -> None:
    assert _written(text("a"), text("b")) == set()
    assert _written(text("a"), text("c")) == {"I5"}
    assert _written(text("a"), text("b"), logged=2) == {"I5"}
    assert _written(text("a")) == {"I5"}  # nobody wrote the second piece


def test_a_log_tells_how_often_its_record_was_begun() -> None:
    rerun = record(attempt=3, epoch=5, recovery="rerun")
    assert _of(final(rerun, "succeeded", "started", "restarted", "restarted")) == set()
    assert _of(final(rerun, "succeeded", "started", "started", "started")) == {"I5"}
    assert _of(final(rerun, "succeeded", "started", "restarted")) == {"I5"}
    assert _of(final(record(attempt=0, epoch=None), "stopped", "queued")) == set()
    assert _of(final(record(attempt=0, epoch=None), "stopped", "queued", "started")) == {"I5"}


# -- read -------------------------------------------------------------------------------------------------------------


def test_a_reader_is_given_each_event_once() -> None:
    assert _of(LAST, read("t1", GIVEN), read("t1", GIVEN[2:], after=2), read("t1", GIVEN[:2])) == set()
    assert _of(LAST, read("t1", GIVEN[:1] + GIVEN[2:])) == {"I5", "I12"}
    assert _of(LAST, read("t1", [*GIVEN[:2], GIVEN[1], *GIVEN[2:]])) == {"I12"}
    assert _of(LAST, read("t1", [*GIVEN, (5, "text", {})])) >= {"I12"}


def test_a_reader_is_given_what_is_stored() -> None:
    assert _of(LAST, read("t1", [GIVEN[0], (2, "text", {"delta": "x"})])) == {"I5"}
    assert _of(LAST, read("t1", [GIVEN[0], (2, "step", {"delta": "a"})])) == {"I5"}


def test_a_snapshot_is_what_the_events_join_to() -> None:
    snapshot = (3, "snapshot", {"text": "ab", "steps": [], "data": {}})
    assert (
        _of(FOLDED, read("t1", GIVEN), read("t1", [snapshot, GIVEN[3]]), read("t1", [GIVEN[0], snapshot, GIVEN[3]]))
        == set()
    )
    wrong = Logged(seq=3, kind="snapshot", data=encode({"text": "aba", "steps": [], "data": {}}))
    assert _of(replace(FOLDED, events=(wrong, LAST.events[-1])), read("t1", GIVEN)) == {"I5"}


def test_a_cached_copy_is_the_final_record() -> None:
    script, other = Script(finals=finals(LAST)), Script(finals=finals(LAST))
    asked = Identity(tenant="a", subject="u", scope="s", key="t1")
    script.step("get", asked, LAST.record, port="replay")
    assert script.broken() == set()
    script.step("get", asked, replace(LAST.record, body=b"stale"), port="replay")
    assert script.broken() == {"I5"}
    other.step("get", asked, record(), port="replay")
    assert other.broken() == {"I5"}


# -- conversations ----------------------------------------------------------------------------------------------------


def _conversation(*given: tuple[int, Logged]) -> set[str]:
    rows = [("t1", epoch, event) for epoch, event in given]
    script = Script(finals=finals(LAST), conversations=[ConversationRead(tenant="a", scope="s", events=rows)])
    script.claim(record())
    script.append(record(), text("a"), text("b"))
    script.finish(LAST)
    return script.broken()


def test_a_conversations_reader_moves_only_forward() -> None:
    one, two, three, four = LAST.events
    assert _conversation((1, one), (1, two), (1, three), (1, four)) == set()
    assert _conversation((1, two), (1, one)) == {"I6"}
    assert _conversation((1, one), (1, one)) == {"I6"}
    assert _conversation((1, one), (1, three)) == {"I12"}


def test_a_conversations_reader_is_given_what_is_stored() -> None:
    assert _conversation((1, replace(LAST.events[0], kind="restarted"))) == {"I6"}
    assert _conversation((2, LAST.events[0])) == {"I6"}
