"""The shape of a run: how many come, within which time, to how many conversations, under how many faults."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How large a run is. Many small ones find more than few large ones; what needs a crowd needs some of those."""

    clients: int
    scopes: tuple[str, ...]
    keys: int
    spread: float
    """Virtual seconds within which clients come."""
    faults: int
    """At most so many."""


SHAPES = (
    *(Shape(clients=12, scopes=("s",), keys=5, spread=10, faults=6),) * 7,
    *(Shape(clients=24, scopes=("s", "t"), keys=9, spread=20, faults=8),) * 2,
    Shape(clients=48, scopes=("s", "t", "u"), keys=14, spread=30, faults=10),
)
"""What seeds draw from."""
