"""How many gaps are how long: a long profile has more gaps than anybody wants to keep."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_EDGES_NS = (10_000, 100_000, 1_000_000, 10_000_000, 100_000_000)


@dataclass(frozen=True)
class LengthBucket:
    """Gaps of similar length."""

    from_ns: int
    to_ns: int | None
    """None: no upper end."""
    count: int
    total_ns: int


def gap_histogram(lengths_ns: NDArray[np.int64], floor_ns: int) -> tuple[LengthBucket, ...]:
    """All gaps by length, those under the floor in a bucket of their own; empty ones left out."""
    edges = [0, floor_ns, *(edge for edge in _EDGES_NS if edge > floor_ns)]
    places = np.searchsorted(edges, lengths_ns, side="right") - 1
    counts = np.bincount(places, minlength=len(edges))
    totals = np.zeros(len(edges), np.int64)
    np.add.at(totals, places, lengths_ns)
    return tuple(
        LengthBucket(start, end, int(count), int(total))
        for start, end, count, total in zip(edges, [*edges[1:], None], counts, totals, strict=True)
        if count
    )
