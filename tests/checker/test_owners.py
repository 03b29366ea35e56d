"""I13: what holds is silent, what breaks is named."""

from __future__ import annotations

from typing import Any

import pytest

from checker.build import BOUNDS, Script, broken, final, finals, record, told
from oneturn.core.identity import Identity
from oneturn.core.record import StoredMessage
from oneturn.core.status import StopReason
from oneturn.core.steps import Busy, Existing, Gone, Stop, Vouch
from oneturn.testing.evidence import ConversationRead, Evidence, Told

MINE = record("t1")
THEIRS = record("t2", tenant="b")
NEXT_DOOR = record("t3", scope="elsewhere")
ANOTHERS = record("t4", subject="v", epoch=2, sequence=2)
LASTS = finals(*(final(one) for one in (MINE, THEIRS, NEXT_DOOR, ANOTHERS)))
EVENT = LASTS["t1"].events[0]


def _told(one: Told) -> set[str]:
    return broken(Evidence(bounds=BOUNDS, finals=LASTS, told=[one]))


def test_a_client_is_told_of_its_own_record() -> None:
    assert _told(told(turn="t1", key="t1")) == set()
    assert _told(told(turn="t2", key="t2")) == {"I13"}
    assert _told(told(turn="t3", key="t3")) == {"I13"}
    assert _told(told(turn="t4", key="t4")) == {"I13"}
    assert _told(told("key-reused", turn="t4", key="t4")) == {"I13"}


def test_busy_may_name_another_of_the_same_conversation() -> None:
    assert _told(told("busy", turn="t4", key="k")) == set()
    assert _told(told("busy", turn="t2", key="k")) == {"I13"}


def test_a_reader_of_a_conversation_is_given_its_turns() -> None:
    def given(turn: str) -> set[str]:
        reader = ConversationRead(tenant="a", scope="s", events=[(turn, 1, EVENT)])
        return broken(Evidence(bounds=BOUNDS, finals=LASTS, conversations=[reader]))

    assert given("t1") == set()
    assert given("t2") == {"I13"}
    assert given("t3") == {"I13"}


def _step(method: str, asked: Any, answer: Any, *, port: Any = "records", **named: Any) -> set[str]:
    script = Script(finals=LASTS)
    script.step(method, asked, answer, port=port, **named)
    return script.broken()


def test_a_claim_is_answered_of_its_own_name() -> None:
    def asked(answer: Any) -> set[str]:
        script = Script(finals=LASTS)
        script.claim(MINE, answer=answer)
        return script.broken()

    assert asked(Existing(record=MINE)) == set()
    assert asked(Busy(record=ANOTHERS)) == set()
    assert asked(Existing(record=ANOTHERS)) == {"I13"}
    assert asked(Busy(record=NEXT_DOOR)) == {"I13"}
    assert asked(Busy(record=THEIRS)) == {"I13"}


def test_a_step_on_an_execution_is_answered_within_its_tenant() -> None:
    asked = Stop(tenant="a", id="t2", reason=StopReason.CANCELLED)
    assert _step("stop", asked, Gone(record=None)) == set()
    assert _step("stop", asked, Gone(record=MINE)) == set()
    assert _step("stop", asked, Gone(record=THEIRS)) == {"I13"}
    vouches = [Vouch(tenant="a", id="t2", epoch=1, ttl=10)]
    assert _step("touch", vouches, [MINE]) == set()
    assert _step("touch", vouches, [THEIRS]) == {"I13"}


@pytest.mark.parametrize(("method", "port"), [("find", "records"), ("get", "replay")])
def test_a_name_finds_its_own_record(method: str, port: str) -> None:
    identity = Identity(tenant="a", subject="u", scope="s", key="t1")
    found, elses = LASTS["t1"].record, LASTS["t4"].record
    assert _step(method, identity, None, port=port) == set()
    assert _step(method, identity, found, port=port) == set()
    assert _step(method, identity, elses, port=port) == {"I13"}


def test_reads_by_tenant_and_scope_stay_there() -> None:
    here = {"tenant": "a", "scope": "s"}
    assert _step("read", None, MINE, tenant="a", id="t1") == set()
    assert _step("read", None, THEIRS, tenant="a", id="t2") == {"I13"}
    assert _step("events", None, [EVENT], tenant="a", id="t1", after=0) == set()
    assert _step("events", None, [EVENT], tenant="a", id="t2", after=0) == {"I13"}
    assert _step("turns", None, [MINE, ANOTHERS], **here) == set()
    assert _step("turns", None, [MINE, NEXT_DOOR], **here) == {"I13"}
    assert _step("scope_events", None, [("t1", 1, EVENT)], **here) == set()
    assert _step("scope_events", None, [("t3", 1, EVENT)], **here) == {"I13"}
    assert _step("history", None, [_message("t1")], **here) == set()
    assert _step("history", None, [_message("t2")], **here) == {"I13"}


def _message(turn: str) -> StoredMessage:
    return StoredMessage(turn=turn, sequence=1, payload=b"")


def test_a_sweeper_sees_everybody() -> None:
    assert _step("due", None, [MINE, THEIRS], handlers=("chat",)) == set()
