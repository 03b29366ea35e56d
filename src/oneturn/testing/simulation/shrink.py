"""Shrinking: which items of a plan a failure needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence


def shrink(fails: Callable[[frozenset[str]], bool], items: Sequence[str], *, most: int = 60) -> list[str]:
    """Leave out what is not needed, in ever smaller pieces, with at most `most` calls of `fails` (left-out items → bool).

    What remains fails. Unless the bound was reached, no single item of it can be left out any more.
    """
    kept, size, tried = list(items), len(items), 0
    while kept and size:
        before, place = len(kept), 0
        while place < len(kept):
            if tried == most:
                return kept
            tried += 1
            rest = kept[:place] + kept[place + size :]
            if fails(frozenset(items).difference(rest)):
                kept = rest
            else:
                place += size
        # In pieces of one, until a whole round finds nothing: what was needed may have become needless.
        size = size // 2 if size > 1 else int(len(kept) < before)
    return kept
