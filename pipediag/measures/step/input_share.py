"""A share of the step that goes to input, and when two of them are said to differ."""

from __future__ import annotations

from dataclasses import dataclass

from pipediag.measures.bootstrap import Floats, interval

CLEARLY_POINTS = 5.0
"""Percentage points between two intervals from which the methods are said to disagree: the width of
the band that the field calls fine."""


@dataclass(frozen=True)
class Measured:
    """An input share in percent of the step, with its resamples, shape (draws,)."""

    percent: float
    draws: Floats


def clearly_apart(one: Measured, other: Measured) -> bool:
    """Whether more than `CLEARLY_POINTS` lie between their intervals."""
    (low, high), (other_low, other_high) = interval(one.draws), interval(other.draws)
    return low > other_high + CLEARLY_POINTS or other_low > high + CLEARLY_POINTS
