"""The simulated servers: each step is one moment, and the journal has them all."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial

import pytest

from oneturn.core import failpoint
from oneturn.core.lease import Grant, Held, Renewal
from oneturn.core.steps import Claimed
from oneturn.testing.contracts import claim_of
from oneturn.testing.simulation.loop import SimulatedLoop
from oneturn.testing.simulation.servers import PORTS, Servers, drive

LOOPS = {"simulated": partial(SimulatedLoop, 1)}


@pytest.fixture
async def servers() -> Servers:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SimulatedLoop)
    return Servers(loop)


@pytest.fixture
def waiting_failpoints() -> Iterator[None]:
    async def wait(name: str) -> None:
        await asyncio.sleep(1)

    before = failpoint.install(wait)
    yield
    failpoint.install(before)


def _acquire(servers: Servers, *keys: str, owner: str, ttl: float = 10.0, host: str = "h0") -> Grant | Held:
    answer = servers.apply(host, "leases", "acquire", (keys,), {"owner": owner, "ttl": ttl})
    assert isinstance(answer, Grant | Held)
    return answer


def _granted(servers: Servers, *keys: str, owner: str, ttl: float = 10.0, host: str = "h0") -> Grant:
    answer = _acquire(servers, *keys, owner=owner, ttl=ttl, host=host)
    assert isinstance(answer, Grant)
    return answer


async def test_the_journal_has_every_step_in_order_with_who_held_the_keys(servers: Servers) -> None:
    grant = _granted(servers, "k", "l", owner="a")
    await asyncio.sleep(4)
    _acquire(servers, "k", owner="b", host="h1")
    servers.apply("h0", "leases", "renew", ([grant],), {})
    await asyncio.sleep(9)
    servers.apply("h0", "leases", "inspect", ("l",), {})
    servers.apply("operator", "leases", "revoke", ("k",), {"mark_for": 5})
    servers.apply("h0", "leases", "release", (grant,), {})
    both, none = {"k": "a", "l": "a"}, dict[str, str]()
    assert [(step.host, step.method, step.time, step.before, step.after) for step in servers.journal] == [
        ("h0", "acquire", 0.0, none, both),
        ("h1", "acquire", 4.0, {"k": "a"}, {"k": "a"}),
        ("h0", "renew", 4.0, both, both),
        ("h0", "inspect", 13.0, {"l": "a"}, {"l": "a"}),
        ("operator", "revoke", 13.0, {"k": "a"}, none),
        ("h0", "release", 13.0, {"l": "a"}, none),
    ]
    assert [step.seq for step in servers.journal] == [1, 2, 3, 4, 5, 6]
    assert [step.answer for step in servers.journal[:3]] == [grant, Held(key="k", remaining=6.0), [Renewal.KEPT]]
    assert (servers.journal[0].asked, servers.journal[0].named) == (("k", "l"), {"owner": "a", "ttl": 10.0})


async def test_the_journal_has_the_steps_of_all_ports(servers: Servers) -> None:
    claim = claim_of()
    claimed = servers.apply("h0", "records", "claim", (claim,), {})
    assert isinstance(claimed, Claimed)
    servers.apply("h1", "records", "read", (), {"tenant": "acme", "id": claim.id})
    servers.apply("h1", "replay", "get", (claim.identity,), {})
    assert [(step.port, step.method, step.asked) for step in servers.journal] == [
        ("records", "claim", claim),
        ("records", "read", None),
        ("replay", "get", claim.identity),
    ]
    assert servers.journal[1].answer == claimed.record
    assert not any(step.before or step.after for step in servers.journal)


async def test_who_watches_sees_before_and_after(servers: Servers) -> None:
    seen = list[tuple[str, dict[str, str], int]]()
    servers.watch = lambda port, method, asked: (f"{port}.{method} {list(asked)}", servers.holders())
    servers.seen = lambda step, kept: seen.append((*kept, step.seq))
    _granted(servers, "k", owner="a")
    _acquire(servers, "k", owner="b")
    assert seen == [("leases.acquire ['k']", {}, 1), ("leases.acquire ['k']", {"k": "a"}, 2)]


async def test_who_has_lapsed_holds_nothing(servers: Servers) -> None:
    _granted(servers, "k", owner="a", ttl=10)
    await asyncio.sleep(9.9)
    assert servers.holders() == {"k": "a"}
    await asyncio.sleep(0.2)
    assert servers.holders() == {}
    _granted(servers, "k", owner="b")
    assert (servers.journal[-1].before, servers.journal[-1].after) == ({}, {"k": "b"})


async def test_a_replica_that_takes_over_brings_back_keys_and_tokens(servers: Servers) -> None:
    kept, released = _granted(servers, "k", owner="a"), _granted(servers, "l", owner="a")
    take_over = servers.snapshot()
    servers.apply("h0", "leases", "release", (released,), {})
    lost = _granted(servers, "m", owner="b")
    assert servers.holders() == {"k": "a", "m": "b"}
    take_over()
    assert servers.holders() == {"k": "a", "l": "a"}
    assert _granted(servers, "k", owner="a") == kept
    assert _granted(servers, "m", owner="c").fencing_token == lost.fencing_token, "the same number twice"


async def test_a_replica_is_as_it_was_however_often_it_takes_over(servers: Servers) -> None:
    _granted(servers, "k", owner="a")
    take_over = servers.snapshot()
    for _ in range(2):
        take_over()
        _granted(servers, "l", owner="b")
    take_over()
    assert servers.holders() == {"k": "a"}


async def test_each_server_has_a_clock_of_its_own(servers: Servers) -> None:
    _granted(servers, "k", owner="a", ttl=10)
    claimed = servers.apply("h0", "records", "claim", (claim_of(ttl=10),), {})
    servers.clocks["leases"].offset += 11
    assert servers.holders() == {}
    read = servers.apply("h0", "records", "read", (), {"tenant": "acme", "id": claimed.record.id})
    assert read.remaining == 10
    assert set(servers.clocks) == set(PORTS)


async def test_a_step_that_waits_is_an_error(servers: Servers, waiting_failpoints: None) -> None:
    with pytest.raises(RuntimeError, match="waited"):
        _acquire(servers, "k", owner="a")
    assert servers.journal == []
    assert servers.holders() == {}


def test_driving_a_coroutine_answers_raises_and_refuses_to_wait() -> None:
    async def answer() -> int:
        return 7

    async def fail() -> int:
        raise KeyError

    assert drive(answer()) == 7
    with pytest.raises(KeyError):
        drive(fail())
    with pytest.raises(RuntimeError, match="waited"):
        drive(asyncio.sleep(0))


async def test_what_was_refused_is_no_step(servers: Servers) -> None:
    with pytest.raises(ValueError, match="ttl"):
        _acquire(servers, "k", owner="a", ttl=-1)
    assert servers.journal == []


async def test_a_restart_is_a_new_generation_of_that_server_alone(servers: Servers) -> None:
    _granted(servers, "k", owner="a")
    servers.restart("leases")
    assert servers.generation == {"records": 0, "leases": 1, "replay": 0}
    assert servers.holders() == {"k": "a"}, "what it had written down is still there"
