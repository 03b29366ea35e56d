"""The contract of tenants (I13): nothing of one is reachable with another's name, in any method."""

from __future__ import annotations

import pytest

from oneturn.core.identity import Identity
from oneturn.core.record import Record
from oneturn.core.steps import Claimed, Gone, NotRegenerable
from oneturn.testing.contracts.ending import stop_of
from oneturn.testing.contracts.recovery import abandon_of, vouch_of
from oneturn.testing.contracts.subject import Subject, append_of, claim_of, finish_of, start_of, timeless

STRANGER = "umbrella"


class TenantsContract:
    """Inherit it and provide a fixture `subject`."""

    async def _all_of_acme(self, subject: Subject) -> tuple[Record, Record, Record]:
        ended = await subject.answered(key="k")
        return ended, await subject.claimed(), await subject.enqueued()

    @pytest.mark.case("O4", "T28")
    async def test_a_stranger_reads_nothing(self, subject: Subject) -> None:
        records = subject.backend.records
        for record in await self._all_of_acme(subject):
            name = record.identity
            twin = Identity(tenant=STRANGER, subject=name.subject, scope=name.scope, key=name.key)
            assert await records.find(twin) is None
            assert await records.read(tenant=STRANGER, id=record.id) is None
            assert await records.events(tenant=STRANGER, id=record.id, after=0) == []
            assert await records.position(tenant=STRANGER, id=record.id) == 0
        assert await records.scope_events(tenant=STRANGER, scope="c", after=(0, 0)) == []
        assert await records.turns(tenant=STRANGER, scope="c") == []
        assert await records.history(tenant=STRANGER, scope="c") == []
        assert await records.scope_epoch(tenant=STRANGER, scope="c") == 0

    @pytest.mark.case("T28")
    async def test_a_stranger_changes_nothing(self, subject: Subject) -> None:
        records = subject.backend.records
        ended, running, queued = before = await self._all_of_acme(subject)
        for record in before:
            assert await records.stop(stop_of(record.id, tenant=STRANGER)) == Gone(record=None)
            assert await records.finish(finish_of(record, tenant=STRANGER)) == Gone(record=None)
            assert await records.append(append_of(record, "text", tenant=STRANGER)) == Gone(record=None)
            assert await records.start(start_of(record, tenant=STRANGER)) == Gone(record=None)
            assert await records.abandon(abandon_of(record, tenant=STRANGER, epoch=2)) == Gone(record=None)
            (told,) = await records.touch([vouch_of(record, tenant=STRANGER, epoch=2)])
            assert told is not None
            assert (told.payload, told.body, told.handler) == (None, b"", "")
        assert await records.erase(tenant=STRANGER, scope="c") == 0
        assert [timeless(await subject.now(record)) for record in before] == [timeless(record) for record in before]
        assert [await subject.kinds(record) for record in (ended, running, queued)] == [
            ["started", "succeeded"],
            ["started"],
            ["queued"],
        ]

    @pytest.mark.case("O4")
    async def test_a_stranger_with_the_same_names_has_a_conversation_of_their_own(self, subject: Subject) -> None:
        ended, _, _ = await self._all_of_acme(subject)
        twin = await subject.claimed(tenant=STRANGER, key="k")
        assert (twin.epoch, twin.sequence) == (1, 1)
        await subject.finished(twin, body=b'"theirs"')
        (message,) = await subject.backend.records.history(tenant=STRANGER, scope="c")
        assert message.answer == b'"theirs"'
        refused = await subject.backend.records.claim(claim_of(tenant=STRANGER, regenerate=ended.id))
        assert refused == NotRegenerable(turn=ended.id)

    async def test_a_stranger_calling_dead_or_alive_what_is_not_theirs_changes_nothing(self, subject: Subject) -> None:
        acme = await subject.claimed(ttl=10)
        subject.elapse(11)
        answer = await subject.backend.records.claim(claim_of(tenant=STRANGER, dead=acme.id))
        assert isinstance(answer, Claimed)
        assert await subject.kinds(acme) == ["started"]

    async def test_names_that_are_joined_alike_are_not_alike(self, subject: Subject) -> None:
        """Whatever a store joins its keys with: ("a", "b:c") and ("a:b", "c") stay two names."""
        parts = [("a", "b:c"), ("a:b", "c"), ("a|b", "c"), ("a", "b|c"), ("a\x00b", "c"), ("a", "b\x00c")]
        for tenant, scope in parts:
            assert (await subject.claimed(tenant=tenant, scope=scope, key="k")).epoch == 1
