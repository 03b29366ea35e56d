"""Shrinking: what remains still fails, and nothing more of it can be left out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oneturn.testing.simulation.shrink import shrink

ITEMS = [f"fault {number}" for number in range(20)]


@given(st.sets(st.sampled_from(ITEMS)))
def test_what_is_needed_together_remains_in_order(needed: set[str]) -> None:
    assert shrink(lambda without: without.isdisjoint(needed), ITEMS, most=10_000) == [
        item for item in ITEMS if item in needed
    ]


@given(st.lists(st.sets(st.sampled_from(ITEMS), min_size=1), min_size=1, max_size=4))
def test_of_several_causes_one_remains_that_is_minimal(causes: list[set[str]]) -> None:
    def fails(without: frozenset[str]) -> bool:
        return any(without.isdisjoint(cause) for cause in causes)

    kept = shrink(fails, ITEMS, most=10_000)
    left = frozenset(ITEMS).difference(kept)
    assert fails(left)
    assert not any(fails(left | {item}) for item in kept)


def test_an_item_that_becomes_needless_late_is_left_out() -> None:
    """Without "a" it fails only if "d" is left out as well."""

    def fails(without: frozenset[str]) -> bool:
        return "b" not in without and ("a" not in without or "d" in without)

    assert shrink(fails, ["a", "b", "c", "d"]) == ["b"]


@pytest.mark.parametrize("most", [0, 1, 7])
def test_the_bound_is_kept_and_what_remains_fails(most: int) -> None:
    needed, tried = set(ITEMS[::3]), list[frozenset[str]]()

    def fails(without: frozenset[str]) -> bool:
        tried.append(without)
        return without.isdisjoint(needed)

    kept = shrink(fails, ITEMS, most=most)
    assert len(tried) == most
    assert needed <= set(kept)


def test_a_failure_that_needs_nothing_is_told_so_at_once() -> None:
    tried = list[frozenset[str]]()
    assert shrink(lambda without: not tried.append(without), ITEMS) == []  # type: ignore[func-returns-value]
    assert tried == [frozenset(ITEMS)]


def test_nothing_shrinks_to_nothing() -> None:
    assert shrink(lambda _: pytest.fail("there is nothing to leave out"), []) == []
