"""What is measured, held against a limit: by its whole interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median, stdev

from pipediag.gate.result import Check, CheckOutcome, Unit
from pipediag.student import student_quantile

Place = tuple[str | None, int | None]

UNIT_WORDS: dict[Unit, str] = {"percent": " %", "ratio": "x", "ms": " ms", "s": " s"}

_MORE_RUNS = "More runs (--repeats) make the interval narrower."
"""What runs differ by from one to the next, no length of them makes smaller."""

MEDIAN_BY_MEAN = math.sqrt(math.pi / 2.0)
"""Standard error of a median over that of a mean, of many normal values; of few it is less."""


@dataclass(frozen=True)
class Limit:
    """One that the configuration sets."""

    name: str
    """Its key."""
    label: str
    most: float
    unit: Unit = "percent"


@dataclass(frozen=True)
class Measured:
    """A value with its 95 % interval, in the unit of the limit."""

    value: float
    interval: tuple[float, float]
    of: str = ""
    """What it is a share of: `the step`."""
    runs: tuple[float, ...] = ()
    """The value of each run, where there are several."""


def of_runs(found: Sequence[Measured | str]) -> Measured | str:
    """Several runs as one: the median, and an interval that holds the spread from run to run.

    Steps within one run are not independent of one another: what a process has of luck (memory
    layout, page cache, neighbours) is in all of them. So the interval is Student's over the runs,
    stretched as that of a median is wider than that of a mean, and never narrower than what the
    runs have by themselves. One run that lacks it leaves all of them without.
    """
    missing = next((one for one in found if isinstance(one, str)), None)
    if missing is not None:
        return missing
    runs = [one for one in found if isinstance(one, Measured)]
    if len(runs) == 1:
        return runs[0]
    values = tuple(one.value for one in runs)
    middle = median(values)
    reach = student(len(values)) * MEDIAN_BY_MEAN * stdev(values) / math.sqrt(len(values))
    low = min(middle - reach, median(one.interval[0] for one in runs))
    high = max(middle + reach, median(one.interval[1] for one in runs))
    return replace(runs[0], value=middle, interval=(low, high), runs=values)


def judged(limit: Limit, measured: Measured | str, place: Place, *, narrower: str) -> Check:
    """The check of one limit; a text in place of what was measured says why nothing was.

    `narrower` says how an interval of one run that holds the limit can be made narrower, as a
    sentence.
    """
    if isinstance(measured, str):
        return Check(
            name=limit.name,
            outcome="inconclusive",
            severity="error",
            sentence=f"{limit.label} was not measured: {measured}",
            limit=limit.most,
            unit=limit.unit,
        )
    interval = _possible(measured.interval, limit.unit)
    outcome, ending = _compare(interval, limit, _MORE_RUNS if measured.runs else narrower)
    return Check(
        name=limit.name,
        outcome=outcome,
        severity="error",
        sentence=f"{limit.label}: {_said(measured, interval, limit.unit)}, {ending}",
        value=measured.value,
        interval=interval,
        limit=limit.most,
        unit=limit.unit,
        file=place[0],
        line=place[1],
    )


def number(value: float, unit: Unit) -> str:
    """As many digits as its unit wants; of a time three, as steps take microseconds or minutes."""
    if unit in ("ms", "s"):
        return f"{value:,.0f}" if abs(value) >= 1000.0 else f"{value:.3g}"
    return f"{value:.{2 if unit == 'ratio' else 1}f}"


def student(count: int) -> float:
    """Return how many standard errors a 95 % interval of so many values reaches to each side."""
    return student_quantile(0.975, count - 1)


def _possible(interval: tuple[float, float], unit: Unit) -> tuple[float, float]:
    """No value is below nothing, and no share above all."""
    low, high = interval
    return max(0.0, low), min(100.0, high) if unit == "percent" else high


def _said(measured: Measured, interval: tuple[float, float], unit: Unit) -> str:
    word = UNIT_WORDS[unit]
    low, high = (number(end, unit) for end in interval)
    of = f" of {measured.of}" if measured.of else ""
    runs = ", ".join(number(one, unit) for one in measured.runs)
    each = f"median of {runs}; " if runs else ""
    return f"{number(measured.value, unit)}{word}{of} ({each}95 % interval {low} to {high}{word})"


def _compare(
    interval: tuple[float, float], limit: Limit, narrower: str
) -> tuple[CheckOutcome, str]:
    low, high = interval
    most = f"{limit.most:g}{UNIT_WORDS[limit.unit]}"
    if low > limit.most:
        return "fail", f"over the limit of {most}."
    if high <= limit.most:
        return "pass", f"within the limit of {most}."
    return "inconclusive", (
        f"and the limit of {most} lies inside the interval: too close to call. {narrower}"
    )
