"""Decide from samples of two versions, base and head, whether head is slower.

A sample is a run if each side has `FEWEST_RUNS` of them: the interval then covers what differs from
one process to the next (memory layout, caches, other programs). With fewer, a sample is a stretch
of steps within a run, which does not cover that, so that only a large change counts.

Times are compared by the interval of the log ratio: of the difference of the mean logarithms. Each
end of it is wrong in `FALSE_ALARMS` of all cases, divided by the number of quantities that are
judged together (O. J. Dunn, J. Am. Stat. Assoc. 56, 1961), so that all of them together call the
same code slower in at most so many comparisons. `share` is the part of it for one quantity.

This holds if samples differ by chance alone. Three things that happen on machines are not chance:

- Another load comes and goes beside one side. It slows some samples and speeds up none, so the
  fastest samples of each side are least affected (J. Chen and J. Revels, arXiv:1608.04295, 2016). A
  change counts only if these differ, too, by the floor and by `LEAST_OF_FASTEST` of the change.
- It may hit most runs of one side by chance, the fastest among them. But it comes and goes within
  the runs, and leaves a stretch of steps alone in most. A slow-down that is not visible in the
  fastest stretch of each run, as of imports or of a rare refill, counts only if the whole interval
  lies far beyond the floor.
- The machine gets steadily slower, and base was measured first. If the runs show such a drift, the
  interval also covers what is left without it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median, variance
from typing import Literal

import numpy as np

from pipediag.estimates import student_interval, student_quantile
from pipediag.session.model import Session
from pipediag.session.record import Interval

Outcome = Literal["regressed", "improved", "same", "inconclusive", "not judged"]
Basis = Literal["runs", "blocks"]

FALSE_ALARMS = 0.01
"""Own choice: a gate that fails one of a hundred pull requests that changed nothing is trusted."""

FEWEST_RUNS = 3
"""Fewer show almost nothing of their spread: with two, Student's t spans a factor of thirty."""

FEWEST_BLOCKS = 5
"""Stretches of steps on each side. A stretch has `FEWEST_STEPS` at least."""
FEWEST_STEPS = 4
MOST_BLOCKS = 10

LEAST_OF_FASTEST = 0.5
"""Own choice: a load beside half of the runs makes the medians differ, the fastest by chance."""

LEAST_OF_PARTS = 2.0
"""Floors that the interval must exceed if the slow-down is not visible in the fastest steps.

Own choice, by simulation: beside every other run of head, another load makes the same code slower
in 0.45 % of comparisons with it, in 0.85 % with one floor, and in 1.8 % without the condition. It
costs slow-downs of a fifth in a fifth of the steps: 82 % are found where stretches differ by 10 %,
99.8 % where they differ by 5 %; of those of a tenth, few."""

_LARGEST_LOGARITHM = 50.0


@dataclass(frozen=True)
class Floors:
    """The smallest change that counts, and the one that must not hide in the noise."""

    counts: float
    hides: float


TIMES: dict[Basis, Floors] = {"runs": Floors(5.0, 20.0), "blocks": Floors(25.0, 50.0)}
"""Percent. Own choices. Repeated runs of one script differ by about a tenth: between single runs
only two and a half times that counts."""


@dataclass(frozen=True)
class Change:
    """A change from base to head, in percent of base."""

    value: float
    low: float
    high: float
    basis: Basis
    """Kind of the samples: whole runs, or stretches of steps within them."""
    samples: tuple[int, int]
    """The number of samples of base, and of head."""
    level: float
    """Level of the interval, percent."""
    fastest: float
    """Change between the fastest sample of each side, which other loads affect least."""
    drifting: bool = False
    """True if the runs show a machine that changed steadily from one to the next."""
    all_along: bool = True
    """True if the fastest stretch of steps of each run shows the change, too. If not, another load
    may have slowed parts of the runs."""


@dataclass(frozen=True)
class Order:
    """Order of runs: for each of base and of head, the number of runs that were made before it."""

    base: tuple[int, ...]
    head: tuple[int, ...]

    @property
    def alternates(self) -> bool:
        """True if each round has one run of both; the last round may lack one."""
        rounds = zip(self.base, self.head, strict=False)
        return abs(len(self.base) - len(self.head)) <= 1 and all(
            one // 2 == other // 2 == number for number, (one, other) in enumerate(rounds)
        )


def order_of(base: Sequence[Session], head: Sequence[Session]) -> Order | None:
    """Return the order by the times in the sessions; None if two of them have the same."""
    times = [session.created_at for session in (*base, *head)]
    if len(set(times)) < len(times):
        return None
    places = {time: at for at, time in enumerate(sorted(times))}
    return Order(
        tuple(places[session.created_at] for session in base),
        tuple(places[session.created_at] for session in head),
    )


def blocks(samples: Sequence[float]) -> list[float]:
    """Return means of consecutive stretches, which are less dependent than neighbouring steps."""
    length = max(FEWEST_STEPS, math.ceil(len(samples) / MOST_BLOCKS))
    whole = len(samples) // length
    return [fmean(samples[at * length : (at + 1) * length]) for at in range(whole)]


def change_of_times(
    base: Sequence[float],
    head: Sequence[float],
    share: float,
    order: Order | None = None,
    basis: Basis = "runs",
) -> Change:
    """Return the change in percent of base, with the interval of the log ratio.

    The value is that of the medians, which one odd run does not move. `order` is that of the runs;
    None if it is not known. All times are positive.
    """
    logs = [[math.log(one) for one in side] for side in (base, head)]
    value = math.log(median(head) / median(base))
    (low, high), drifting = interval_of(logs[0], logs[1], FALSE_ALARMS * share, order)
    return Change(
        value=_percent(value),
        low=_percent(min(low, value)),
        high=_percent(max(high, value)),
        basis=basis,
        samples=(len(base), len(head)),
        level=100.0 * (1.0 - 2.0 * FALSE_ALARMS * share),
        fastest=_percent(min(logs[1]) - min(logs[0])),
        drifting=drifting,
    )


def judge(change: Change, floors: Floors) -> Outcome:
    """Return slower or faster if the interval excludes no change and the value reaches the floor.

    A slow-down that is not visible in the fastest steps has to exceed `LEAST_OF_PARTS` floors.

    The outcome is "same" if the value is below the floor and nothing large can hide in the noise.
    What looks slower and may be chance, another load or a drift, and noise that would hide a large
    change, are inconclusive.
    """
    counts = abs(change.value) >= floors.counts and has_most_of(
        change.fastest, change.value, floors.counts
    )
    if change.low > (0.0 if change.all_along else LEAST_OF_PARTS * floors.counts) and counts:
        return "regressed"
    if change.high < 0.0 and counts:
        return "improved"
    if change.value < floors.counts and change.high < floors.hides:
        return "same"
    return "inconclusive"


def has_most_of(part: float, change: float, floor: float) -> bool:
    """Return True if the change of the least disturbed samples reaches the floor as well."""
    least = max(floor, LEAST_OF_FASTEST * abs(change))
    return math.copysign(1.0, change) * part >= least


def _percent(logarithm: float) -> float:
    """Convert a log ratio; the interval of very different runs can exceed what a float holds."""
    return 100.0 * math.expm1(min(logarithm, _LARGEST_LOGARITHM))


def interval_of(
    base: Sequence[float], head: Sequence[float], error: float, order: Order | None
) -> tuple[Interval, bool]:
    """Return the interval of the difference of the means, and whether the machine drifted.

    Each end is wrong in at most the share `error` of all cases. If runs of both versions alternate,
    the differences within rounds cancel what both runs of a round have in common, such as the state
    of the machine; otherwise they have half the degrees of freedom. So both intervals are made,
    each with half of the error, and their intersection is returned.

    If they do not alternate and the machine seems to have changed from run to run, no interval
    can separate that from the difference: it then also covers what is left without the drift.
    """
    if order is not None and order.alternates:
        low, high = welch(base, head, error / 2.0)
        differences = [after - before for before, after in zip(base, head, strict=False)]
        low_of_rounds, high_of_rounds = student_interval(differences, error / 2.0)
        return (max(low, low_of_rounds), min(high, high_of_rounds)), False
    low, high = welch(base, head, error)
    left = None if order is None else without_drift(base, head, error, order)
    if left is None:
        return (low, high), False
    return (min(low, left[0]), max(high, left[1])), True


def welch(base: Sequence[float], head: Sequence[float], error: float) -> Interval:
    """Return the interval for means with different spreads (B. L. Welch, Biometrika 34, 1947)."""
    difference = fmean(head) - fmean(base)
    parts = [variance(side) / len(side) for side in (base, head)]
    total = sum(parts)
    if total == 0.0:
        return difference, difference
    freedom = total**2 / sum(
        part**2 / (len(side) - 1) for part, side in zip(parts, (base, head), strict=True)
    )
    reach = student_quantile(1.0 - error, freedom) * math.sqrt(total)
    return difference - reach, difference + reach


def without_drift(
    base: Sequence[float], head: Sequence[float], error: float, order: Order
) -> Interval | None:
    """Return the interval of what is left if the machine also changed steadily from run to run.

    It is that of a least-squares fit of a difference and a slope over the places of the runs. None
    if they show no drift that makes the difference larger: if the slope is smaller than its own
    standard error.
    """
    values = np.array([*base, *head])
    sides = [0.0] * len(base) + [1.0] * len(head)
    design = np.column_stack((np.ones(len(values)), sides, [*order.base, *order.head]))
    unscaled = np.linalg.inv(design.T @ design)
    _, difference, slope = fit = unscaled @ design.T @ values
    freedom = len(values) - 3
    variance_left = float(np.sum((values - design @ fit) ** 2)) / freedom
    _, error_of_difference, error_of_slope = np.sqrt(variance_left * np.diag(unscaled))
    seen = fmean(head) - fmean(base)
    if abs(slope) <= error_of_slope or (seen - difference) * seen <= 0.0:
        return None
    reach = student_quantile(1.0 - error, freedom) * float(error_of_difference)
    return float(difference) - reach, float(difference) + reach
