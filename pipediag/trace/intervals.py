"""Sets of half-open time intervals as numpy arrays.

A set is an int64 array of shape (n, 2): rows [start, end) in nanoseconds, sorted, none empty, none
touching or overlapping another. Every function takes and returns sets in that form; only
`normalise` accepts anything else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

Intervals = NDArray[np.int64]

EMPTY: Intervals = np.empty((0, 2), np.int64)
EMPTY.flags.writeable = False


def normalise(starts: ArrayLike, ends: ArrayLike) -> Intervals:
    """Return the union of [start, end) pairs in any order, without empty and backward ones."""
    start = np.asarray(starts, np.int64)
    end = np.asarray(ends, np.int64)
    kept = end > start
    if not kept.all():
        start, end = start[kept], end[kept]
    if not len(start):
        return EMPTY
    if (start[1:] < start[:-1]).any():
        order = np.argsort(start, kind="stable")
        # Of ten million spans each column is 80 MB: none outlives its use.
        start = start[order]
        end = end[order]
        del order
    end = np.maximum.accumulate(end)
    opens = np.append(True, start[1:] > end[:-1])
    return rows(start[opens], end[np.append(opens[1:], True)])


def rows(start: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.int64]:
    """Put starts and ends side by side."""
    pairs = np.empty((len(start), 2), np.int64)
    pairs[:, 0], pairs[:, 1] = start, end
    return pairs


def union(*sets: Intervals) -> Intervals:
    """Return what any of the sets covers."""
    filled = [spans for spans in sets if len(spans)]
    if len(filled) <= 1:
        return filled[0] if filled else EMPTY
    return normalise(
        np.concatenate([spans[:, 0] for spans in filled]),
        np.concatenate([spans[:, 1] for spans in filled]),
    )


def subtract(a: Intervals, b: Intervals) -> Intervals:
    """Return what `a` covers and `b` does not."""
    if not len(a) or not len(b):
        return a
    # Each span of `a` is cut by those of `b` that end after it starts and start before it ends.
    first = np.searchsorted(b[:, 1], a[:, 0], side="right")
    cuts = np.searchsorted(b[:, 0], a[:, 1], side="left") - first
    start, end = np.repeat(a[:, 0], cuts + 1), np.repeat(a[:, 1], cuts + 1)
    after_cut = np.ones(len(start), np.bool_)
    after_cut[np.cumsum(cuts + 1) - cuts - 1] = False
    cut = np.arange(len(start) - len(a)) + np.repeat(first - np.cumsum(cuts) + cuts, cuts)
    start[after_cut] = b[cut, 1]
    end[np.roll(after_cut, -1)] = b[cut, 0]
    del cut, after_cut
    kept = end > start
    return rows(start[kept], end[kept])


def without_earlier(sets: Iterable[Intervals]) -> Iterator[Intervals]:
    """Yield of each set what none before it covers: overlaps belong to the first."""
    taken, last = EMPTY, EMPTY
    for spans in sets:
        taken, last = union(taken, last), spans
        yield subtract(spans, taken)


def intersect(a: Intervals, b: Intervals) -> Intervals:
    """Return what both sets cover."""
    return subtract(a, subtract(a, b)) if len(b) else EMPTY


def total(a: Intervals) -> int:
    """Return the covered time."""
    return int((a[:, 1] - a[:, 0]).sum())


def covered(a: Intervals, windows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how much of each window `a` covers; windows of shape (n, 2) may overlap."""
    if not len(a):
        return np.zeros(len(windows), np.int64)
    elapsed = np.append(0, np.cumsum(a[:, 1] - a[:, 0]))

    def before(times: NDArray[np.int64]) -> NDArray[np.int64]:
        begun = np.searchsorted(a[:, 0], times, side="right")
        last = np.maximum(begun - 1, 0)
        overshoot = np.where(begun > 0, np.maximum(a[last, 1] - times, 0), 0)
        result: NDArray[np.int64] = elapsed[begun] - overshoot
        return result

    return before(windows[:, 1]) - before(windows[:, 0])
