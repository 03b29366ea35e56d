"""The model: right in every interleaving, and each planted design error is refuted by a shortest trace."""

from __future__ import annotations

import pytest

from oneturn.testing.model import Configuration, Planted, Switch, explore, invariants, replay
from oneturn.testing.model import __main__ as program
from oneturn.testing.model.configurations import CONFIGURATIONS, PLANTED
from oneturn.testing.model.explore import mover

BY_SWITCH = {planted.switch: planted for planted in PLANTED}


@pytest.mark.parametrize("bounds", CONFIGURATIONS, ids=lambda bounds: bounds.name)
def test_the_right_model_breaks_nothing_in_any_interleaving(bounds: Configuration) -> None:
    seen = explore(bounds)
    assert (seen.violation, seen.lines()) == (None, [])
    assert seen.states > 1_000


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.switch.value)
def test_a_planted_design_error_is_refuted(planted: Planted) -> None:
    """By an invariant that it is known to break, with a trace that people can read and that can be walked again."""
    found = explore(planted.bounds, planted.switch)
    assert found.violation is not None
    assert found.violation.invariant in planted.breaks
    assert len(found.lines()) == len(found.trace) + 1
    assert found.lines()[-1].strip().startswith(found.violation.invariant)
    first, again = (replay(planted.bounds, planted.switch, found.trace) for _ in range(2))
    assert first == again
    assert first[1] == found.violation


def test_every_switch_is_planted_where_the_right_model_is_exhausted() -> None:
    assert set(BY_SWITCH) == set(Switch)
    assert len(BY_SWITCH) == len(PLANTED)
    assert {planted.bounds for planted in PLANTED} <= set(CONFIGURATIONS)


def test_a_trace_is_a_shortest_one() -> None:
    """Walked depth by depth, without the exploration's own bookkeeping: no shorter row of steps breaks anything."""
    planted = BY_SWITCH[Switch.STOP_KEEPS_EPOCH]
    found = explore(planted.bounds, planted.switch)
    moves, level = mover(planted.bounds, planted.switch), {planted.bounds.initial()}
    for _ in found.trace[:-1]:
        steps = [(state, move) for state in level for move in moves(state)]
        assert not any(invariants.of_step(state, move) for state, move in steps)
        level = {move.after for _, move in steps}
        assert not any(invariants.of_state(state, planted.bounds) for state in level)


def test_a_trace_of_one_switch_is_none_of_the_right_model() -> None:
    """What refutes the error cannot be walked, or breaks nothing, where nothing is planted."""
    for planted in PLANTED:
        trace = explore(planted.bounds, planted.switch).trace
        try:
            assert replay(planted.bounds, None, trace)[1] is None, planted.switch
        except KeyError:
            continue


def test_an_exploration_that_outgrows_its_limit_says_so() -> None:
    with pytest.raises(OverflowError, match="more than 10 states"):
        explore(CONFIGURATIONS[0], limit=10)


def test_the_program_prints_both_tables(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    stops = BY_SWITCH[Switch.STOP_KEEPS_EPOCH]
    monkeypatch.setattr(program, "CONFIGURATIONS", (stops.bounds,))
    monkeypatch.setattr(program, "PLANTED", (stops,))
    assert program.main([]) == 0
    out = capsys.readouterr().out
    assert stops.bounds.name in out
    assert stops.switch.value in out


def test_the_program_fails_if_a_switch_is_not_refuted(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    stops = BY_SWITCH[Switch.STOP_KEEPS_EPOCH]
    unseen = Planted(switch=Switch.NEW_OWNER, bounds=stops.bounds, breaks=("I14",))
    monkeypatch.setattr(program, "CONFIGURATIONS", ())
    monkeypatch.setattr(program, "PLANTED", (unseen,))
    assert program.main([]) == 1
    assert "nothing" in capsys.readouterr().out
