"""Limits that several rules compare a run with, and the upper bound by Amdahl's law."""

from __future__ import annotations

from dataclasses import dataclass

from pipediag.session.record import Interval

MOST_FREED = 0.99
"""Part of a time that can go at most: what would remain is not known well enough to divide by."""


def bound(whole: float, removable: float, calls: float | None = None) -> float | None:
    """Return how many times as fast something gets at most without the removable part of its time.

    With `calls` that part is not removed, but divided among so many calls at once. None where
    nothing is known to be removable.
    """
    freed = removable if calls is None else removable * (1.0 - 1.0 / max(calls, 1.0))
    if whole <= 0.0 or freed <= 0.0:
        return None
    return round(whole / (whole - min(freed, MOST_FREED * whole)), 3)


@dataclass(frozen=True)
class Threshold:
    """A limit, with the place it comes from, so that a reader can disagree with it."""

    name: str
    value: float
    unit: str
    source: str


INPUT_WAIT = Threshold("input wait", 5.0, "% of the step", "XProf: under 5 % the input is fine")
INPUT_BOUND = Threshold(
    "large input wait", 20.0, "% of the step", "XProf: over 20 % the input is the bottleneck"
)
OPERATION_SHARE = Threshold(
    "delay of the operation",
    INPUT_WAIT.value,
    "% of the step",
    "own choice, equal to the limit on input wait",
)
INPUT_GAPS = Threshold(
    "waiting for input that comes first",
    INPUT_BOUND.value,
    "% of the device's span",
    "XProf: over 20 % the input is the bottleneck",
)
PERTURBED = Threshold(
    "profiled step over a step without the profiler, above which host time in the profile is not "
    "trusted",
    1.5,
    "times",
    "own choice: a profile that makes steps half as long again has doubtful proportions",
)
_OF_INPUT = (INPUT_WAIT.value, INPUT_BOUND.value)


def limits_within(interval: Interval) -> list[float]:
    """Return the limits on the input wait that its 95 % interval straddles."""
    low, high = interval
    return [limit for limit in _OF_INPUT if low < limit <= high]


def on_other_sides(one: float, other: float) -> bool:
    """Return True if a limit on the input wait lies between two shares of the step."""
    return any((one < limit) != (other < limit) for limit in _OF_INPUT)


SLOWED_RATIO = 1.1
"""Ratio under which nothing is said of it. Own choice: a share of the profiled step is then
off by about a tenth of itself at most."""

WORTH_DOING = 1.1
"""Speed-up of the run, or of the step where there is no ledger, under which advice that no trial
confirmed is not named as something to do. Own choice: what buys less than a tenth at most may buy
nothing."""
