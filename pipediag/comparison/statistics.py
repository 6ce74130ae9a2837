"""Whether head is slower than base, from samples of each: never from two numbers.

A sample is a run where each side has `FEWEST_RUNS` of them: what differs from one process to the
next (memory layout, caches, neighbours on the machine) is then in the interval. With fewer, it is a
stretch of steps within a run, which knows nothing of that, so that only a large change counts.

The interval is that of `intervals.py`, of the logarithms for times. Each of its ends is wrong in
`FALSE_ALARMS` of all cases, divided by the number of quantities that are judged together (O. J.
Dunn, J. Am. Stat. Assoc. 56, 1961): all of them together call the same code slower in at most so
many comparisons. `share` is what is left for one of them.

That holds where chance alone makes the samples differ. Some things that happen on machines are no
chance, and an interval knows nothing of them:

- Another load comes and goes beside one side. It slows some samples and speeds up none, so that the
  fastest of each side are least touched (J. Chen and J. Revels, arXiv:1608.04295, 2016). A change
  counts only where these differ by the floor, too, and by `LEAST_OF_FASTEST` of the change.
- It may be beside most runs of one side by chance, the fastest among them. Still it comes and goes
  within them, and leaves a stretch of steps alone in most. What got slower all along is slower in
  the fastest stretch of each run; what is not, as imports or a refill now and then, looks just as
  such a load does, and counts only where all of the interval lies far beyond the floor.
- The machine gets steadily slower, and base was measured first. Where the runs tell of such a
  drift, the interval holds what is left without it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist, fmean, median

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

LEAST_OF_PARTS = 2.0
"""Floors beyond which the interval of a slow-down lies that is not one all along. Own choice, by
simulation: beside every other run of head, another load makes the same code slower in 0.45 % of
comparisons with it, in 0.85 % with one floor, and in 1.8 % where the fastest steps are not asked.
What it costs is a slow-down of a fifth in a fifth of the steps: 82 % are found where stretches
differ by 10 %, 99.8 % where they differ by 5 %; of those of a tenth, few."""

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


def change_of_times(
    base: Samples, head: Samples, share: float, order: Order | None = None
) -> Change:
    """In percent of base, with that share of the error.

    The value is that of the medians, which one odd run does not move. `order` is that of runs;
    None where it is not known.
    """
    logs = [[math.log(one) for one in side.values] for side in (base, head)]
    value = math.log(median(head.values) / median(base.values))
    change = _change(logs[0], logs[1], value, base.basis, share, order)
    return replace(
        change,
        value=_percent(change.value),
        low=_percent(change.low),
        high=_percent(change.high),
        fastest=None if change.fastest is None else _percent(change.fastest),
    )


def change_of_shares(
    base: Samples, head: Samples, share: float, order: Order | None = None
) -> Change:
    """In points, with that share of the error."""
    value = median(head.values) - median(base.values)
    return _change(base.values, head.values, value, base.basis, share, order)


def change_of_measured_shares(base: Measured, head: Measured, share: float) -> Change:
    """In points, from the intervals that the sessions give: two standard errors to each side."""
    normal = NormalDist()
    value = head.percent - base.percent
    error = math.hypot(base.width, head.width) / (2.0 * normal.inv_cdf(0.975))
    reach = normal.inv_cdf(1.0 - FALSE_ALARMS * share) * error
    return Change(
        value=value,
        low=value - reach,
        high=value + reach,
        basis="steps",
        samples=(base.steps, head.steps),
        level=_level(share),
    )


def judge(change: Change, floors: Floors) -> Outcome:
    """Slower or faster where the interval excludes no change and the value reaches the floor.
    Slower where steps are not so all along: where the interval lies beyond `LEAST_OF_PARTS` floors.

    The same where the value is below the floor and nothing large can hide in the noise. What looks
    slower and may be chance, another load or a drift, and noise that would hide a lot, are
    inconclusive.
    """
    counts = _counts(change, floors.counts)
    if change.low > (0.0 if change.all_along else LEAST_OF_PARTS * floors.counts) and counts:
        return "regressed"
    if change.high < 0.0 and counts:
        return "improved"
    if change.value < floors.counts and change.high < floors.hides:
        return "same"
    return "inconclusive"


def _counts(change: Change, floor: float) -> bool:
    """Whether the change is large enough, and of the fastest samples, too."""
    if abs(change.value) < floor:
        return False
    return change.fastest is None or has_most_of(change.fastest, change.value, floor)


def has_most_of(part: float, change: float, floor: float) -> bool:
    """Whether what is left of a change where least disturbs it counts as well."""
    least = max(floor, LEAST_OF_FASTEST * abs(change))
    return math.copysign(1.0, change) * part >= least


def _change(
    base: Sequence[float],
    head: Sequence[float],
    value: float,
    basis: Basis,
    share: float,
    order: Order | None,
) -> Change:
    found = intervals.of_difference(base, head, FALSE_ALARMS * share, order)
    return Change(
        value=value,
        low=min(found.low, value),
        high=max(found.high, value),
        basis=basis,
        samples=(len(base), len(head)),
        level=_level(share),
        fastest=min(head) - min(base),
        drifting=found.drifting,
    )


def _percent(logarithm: float) -> float:
    """The interval of three very different runs can reach beyond what a float holds."""
    return 100.0 * math.expm1(min(logarithm, _LARGEST_LOGARITHM))


def _level(share: float) -> float:
    return 100.0 * (1.0 - 2.0 * FALSE_ALARMS * share)
