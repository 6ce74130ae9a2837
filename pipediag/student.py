"""Quantiles of Student's t distribution, without a library of 35 MB for one function."""

from __future__ import annotations

import math
from functools import cache

_SMALLEST = 1e-300
_ROUNDS = 300
_EXACT = 1e-15


@cache
def student_quantile(probability: float, freedom: float) -> float:
    """Return the value that Student's t stays below with this probability.

    By bisection of the distribution function, which is a regularised incomplete beta function
    (M. Abramowitz and I. A. Stegun, Handbook of Mathematical Functions, 26.5.27 and 26.7.1).

    Args:
        probability: between 0 and 1, both excluded.
        freedom: degrees of freedom, above 0; need not be whole.

    Raises:
        ValueError: an argument is out of range.
    """
    if not 0.0 < probability < 1.0 or freedom <= 0.0:
        raise ValueError(f"no quantile of {probability} with {freedom} degrees of freedom")
    if probability < 0.5:
        return -student_quantile(1.0 - probability, freedom)
    low, high = 0.0, 1.0
    while _above(high, freedom) > 1.0 - probability:
        low, high = high, 2.0 * high
    while (middle := (low + high) / 2.0) not in (low, high):
        if _above(middle, freedom) > 1.0 - probability:
            low = middle
        else:
            high = middle
    return middle


def _above(value: float, freedom: float) -> float:
    """Return the probability of a value above this one, which is not negative."""
    return 0.5 * _beta(freedom / (freedom + value * value), freedom / 2.0, 0.5)


def _beta(x: float, a: float, b: float) -> float:
    """Return the regularised incomplete beta function I_x(a, b)."""
    if x <= 0.0 or x >= 1.0:
        return min(max(x, 0.0), 1.0)
    log = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    front = math.exp(log + a * math.log(x) + b * math.log1p(-x))
    if x < (a + 1.0) / (a + b + 2.0):
        return front * _fraction(x, a, b) / a
    return 1.0 - front * _fraction(1.0 - x, b, a) / b


def _fraction(x: float, a: float, b: float) -> float:
    """Return the continued fraction 26.5.8 of the handbook, by the method of W. J. Lentz."""
    c, d = 1.0, 1.0 - (a + b) * x / (a + 1.0)
    d = 1.0 / (d if abs(d) > _SMALLEST else _SMALLEST)
    value = d
    for m in range(1, _ROUNDS):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d, c = 1.0 + term * d, 1.0 + term / c
            d = 1.0 / (d if abs(d) > _SMALLEST else _SMALLEST)
            c = c if abs(c) > _SMALLEST else _SMALLEST
            value *= c * d
        if abs(c * d - 1.0) < _EXACT:
            break
    return value
