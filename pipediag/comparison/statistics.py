"""Whether head is slower than base, from samples of each: never from two numbers.

A sample is a run where each side has `FEWEST_RUNS` of them: what differs from one process to the
next (memory layout, caches, neighbours on the machine) is then in the interval. With fewer, it is a
stretch of steps within a run, which knows nothing of that, so that only a large change counts.

The interval is that of `intervals.py`, of the logarithms for times. Each of its ends is wrong in
`FALSE_ALARMS` of all cases, divided by the number of quantities that are judged together (O. J.
Dunn, J. Am. Stat. Assoc. 56, 1961): all of them together call the same code slower in at most so
many comparisons.

That holds where chance alone makes the samples differ. Two things that happen on machines are no
chance, and an interval knows nothing of them:

- Another load comes and goes beside one side. It slows some samples and speeds up none, so that the
  fastest of each side are least touched (J. Chen and J. Revels, arXiv:1608.04295, 2016). A change
  counts only where these differ by the floor, too, and by `LEAST_OF_FASTEST` of the change.
- The machine gets steadily slower, and base was measured first. Where the runs tell of such a
  drift, the interval holds what is left without it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median

from pipediag.comparison import intervals
from pipediag.comparison.order import Order
from pipediag.comparison.result import Basis, Change, Outcome

FALSE_ALARMS = 0.01
"""Own choice: a gate that fails one of a hundred pull requests that changed nothing is believed."""

FEWEST_RUNS = 3
"""Fewer say next to nothing of their spread: with two, Student's t spans a factor of thirty."""

FEWEST_BLOCKS = 5
"""Of a side. A stretch holds `FEWEST_STEPS` at least."""
FEWEST_STEPS = 4
MOST_BLOCKS = 10

LEAST_OF_FASTEST = 0.5
"""Own choice: a load beside half of the runs makes the medians differ, the fastest by chance."""

_LARGEST_LOGARITHM = 50.0


@dataclass(frozen=True)
class Floors:
    """What a change must reach to count, and what must not hide in the noise where it passes."""

    counts: float
    hides: float


TIMES: dict[Basis, Floors] = {"runs": Floors(5.0, 20.0), "blocks": Floors(25.0, 50.0)}
"""Percent. Own choices. Repeated runs of one script differ by about a tenth: between single runs
only two and a half times that counts."""

SHARES: dict[Basis, Floors] = {"runs": Floors(5.0, 20.0), "steps": Floors(10.0, 30.0)}
"""Points. XProf's limits for input wait are 5 and 20 % of the step."""


@dataclass(frozen=True)
class Samples:
    """What is known of one side: numbers of one basis, all positive where they are times."""

    values: tuple[float, ...]
    basis: Basis

    @property
    def enough(self) -> bool:
        return len(self.values) >= (FEWEST_RUNS if self.basis == "runs" else FEWEST_BLOCKS)


def blocks(samples: Sequence[float]) -> list[float]:
    """Means of consecutive stretches: neighbouring steps depend on one another, stretches less."""
    length = max(FEWEST_STEPS, math.ceil(len(samples) / MOST_BLOCKS))
    whole = len(samples) // length
    return [fmean(samples[at * length : (at + 1) * length]) for at in range(whole)]


@dataclass(frozen=True)
class Measured:
    """A share of one side as its sessions have it, where stretches of it were not kept."""

    percent: float
    width: float
    """Of its 95 % interval, which is from a bootstrap over stretches of steps."""
    steps: int


def change_of_times(base: Samples, head: Samples, tests: int, order: Order | None = None) -> Change:
    """In percent of base; `tests` quantities are judged together.

    The value is that of the medians, which one odd run does not move. `order` is that of runs;
    None where it is not known.
    """
    logs = [[math.log(one) for one in side.values] for side in (base, head)]
    value = math.log(median(head.values) / median(base.values))
    change = _change(logs[0], logs[1], value, base.basis, tests, order)
    return replace(
        change,
        value=_percent(change.value),
        low=_percent(change.low),
        high=_percent(change.high),
        fastest=None if change.fastest is None else _percent(change.fastest),
    )


def change_of_shares(
    base: Samples, head: Samples, tests: int, order: Order | None = None
) -> Change:
    """In points; `tests` quantities are judged together."""
    value = median(head.values) - median(base.values)
    return _change(base.values, head.values, value, base.basis, tests, order)


def change_of_measured_shares(base: Measured, head: Measured, tests: int) -> Change:
    """In points, from the intervals that the sessions give: two standard errors to each side."""
    from scipy import stats

    value = head.percent - base.percent
    error = math.hypot(base.width, head.width) / (2.0 * float(stats.norm.ppf(0.975)))
    reach = float(stats.norm.ppf(1.0 - FALSE_ALARMS / tests)) * error
    return Change(
        value=value,
        low=value - reach,
        high=value + reach,
        basis="steps",
        samples=(base.steps, head.steps),
        level=_level(tests),
    )


def judge(change: Change, floors: Floors) -> Outcome:
    """Slower or faster where the interval excludes no change and the value reaches the floor.

    The same where the value is below the floor and nothing large can hide in the noise. What looks
    slower and may be chance, another load or a drift, and noise that would hide a lot, are
    inconclusive.
    """
    counts = _counts(change, floors.counts)
    if change.low > 0.0 and counts:
        return "regressed"
    if change.high < 0.0 and counts:
        return "improved"
    if change.value < floors.counts and change.high < floors.hides:
        return "same"
    return "inconclusive"


def _counts(change: Change, floor: float) -> bool:
    """Whether the change is large enough, and of the fastest samples, too."""
    size = abs(change.value)
    fastest = change.value if change.fastest is None else change.fastest
    return size >= floor and math.copysign(1.0, change.value) * fastest >= max(
        floor, LEAST_OF_FASTEST * size
    )


def _change(
    base: Sequence[float],
    head: Sequence[float],
    value: float,
    basis: Basis,
    tests: int,
    order: Order | None,
) -> Change:
    found = intervals.of_difference(base, head, FALSE_ALARMS / tests, order)
    return Change(
        value=value,
        low=min(found.low, value),
        high=max(found.high, value),
        basis=basis,
        samples=(len(base), len(head)),
        level=_level(tests),
        fastest=min(head) - min(base),
        drifting=found.drifting,
    )


def _percent(logarithm: float) -> float:
    """The interval of three very different runs can reach beyond what a float holds."""
    return 100.0 * math.expm1(min(logarithm, _LARGEST_LOGARITHM))


def _level(tests: int) -> float:
    return 100.0 * (1.0 - 2.0 * FALSE_ALARMS / tests)
