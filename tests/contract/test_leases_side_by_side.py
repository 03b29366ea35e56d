"""Leases in memory and on SQLite are asked the same and answer the same, and what they answer keeps the port's promises."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from side_by_side import QUICK, SideBySide

from oneturn.core.lease import Grant, Held, Holding, Renewal

KEYS = ("k", "l", "m n")
keysets = st.lists(st.sampled_from(KEYS), min_size=1, max_size=3, unique=True)
owners = st.sampled_from("abc")
seconds = st.sampled_from((1.0, 5.0, 20.0))


class Leases(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.both = SideBySide()
        self.grants: list[Grant] = []
        self.held: dict[str, Holding] = {}
        """Who holds what, as it was told after the last step."""
        self.newest = 0
        """The greatest token so far."""
        self.changed_by = ""
        """The owner that the last step may have given or taken a key; "*": anybody; "": nobody."""

    def teardown(self) -> None:
        self.both.close()

    @rule(keys=keysets, owner=owners, ttl=seconds)
    def acquire(self, keys: Sequence[str], owner: str, ttl: float) -> None:
        answer = self.both.ask(lambda backend: backend.leases.acquire(keys, owner=owner, ttl=ttl))
        self.changed_by = owner
        if isinstance(answer, Held):
            assert answer.key in keys
            assert answer.remaining > 0
            return
        self.grants.append(answer)
        strangers = [self.held[key].owner for key in keys if key in self.held and self.held[key].owner != owner]
        # A stranger's key may have lapsed in the very instant of the step, never before it was due.
        assert all(self.held[key].remaining <= 0.01 for key in keys if key in self.held and strangers)
        ours = [self.held[key].fencing_token for key in keys if key in self.held and self.held[key].owner == owner]
        assert answer.fencing_token >= max(ours, default=0)
        assert len(ours) == len(keys) or answer.fencing_token > self.newest
        self.newest = max(self.newest, answer.fencing_token)

    @rule(data=st.data())
    def renew(self, data: st.DataObject) -> None:
        some = data.draw(st.lists(st.sampled_from(self.grants), max_size=3)) if self.grants else []
        answers = self.both.ask(lambda backend: backend.leases.renew(some))
        self.changed_by = ""
        assert len(answers) == len(some)
        for grant, answer in zip(some, answers, strict=True):
            holders = {self.held[key].owner if key in self.held else "" for key in grant.keys}
            if answer is Renewal.KEPT:
                assert holders == {grant.owner}
            if answer is Renewal.FOREIGN:
                assert holders - {"", grant.owner}

    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        if self.grants:
            grant = data.draw(st.sampled_from(self.grants))
            self.both.ask(lambda backend: backend.leases.release(grant))
            self.changed_by = grant.owner

    @rule(key=st.sampled_from(KEYS), mark_for=seconds)
    def revoke(self, key: str, mark_for: float) -> None:
        was_held = self.both.ask(lambda backend: backend.leases.revoke(key, mark_for=mark_for))
        assert was_held <= (key in self.held)
        self.changed_by = "*"

    @rule(seconds=st.sampled_from((0.5, 4.0, 21.0)))
    def time_passes(self, seconds: float) -> None:
        self.both.times.elapse(seconds)
        self.changed_by = "*"

    @invariant()
    def nobody_gains_or_loses_a_key_by_a_strangers_step(self) -> None:
        held: dict[str, Holding] = {}
        for key in KEYS:
            holding = self.both.ask(lambda backend, key=key: backend.leases.inspect(key))  # type: ignore[misc]
            if holding is not None:
                assert holding.remaining <= 20.0
                held[key] = holding
        for key, before in self.held.items():
            if self.changed_by not in {before.owner, "*"} and before.remaining > 0.1:
                assert held[key].owner == before.owner
                assert held[key].fencing_token == before.fencing_token
        self.held = held


TestLeases = Leases.TestCase
TestLeases.settings = QUICK
