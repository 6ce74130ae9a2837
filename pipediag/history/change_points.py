"""Where a series of measurements moved to another level.

Pettitt's test (A. N. Pettitt, Applied Statistics 28, 1979) finds the one place that divides a
series best by the ranks of its values, so that an odd measurement weighs no more than any other. It
is asked again on both sides of a place that it has found (binary segmentation).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

LEVEL = 0.01
"""Own choice: one of a hundred series that never moved is said to have. The probability is
Pettitt's approximation, which is too large for short series, and so on the safe side."""

FEWEST = 4
"""Own choice: measurements on each side of a place."""


def change_points(values: Sequence[float]) -> list[int]:
    """The positions at which a new level begins, in order; none where nothing moved for sure."""
    return _within(np.asarray(values, dtype=float), 0)


def _within(values: NDArray[np.float64], offset: int) -> list[int]:
    at = _strongest(values)
    if at is None:
        return []
    before, after = _within(values[:at], offset), _within(values[at:], offset + at)
    return [*before, offset + at, *after]


def _strongest(values: NDArray[np.float64]) -> int | None:
    count = len(values)
    if count < 2 * FEWEST:
        return None
    # For each place: by how many pairs what is behind it is larger than what is before it.
    weights = np.abs(np.cumsum(2.0 * _ranks(values) - (count + 1)))[FEWEST - 1 : count - FEWEST]
    strongest = int(np.argmax(weights))
    probability = 2.0 * math.exp(-6.0 * float(weights[strongest]) ** 2 / (count**3 + count**2))
    return strongest + FEWEST if probability < LEVEL else None


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """From 1 on; equal values share the mean of theirs."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: NDArray[np.float64] = (np.cumsum(counts) - (counts - 1) / 2.0)[place]
    return ranks
