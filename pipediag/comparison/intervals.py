"""Intervals for the difference of two means, and what a steady drift leaves of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, variance

from pipediag.comparison.order import Order
from pipediag.student import student_quantile

Interval = tuple[float, float]


@dataclass(frozen=True)
class Difference:
    """Between two means."""

    low: float
    high: float
    drifting: bool = False
    """Whether the runs tell of a machine that changed steadily, which may have made it."""


def of_difference(
    base: Sequence[float], head: Sequence[float], error: float, order: Order | None
) -> Difference:
    """Each end is wrong in at most that share of all cases.

    Where the runs were made by turns, what both of a round have in common, as the machine at that
    time, is not in the differences within rounds; where they have nothing in common, these leave
    Student's t with half the degrees of freedom. So both intervals are made, each with half of the
    error, and what lies in both of them is given.

    Where they were not, and the machine seems to have changed from run to run, no interval tells
    that from the difference. Then it holds what is left without such a drift, too.
    """
    if order is None:
        return Difference(*welch(base, head, error))
    if order.by_turns:
        low, high = welch(base, head, error / 2.0)
        low_of_rounds, high_of_rounds = of_rounds(base, head, error / 2.0)
        return Difference(max(low, low_of_rounds), min(high, high_of_rounds))
    low, high = welch(base, head, error)
    left = without_drift(base, head, error, order)
    if left is None:
        return Difference(low, high)
    return Difference(min(low, left[0]), max(high, left[1]), drifting=True)


def welch(base: Sequence[float], head: Sequence[float], error: float) -> Interval:
    """Of two means with spreads of their own (B. L. Welch, Biometrika 34, 1947)."""
    difference = fmean(head) - fmean(base)
    parts = [variance(side) / len(side) for side in (base, head)]
    total = sum(parts)
    if total == 0.0:
        return difference, difference
    freedom = total**2 / sum(
        part**2 / (len(side) - 1) for part, side in zip(parts, (base, head), strict=True)
    )
    reach = _quantile(error, freedom) * math.sqrt(total)
    return difference - reach, difference + reach


def of_rounds(base: Sequence[float], head: Sequence[float], error: float) -> Interval:
    """Student's, of the differences within rounds, without a run whose round is not complete."""
    differences = [after - before for before, after in zip(base, head, strict=False)]
    mean = fmean(differences)
    spread = math.sqrt(variance(differences) / len(differences))
    reach = _quantile(error, len(differences) - 1) * spread if spread else 0.0
    return mean - reach, mean + reach


def without_drift(
    base: Sequence[float], head: Sequence[float], error: float, order: Order
) -> Interval | None:
    """The difference where the machine also changed by as much from each run to the next.

    Of the least-squares fit of a difference and a slope over the places of the runs. None where
    they do not tell of a drift that makes the difference larger: where the slope is smaller than
    its own standard error.
    """
    values = _centred([*base, *head])
    sides = _centred([0.0] * len(base) + [1.0] * len(head))
    places = _centred([float(place) for place in (*order.base, *order.head)])
    of_sides, of_places, both = (
        _product(sides, sides),
        _product(places, places),
        _product(sides, places),
    )
    left = of_sides * of_places - both**2
    freedom = len(values) - 3
    difference = (_product(sides, values) * of_places - both * _product(places, values)) / left
    slope = (_product(places, values) * of_sides - both * _product(sides, values)) / left
    residuals = (
        value - difference * side - slope * place
        for value, side, place in zip(values, sides, places, strict=True)
    )
    spread = math.sqrt(sum(one**2 for one in residuals) / freedom / left)
    made = slope * both / of_sides
    if abs(slope) <= spread * math.sqrt(of_sides) or made * (difference + made) <= 0.0:
        return None
    reach = _quantile(error, freedom) * spread * math.sqrt(of_places)
    return difference - reach, difference + reach


def _centred(values: Sequence[float]) -> list[float]:
    mean = fmean(values)
    return [value - mean for value in values]


def _product(one: Sequence[float], other: Sequence[float]) -> float:
    return math.fsum(a * b for a, b in zip(one, other, strict=True))


def _quantile(error: float, freedom: float) -> float:
    return student_quantile(1.0 - error, freedom)
