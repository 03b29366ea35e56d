"""The contracts of `Signals` and `ReplayCache`."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from oneturn.core.status import Status
from oneturn.testing.contracts.subject import Subject, finish_of


class SignalsContract:
    """Inherit it and provide a fixture `subject`."""

    async def test_every_subscriber_of_a_topic_is_woken_until_it_ends(self, subject: Subject) -> None:
        signals, heard = subject.backend.signals, list[str]()
        woken = asyncio.Event()
        loop = asyncio.get_running_loop()

        def wake(name: str) -> None:
            heard.append(name)
            loop.call_soon_threadsafe(woken.set)

        end = signals.subscribe("t", lambda: wake("one"))
        signals.subscribe("t", lambda: wake("two"))
        signals.subscribe("other", lambda: wake("other"))
        signals.publish("t")
        await woken.wait()
        assert sorted(set(heard)) == ["one", "two"]
        end()
        end()
        heard.clear()
        signals.publish("t")
        assert set(heard) == {"two"}

    async def test_publishing_where_nobody_listens_does_nothing(self, subject: Subject) -> None:
        subject.backend.signals.publish("nobody")


class ReplayCacheContract:
    """Inherit it and provide a fixture `subject`."""

    @pytest.mark.row("Q10", "Q17")
    async def test_a_final_record_is_kept_for_its_ttl_and_dropped_on_demand(self, subject: Subject) -> None:
        cache = subject.backend.replay
        running = await subject.claimed()
        await subject.backend.records.finish(finish_of(running))
        record = await subject.backend.records.read(tenant="acme", id=running.id)
        assert record is not None
        assert record.status is Status.SUCCEEDED
        await cache.put(record, ttl=10)
        assert await cache.get(record.identity) == record
        assert await cache.get(replace(record.identity, tenant="umbrella")) is None
        assert await cache.get(replace(record.identity, scope="other")) is None
        subject.elapse(11)
        assert await cache.get(record.identity) is None
        await cache.put(record, ttl=10)
        await cache.drop(record.identity)
        assert await cache.get(record.identity) is None
