"""Every planted bug is found, by an invariant that it breaks: the seeds of the page still do, and the page is complete."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from oneturn.testing.simulation.zoo import ZOO, Bug
from oneturn.testing.simulation.zoo.table import Found, find, parse, render

SEEDS = parse((Path(__file__).parents[2] / "docs" / "reference" / "zoo.md").read_text(encoding="utf8"))
MORE = 60
"""Seeds that are tried when the page's own seed does not find a bug any more, since the code has moved on."""


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("bug", ZOO, ids=lambda bug: bug.name)
def test_a_planted_bug_is_found(bug: Bug) -> None:
    """By one of the invariants that it is known to break."""
    known = SEEDS.get(bug.name, 1)
    found = find(bug, [known, *(seed for seed in range(1, MORE + 1) if seed != known)])
    assert found is not None, f"neither seed {known} nor the first {MORE} find it: make zoo writes the page afresh"


def test_the_page_names_exactly_the_bugs_of_the_zoo() -> None:
    assert list(SEEDS) == [bug.name for bug in ZOO]
    assert len(ZOO) >= 30


def test_a_bug_names_invariants_of_the_design() -> None:
    known = {f"I{number}" for number in range(1, 17)} | {"model"}
    assert {name for bug in ZOO for name in bug.breaks} <= known
    assert all(bug.breaks for bug in ZOO)


def test_what_was_rendered_is_parsed() -> None:
    """Whatever a violation says, a row stays a row."""
    rows = [
        Found(bug="b", seed=7, invariant="I1", said="a | b\n`c`"),
        Found(bug="d e", seed=8, invariant="I2", said=""),
    ]
    assert parse(render(rows)) == {"b": 7, "d e": 8}
