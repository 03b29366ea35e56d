"""The one source of names and randomness, so that a simulation can seed it."""

from __future__ import annotations

import random
import secrets
from typing import Protocol


class Ids(Protocol):
    """Makes names that nobody can guess and draws for jitter."""

    def new(self) -> str:
        """A fresh name: 26 characters, URL-safe, unguessable in production."""
        ...

    def jitter(self) -> float:
        """A number in [0, 1)."""
        ...


_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_LENGTH = 26


class SystemIds:
    """Names from the operating system's randomness: 130 bits each."""

    def new(self) -> str:
        """See `Ids.new`."""
        bits = secrets.randbits(5 * _LENGTH)
        return "".join(_ALPHABET[(bits >> shift) & 31] for shift in range(0, 5 * _LENGTH, 5))

    def jitter(self) -> float:
        """See `Ids.jitter`."""
        return random.random()  # noqa: S311 - spreads retries, guards nothing


class SeededIds:
    """The same names in the same order for the same seed: for tests and simulation only."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 - reproducible on purpose

    def new(self) -> str:
        """See `Ids.new`."""
        return "".join(self._random.choices(_ALPHABET, k=_LENGTH))

    def jitter(self) -> float:
        """See `Ids.jitter`."""
        return self._random.random()
