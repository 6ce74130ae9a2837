"""Intervals of what is measured with noise: of steps, of speed-ups, and Student's t for both.

**Steps** follow each other in bursts (a buffer empties and fills), so resampling single steps would
make intervals too narrow. Runs of the cube root of the number of steps, wrapped at the end, keep
the bursts together (the circular block bootstrap).

**Speed-ups** come from rounds with one block of a variant and one of what it is compared with. A
round gives one ratio, in which drift of the machine cancels. What happens to the steps inside a
block happens to them together, so more steps in a block never narrow an interval. The estimate is
the geometric mean of the ratios. Its interval is the wider, at each end, of two:

- Hesterberg's expanded percentile bootstrap over rounds ("What Teachers Should Know About the
  Bootstrap", The American Statistician 69, 2015): the plain percentile interval is too narrow for
  few rounds, so its level is taken as `2 * Phi(-sqrt(n / (n - 1)) * t)`, with Student's t.
- Student's own, on the logarithms. No bootstrap interval reaches beyond the smallest and largest
  ratio, and that range misses the truth in `2 ** (1 - n)` of all cases: 6 % with five rounds.

`benchmarks/aa.py` prints how often the interval holds the truth.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist, fmean, stdev

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pipediag.session.record import Interval
from pipediag.session.trials import WORTHWHILE
from pipediag.vocabulary import Judgement

FEWEST_ROUNDS = 3
"""Fewer are not judged: with two rounds Student's t spans a factor of thirty standard errors."""

LOOKS = (5, 7, 10, 15)
"""Rounds after which a variant is judged: looking after every round would stop on a lucky one."""

MOST_ROUNDS = LOOKS[-1]

LOOK_ALPHA = 0.017
"""Error allowed at each look, so that the interval at the last one, whichever that is, holds the
truth in 95 % of all cases: repeated confidence intervals (Jennison and Turnbull, J. R. Statist.
Soc. B 51, 1989) at one level for all looks. Pocock's constant for four looks is 0.0182 (Biometrika
64, 1977), at even distances and with a known spread. With Student's t at these looks, some look
misses the truth in 5.3 % of 150,000 simulated trials at that level, and in 4.9 % at this one."""

_DRAWS = 4999
_SEED = 20240229


@dataclass(frozen=True)
class Estimate:
    """A geometric mean over rounds with its interval, in the unit of what it was made from."""

    value: float
    low: float
    high: float
    rounds: int

    @property
    def interval(self) -> Interval:
        return round(self.low, 4), round(self.high, 4)

    @property
    def state(self) -> Judgement:
        """Return what it says of the edit whose speed-up it is."""
        return judge(self.low, self.high)

    def __str__(self) -> str:
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


def estimate(positive: ArrayLike, alpha: float = 0.05) -> Estimate:
    """Return the geometric mean of a positive number per round, and its interval.

    Raises:
        ValueError: fewer than two numbers, or one that is not positive.
    """
    values = np.asarray(positive, dtype=float)
    if len(values) < 2 or not np.all(values > 0):
        raise ValueError(f"two positive numbers at least are needed, not {values.tolist()}")
    logs = np.log(values)
    student = student_interval(logs.tolist(), alpha / 2)
    resampled = _expanded_percentile(logs, alpha)
    return Estimate(
        value=math.exp(logs.mean()),
        low=math.exp(min(student[0], resampled[0])),
        high=math.exp(max(student[1], resampled[1])),
        rounds=len(values),
    )


def judge(low: float, high: float) -> Judgement:
    """Return what an interval of a speed-up says of the edit."""
    if low > WORTHWHILE:
        return "confirmed"
    return "refuted" if high < WORTHWHILE else "inconclusive"


def look(ratios: Sequence[float], *, last: bool = False) -> Estimate | None:
    """Return what decides after these rounds, or None where more are needed.

    `last` says that no further round will come, for a reason that does not lie in the ratios; the
    look then stands in for the later ones. None of it may be asked more often than `LOOKS` allows.
    """
    rounds = len(ratios)
    last = last or rounds >= MOST_ROUNDS
    if rounds < FEWEST_ROUNDS or not (last or rounds in LOOKS):
        return None
    found = estimate(ratios, LOOK_ALPHA)
    return found if last or found.state != "inconclusive" else None


def _expanded_percentile(logs: NDArray[np.float64], alpha: float) -> tuple[float, float]:
    rounds = len(logs)
    t = student_quantile(1 - alpha / 2, rounds - 1)
    one_side = NormalDist().cdf(-math.sqrt(rounds / (rounds - 1)) * t)
    drawn = np.random.default_rng(_SEED).integers(0, rounds, (_DRAWS, rounds))
    low, high = np.percentile(logs[drawn].mean(axis=1), (100 * one_side, 100 * (1 - one_side)))
    return float(low), float(high)


DRAWS = 1000
_LIMITS = (2.5, 97.5)

Floats = NDArray[np.float64]


def resampled_rows(count: int, seed: int = _SEED) -> Iterator[NDArray[np.int64]]:
    """Yield the row numbers of each resample, `count` of them; the same for the same arguments.

    One after the other: all of them together, of a million steps, would take 8 GB.
    """
    length = max(1, round(count ** (1 / 3)))
    runs = math.ceil(count / length)
    random = np.random.default_rng(seed)
    for _ in range(DRAWS):
        starts = random.integers(0, count, size=(runs, 1))
        rows: NDArray[np.int64] = ((starts + np.arange(length)) % count).reshape(-1)[:count]
        yield rows


def resampled_means(values: ArrayLike, seed: int = _SEED) -> Floats:
    """Return the mean of each resample: (draws,) of a list, (draws, columns) of a table of rows."""
    table = np.asarray(values, dtype=float)
    drawn: Floats = np.array(
        [table[rows].mean(axis=0) for rows in resampled_rows(len(table), seed=seed)]
    )
    return drawn


def resampled_medians(values: ArrayLike) -> Floats:
    """Return the median of each resample of a list, shape (draws,)."""
    listed = np.asarray(values, dtype=float)
    drawn: Floats = np.array([np.median(listed[rows]) for rows in resampled_rows(len(listed))])
    return drawn


def interval(draws: ArrayLike) -> Interval:
    """Return the middle 95 % of resampled values."""
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


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(100)
"""Places and weights of Gauss's quadrature over -1 to 1. From one degree of freedom on they give
quantiles to 1e-7 up to a probability of 0.9999."""


def student_interval(values: Sequence[float], error: float) -> Interval:
    """Return Student's interval of the mean, each end of which is wrong in that share of cases."""
    mean = fmean(values)
    reach = student_quantile(1.0 - error, len(values) - 1) * stdev(values) / math.sqrt(len(values))
    return mean - reach, mean + reach


@cache
def student_quantile(probability: float, freedom: float) -> float:
    """Return the value that Student's t stays below with this probability.

    By bisection of the distribution function (M. Abramowitz and I. A. Stegun, Handbook of
    Mathematical Functions, 26.7.1), which is an integral over `cos(angle) ** (freedom - 1)` where
    the value is `sqrt(freedom) * tan(angle)`.

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
    ratio_of_gammas = math.exp(math.lgamma(freedom / 2.0) - math.lgamma((freedom + 1.0) / 2.0))
    wanted = (probability - 0.5) * math.sqrt(math.pi) * ratio_of_gammas
    low, high = 0.0, math.pi / 2.0
    while (middle := (low + high) / 2.0) not in (low, high):
        angles = middle * (_NODES + 1.0) / 2.0
        if middle / 2.0 * float(_WEIGHTS @ np.cos(angles) ** (freedom - 1.0)) < wanted:
            low = middle
        else:
            high = middle
    return math.sqrt(freedom) * math.tan(middle)


Value = tuple[float, Interval]
"""A measured value with its 95 % interval."""


def with_interval(function: Callable[..., float], *values: Value) -> Value:
    """Return a function of independent values with its interval."""
    middles = [middle for middle, _ in values]
    whole = function(*middles)
    off = [
        [whole - function(*middles[:place], end, *middles[place + 1 :]) for end in ends]
        for place, (_, ends) in enumerate(values)
    ]
    below = math.hypot(*(max(0.0, *one) for one in off))
    above = math.hypot(*(min(0.0, *one) for one in off))
    return whole, (whole - below, whole + above)
