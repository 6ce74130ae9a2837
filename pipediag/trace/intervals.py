"""Sets of half-open time intervals as numpy arrays.

A set is an int64 array of shape (n, 2): rows [start, end) in nanoseconds, sorted, none empty, none
touching or overlapping another. Every function takes and returns sets in that form; only
`normalise` accepts anything else.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Intervals = NDArray[np.int64]

EMPTY: Intervals = np.empty((0, 2), np.int64)
EMPTY.flags.writeable = False


def normalise(starts: ArrayLike, ends: ArrayLike) -> Intervals:
    """The union of [start, end) pairs in any order; empty and backward pairs are dropped."""
    start = np.asarray(starts, np.int64)
    end = np.asarray(ends, np.int64)
    kept = end > start
    if not kept.all():
        start, end = start[kept], end[kept]
    if not len(start):
        return EMPTY
    if (start[1:] < start[:-1]).any():
        order = np.argsort(start, kind="stable")
        start, end = start[order], end[order]
    end = np.maximum.accumulate(end)
    opens = np.append(True, start[1:] > end[:-1])
    closes = np.append(opens[1:], True)
    return rows(start[opens], end[closes])


def rows(start: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.int64]:
    """Starts and ends side by side."""
    pairs = np.empty((len(start), 2), np.int64)
    pairs[:, 0], pairs[:, 1] = start, end
    return pairs


def union(*sets: Intervals) -> Intervals:
    """What any of the sets covers."""
    if not sets:
        return EMPTY
    rows = np.concatenate(sets)
    return normalise(rows[:, 0], rows[:, 1])


def subtract(a: Intervals, b: Intervals) -> Intervals:
    """What `a` covers and `b` does not."""
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
    kept = end > start
    return rows(start[kept], end[kept])


def intersect(a: Intervals, b: Intervals) -> Intervals:
    """What both sets cover."""
    return subtract(a, subtract(a, b)) if len(b) else EMPTY


def clip(a: Intervals, start: int, end: int) -> Intervals:
    """The part of `a` within [start, end)."""
    return normalise(np.maximum(a[:, 0], start), np.minimum(a[:, 1], end))


def total(a: Intervals) -> int:
    """The covered time."""
    return int((a[:, 1] - a[:, 0]).sum())


def gaps(a: Intervals, start: int, end: int) -> Intervals:
    """What `a` leaves free of [start, end)."""
    return subtract(normalise([start], [end]), a)


def covered(a: Intervals, windows: NDArray[np.int64]) -> NDArray[np.int64]:
    """How much of each window `a` covers; windows of shape (n, 2) may overlap."""
    if not len(a):
        return np.zeros(len(windows), np.int64)
    return _before(a, windows[:, 1]) - _before(a, windows[:, 0])


def _before(a: Intervals, times: NDArray[np.int64]) -> NDArray[np.int64]:
    lengths = a[:, 1] - a[:, 0]
    elapsed = np.append(0, np.cumsum(lengths))
    begun = np.searchsorted(a[:, 0], times, side="right")
    last = np.maximum(begun - 1, 0)
    overshoot = np.where(begun > 0, np.maximum(a[last, 1] - times, 0), 0)
    result: NDArray[np.int64] = elapsed[begun] - overshoot
    return result
