"""The simulated backend keeps the contracts of the ports: over a slow network, a doubling one, and one that loses calls."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import pytest

from oneturn.core.backend import Backend, Capability
from oneturn.core.errors import BackendUnavailable
from oneturn.testing.contracts import (
    BoundariesContract,
    LeaseStoreContract,
    RecordStoreContract,
    ReplayCacheContract,
    SignalsContract,
    Subject,
    loops,
    small,
)
from oneturn.testing.simulation.database import DatabaseClock
from oneturn.testing.simulation.loop import SimulatedLoop, lane_context
from oneturn.testing.simulation.network import KINDS, Weather, Wire
from oneturn.testing.simulation.servers import PORTS, Servers

T = TypeVar("T")

LOOPS = {"simulated": partial(SimulatedLoop, 1)}

Network = Callable[[Servers, SimulatedLoop], Backend]

_FIRST_RELEASE = "a release or a revocation that is taken twice finds nothing to free the second time"
_BY_THIS_STEP = "a step that ends a record and is taken twice says that an earlier try ended it"
_ABANDONED = "what was abandoned or requeued is Gone to the same step again: alive_until has changed"
_COUNTED = "a sweep or an erasure that is taken twice counts what the second one did"
_FAILPOINTS = "the server passes the failpoints of a step each time that it takes it"

TAKEN_TWICE = {
    "test_leases_answer_on_any_event_loop": _FIRST_RELEASE,
    "test_a_renewal_is_all_or_nothing_and_tells_absent_foreign_and_revoked_apart": _FIRST_RELEASE,
    "test_a_release_frees_every_key_once": _FIRST_RELEASE,
    "test_a_revoked_key_is_refused_to_its_owner_only_until_the_mark_has_passed": _FIRST_RELEASE,
    "test_a_release_repeated_after_a_lost_reply_leaves_the_next_holder_alone": _FIRST_RELEASE,
    "test_fencing_tokens_grow_with_every_new_acquisition_however_the_last_one_ended": _FIRST_RELEASE,
    "test_a_finish_is_final_idempotent_and_carries_pending_events": _BY_THIS_STEP,
    "test_a_stop_from_outside_takes_the_epoch_away": _BY_THIS_STEP,
    "test_the_first_reason_to_stop_wins": _BY_THIS_STEP,
    "test_a_finish_and_a_stop_that_race_end_it_once": _BY_THIS_STEP,
    "test_a_stopped_queued_record_makes_room_and_ends_with_its_reason": _BY_THIS_STEP,
    "test_only_what_nobody_vouched_for_is_abandoned": _ABANDONED,
    "test_the_abandoned_executor_that_wakes_is_refused_everything": _ABANDONED,
    "test_a_rerun_is_queued_again_twice_and_then_abandoned": _ABANDONED,
    "test_a_requeued_record_keeps_its_old_place": _ABANDONED,
    "test_old_events_are_folded_into_one_snapshot_before_the_terminal_one": _COUNTED,
    "test_a_result_expires_and_its_key_is_remembered_as_long_as_the_tombstone": _COUNTED,
    "test_only_what_ended_long_enough_ago_is_swept": _COUNTED,
    "test_one_sweep_does_all_there_is_to_do": _COUNTED,
    "test_erasing_a_conversation_leaves_tombstones_without_content": _COUNTED,
    "test_erasing_twice_finds_nothing_more": _COUNTED,
    "test_erasing_an_answered_message_erases_its_regenerated_answers": _COUNTED,
    "test_any_number_of_grants_is_renewed_in_one_round_trip": _FAILPOINTS,
    "test_each_call_of_a_port_passes_a_failpoint_before_and_after": _FAILPOINTS,
}
"""What cannot hold where each step is taken twice, and why."""

UNORDERED = {
    "test_an_acquire_cancelled_at_any_await_leaves_what_its_owner_can_release": (
        "calls overtake each other here: an acquire that was given up may arrive after its owner's release"
    )
}
"""What no network without order can promise."""

OVERTAKEN = {
    "test_a_stop_and_a_start_exclude_each_other": "a start that was repeated behind the stop is told Gone, though it began"
}
"""What cannot hold where another caller's step may come between a step and its repetition."""


class StandingClock(DatabaseClock):
    """A server's clock that stands still until it is moved, as those of every backend under contract do."""

    def monotonic(self) -> float:
        return self.offset

    def wall(self) -> float:
        return self.wall_offset


class Persistent:
    """A port as the runtime uses it: a call whose outcome is unknown is repeated as it was, here over the next wire."""

    def __init__(self, ports: list[Any]) -> None:
        self._ports = ports

    def __getattr__(self, method: str) -> Any:
        async def call(*asked: Any, **named: Any) -> Any:
            for port in self._ports:
                try:
                    return await getattr(port, method)(*asked, **named)
                except BackendUnavailable:
                    continue
            raise AssertionError("the last wire loses nothing")

        return call


def _wired(servers: Servers, loop: SimulatedLoop, **faults: float) -> Backend:
    weather = Weather(draw=random.Random(1))
    weather.calm()
    weather.delay = 0.02
    for kind, chance in faults.items():
        assert kind in KINDS
        setattr(weather, kind, chance)
    return Wire("h0", servers=servers, loop=loop, weather=weather).backend()


def _slow(servers: Servers, loop: SimulatedLoop) -> Backend:
    return _wired(servers, loop, slow=0.01)


def _doubling(servers: Servers, loop: SimulatedLoop) -> Backend:
    return _wired(servers, loop, doubled=1.0)


def _losing(servers: Servers, loop: SimulatedLoop) -> Backend:
    """Of each call the first request is lost, then the first answer; only its third try is answered."""
    wires = [_wired(servers, loop, lost=1.0), _wired(servers, loop, reply_lost=1.0), _wired(servers, loop)]
    ports: dict[str, Any] = {port: Persistent([getattr(wire, port) for wire in wires]) for port in PORTS}
    return replace(wires[-1], **ports)


@pytest.fixture(params=[_slow, _doubling, _losing], ids=["slow", "doubling", "losing"])
def network(request: pytest.FixtureRequest) -> Network:
    chosen: Network = request.param
    name = request.node.originalname
    if (why := TAKEN_TWICE.get(name)) and chosen is not _slow:
        pytest.skip(why)
    if why := UNORDERED.get(name) or (OVERTAKEN.get(name) if chosen is _losing else None):
        pytest.skip(why)
    return chosen


@pytest.fixture
async def subject(network: Network) -> Subject:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SimulatedLoop)
    servers = Servers(loop, clock=StandingClock)

    def elapse(seconds: float) -> None:
        for clock in servers.clocks.values():
            clock.offset += seconds
            clock.wall_offset += seconds

    return Subject(backend=network(servers, loop), elapse=elapse)


@pytest.fixture(autouse=True)
def lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread's event loop is another lane of the one loop here."""

    async def elsewhere(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        return await asyncio.get_running_loop().create_task(work(), context=lane_context("h0/elsewhere"))

    for module in (loops, small):
        monkeypatch.setattr(module, "elsewhere", elsewhere)


class TestLeases(LeaseStoreContract):
    pass


class TestRecords(RecordStoreContract):
    pass


class TestSignals(SignalsContract):
    pass


class TestReplays(ReplayCacheContract):
    pass


class TestBoundaries(BoundariesContract):
    pass


async def test_it_declares_what_the_reference_declares(subject: Subject) -> None:
    assert subject.backend.capabilities == {Capability.ATOMIC_MULTI_KEY}
    assert subject.backend.transactional is None
