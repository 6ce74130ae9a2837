"""Intervals by a bootstrap over runs of neighbouring steps.

Steps follow each other in bursts (a buffer empties and fills), so resampling single steps would
make intervals too narrow. Runs of the cube root of the number of steps, wrapped at the end, keep
the bursts together (the circular block bootstrap).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pipediag.session.record import Interval

DRAWS = 1000
_SEED = 20240229
_LIMITS = (2.5, 97.5)

Floats = NDArray[np.float64]


def resampled_rows(
    count: int, draws: int = DRAWS, seed: int = _SEED
) -> Iterator[NDArray[np.int64]]:
    """The row numbers of each resample, `count` of them; the same for the same arguments.

    One after the other: all of them together, of a million steps, would take 8 GB.
    """
    length = max(1, round(count ** (1 / 3)))
    runs = math.ceil(count / length)
    random = np.random.default_rng(seed)
    for _ in range(draws):
        starts = random.integers(0, count, size=(runs, 1))
        rows: NDArray[np.int64] = ((starts + np.arange(length)) % count).reshape(-1)[:count]
        yield rows


def resampled_means(values: ArrayLike, seed: int = _SEED) -> Floats:
    """Mean of each resample: shape (draws,) for a list, (draws, columns) for a table of rows."""
    table = np.asarray(values, dtype=float)
    drawn: Floats = np.array(
        [table[rows].mean(axis=0) for rows in resampled_rows(len(table), seed=seed)]
    )
    return drawn


def resampled_medians(values: ArrayLike) -> Floats:
    """Median of each resample of a list, shape (draws,)."""
    listed = np.asarray(values, dtype=float)
    drawn: Floats = np.array([np.median(listed[rows]) for rows in resampled_rows(len(listed))])
    return drawn


def interval(draws: ArrayLike) -> Interval:
    """The middle 95 % of resampled values."""
    low, high = np.percentile(np.asarray(draws, dtype=float), _LIMITS)
    return float(low), float(high)


CLEARLY_POINTS = 5.0
"""Percentage points between two intervals from which the methods are said to disagree: the width of
the band that the field calls fine."""


@dataclass(frozen=True)
class Measured:
    """An input share in percent of the step, with its resamples, shape (draws,)."""

    percent: float
    draws: Floats

    @property
    def interval(self) -> Interval:
        return interval(self.draws)

    def is_clearly_above(self, other: Measured) -> bool:
        """Return True if more than `CLEARLY_POINTS` lie between the two intervals."""
        return self.interval[0] > other.interval[1] + CLEARLY_POINTS


def clearly_apart(one: Measured, other: Measured) -> bool:
    """Return True if one of them is clearly above the other."""
    return one.is_clearly_above(other) or other.is_clearly_above(one)
