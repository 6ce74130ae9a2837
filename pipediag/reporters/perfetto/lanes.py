"""Puts the events of one thread on lanes on which they nest or are disjoint.

Perfetto draws no two slices of a track across each other and drops the later one. A thread's events
nest; those of a stream and of asynchronous work need not.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pipediag.trace.events import Times

MOST_LANES = 8
"""What fits on none of them is put on the last one all the same."""


def nesting_lanes(start_ns: Times, end_ns: Times) -> NDArray[np.int8]:
    """The lane of each event, counted from 0; events sorted by start, the longest first."""
    lanes = np.zeros(len(start_ns), np.int8)
    if (start_ns[1:] >= end_ns[:-1]).all():
        return lanes
    open_ends: list[list[int]] = [[] for _ in range(MOST_LANES)]
    for index, (start, end) in enumerate(zip(start_ns.tolist(), end_ns.tolist(), strict=True)):
        lanes[index] = lane = _first_free(open_ends, start, end)
        open_ends[lane].append(end)
    return lanes


def _first_free(open_ends: list[list[int]], start: int, end: int) -> int:
    """Events that have ended by `start` are taken from their lanes on the way."""
    for lane, around in enumerate(open_ends):
        while around and around[-1] <= start:
            around.pop()
        if not around or end <= around[-1]:
            return lane
    return MOST_LANES - 1
