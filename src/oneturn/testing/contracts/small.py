"""The contracts of `Signals` and `ReplayCache`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from oneturn.core.status import Status
from oneturn.testing.contracts.loops import elsewhere
from oneturn.testing.contracts.subject import Subject, finish_of


class Ear:
    """Hears wake-ups on any thread and waits for them on the test's loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._woken = asyncio.Event()
        self.heard = 0

    def __call__(self) -> None:
        """A `Wake`."""
        self.heard += 1
        self._loop.call_soon_threadsafe(self._woken.set)

    async def wait(self) -> None:
        """Return once it was woken since the last time."""
        async with asyncio.timeout(10):
            await self._woken.wait()
        self._woken.clear()


class SignalsContract:
    """Inherit it and provide a fixture `subject`. Signals may be doubled or late, so nothing here counts them."""

    async def test_every_subscriber_of_a_topic_is_woken_and_no_other(self, subject: Subject) -> None:
        signals = subject.backend.signals
        one, two, other = Ear(), Ear(), Ear()
        ends = [signals.subscribe(topic, ear) for topic, ear in (("t", one), ("t", two), ("other", other))]
        signals.publish("t")
        await asyncio.gather(one.wait(), two.wait())
        assert other.heard == 0
        for end in ends:
            end()

    async def test_who_has_unsubscribed_is_woken_no_more(self, subject: Subject) -> None:
        signals = subject.backend.signals
        gone, stays = Ear(), Ear()
        end, last = signals.subscribe("t", gone), signals.subscribe("t", stays)
        end()
        end()
        signals.publish("t")
        await stays.wait()
        assert gone.heard == 0
        last()

    async def test_one_who_subscribes_twice_must_leave_twice(self, subject: Subject) -> None:
        signals, ear = subject.backend.signals, Ear()
        first, second = signals.subscribe("t", ear), signals.subscribe("t", ear)
        first()
        signals.publish("t")
        await ear.wait()
        second()

    async def test_a_subscriber_may_leave_while_it_is_woken(self, subject: Subject) -> None:
        signals, ear, stays = subject.backend.signals, Ear(), Ear()
        ends = list[Callable[[], None]]()

        def wake() -> None:
            ends.pop()()
            ear()

        ends.append(signals.subscribe("t", wake))
        last = signals.subscribe("t", stays)
        signals.publish("t")
        await asyncio.gather(ear.wait(), stays.wait())
        last()

    async def test_a_subscriber_that_raises_harms_neither_the_publisher_nor_the_others(self, subject: Subject) -> None:
        """The event loop of one may be closed already: signals are hints."""
        signals, ear = subject.backend.signals, Ear()

        def broken() -> None:
            raise RuntimeError("my loop is closed")

        ends = [signals.subscribe("t", broken), signals.subscribe("t", ear)]
        signals.publish("t")
        await ear.wait()
        for end in ends:
            end()

    async def test_topics_are_data(self, subject: Subject) -> None:
        for topic in ("a b", "a{b}*", "a:b", "100%", "会话🔒", "x" * 1024, "'; --", "[a-z]?"):
            ear, other = Ear(), Ear()
            ends = [subject.backend.signals.subscribe(topic, ear), subject.backend.signals.subscribe("aab", other)]
            subject.backend.signals.publish(topic)
            await ear.wait()
            assert other.heard == 0
            for end in ends:
                end()

    async def test_any_thread_may_publish(self, subject: Subject) -> None:
        ear = Ear()
        end = subject.backend.signals.subscribe("t", ear)

        async def publish() -> None:
            subject.backend.signals.publish("t")

        await elsewhere(publish)
        await ear.wait()
        end()

    async def test_publishing_where_nobody_listens_or_after_the_end_does_nothing(self, subject: Subject) -> None:
        subject.backend.signals.publish("nobody")
        await subject.backend.close()
        subject.backend.signals.publish("nobody")


class ReplayCacheContract:
    """Inherit it and provide a fixture `subject`. A cache may forget: what it answers, if it does, is the record."""

    @pytest.mark.row("Q10", "Q17")
    async def test_a_final_record_is_kept_for_its_ttl_and_no_longer(self, subject: Subject) -> None:
        cache, record = subject.backend.replay, await subject.answered()
        assert record.status is Status.SUCCEEDED
        await cache.put(record, ttl=10)
        subject.elapse(9.9)
        assert await cache.get(record.identity) == record
        subject.elapse(0.2)
        assert await cache.get(record.identity) is None

    async def test_what_was_put_later_counts(self, subject: Subject) -> None:
        cache, record = subject.backend.replay, await subject.answered()
        await cache.put(record, ttl=10)
        subject.elapse(9)
        expired = replace(record, body=b"", expired=True)
        await cache.put(expired, ttl=10)
        subject.elapse(9)
        assert await cache.get(record.identity) == expired

    async def test_what_was_dropped_is_gone(self, subject: Subject) -> None:
        cache, record = subject.backend.replay, await subject.answered()
        await cache.put(record, ttl=10)
        await cache.drop(record.identity)
        await cache.drop(record.identity)
        assert await cache.get(record.identity) is None

    @pytest.mark.case("O4")
    async def test_it_never_answers_one_name_with_anothers_record(self, subject: Subject) -> None:
        cache, record = subject.backend.replay, await subject.answered(scope="a:b", key="c")
        await cache.put(record, ttl=10)
        name = record.identity
        others = (
            replace(name, tenant="umbrella"),
            replace(name, subject="bob"),
            replace(name, scope="a"),
            replace(name, key="b:c"),
            replace(name, scope="a", key="b:c"),
        )
        assert [await cache.get(other) for other in others] == [None] * 5

    async def test_a_record_is_in_the_store_whether_or_not_it_is_cached(self, subject: Subject) -> None:
        record = await subject.claimed()
        await subject.backend.records.finish(finish_of(record))
        assert await subject.backend.replay.get(record.identity) is None
        assert (await subject.now(record)).status is Status.SUCCEEDED
