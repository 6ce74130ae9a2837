"""The quantities of a session that limits and comparisons are about."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from pipediag.facts.run import whole_in_words
from pipediag.facts.run_gain import ONCE_OFF
from pipediag.facts.step import GROUPS
from pipediag.session.ledger import RunPart
from pipediag.session.model import Session
from pipediag.session.record import Interval
from pipediag.vocabulary import RunPartName, StepClass

Unit = Literal["percent", "ratio", "us", "ms", "s"]

INPUT: tuple[StepClass, ...] = ("input_wait",)
OVERHEAD: tuple[StepClass, ...] = GROUPS["overhead"]

SHORTEST, LONGEST = 1e-6, 1e12
"""Bounds of a time in milliseconds or seconds: a stranger's file may hold impossible values."""


@dataclass(frozen=True)
class Measured:
    """A value with its 95 % interval; a time that was taken once has none but itself."""

    value: float
    interval: Interval
    of: str = ""
    """The whole that it is a share of, such as `the step`."""
    runs: tuple[float, ...] = ()
    """The value of each run, where there are several."""


Value = Callable[[Session], Measured | str]
"""Returns what a session has; a text says why it has none."""


def run_in_the_middle(runs: Sequence[Session]) -> Session:
    """Return the run with the median step; runs without steps count as slowest."""
    slowest_last = sorted(runs, key=lambda run: run.steps.mean_ms if run.steps else math.inf)
    return slowest_last[(len(runs) - 1) // 2]


def step_ms(session: Session) -> Measured | str:
    """Return the mean step, to which the breakdown adds up and which includes input bursts."""
    if session.steps is None:
        return session.steps_missing or "no step was measured."
    return _time(session.steps.mean_ms)


def example_us(session: Session) -> Measured | str:
    """Return the microseconds of the mean step for each example of its batch."""
    if session.steps is None or not session.steps.batch_size:
        return "the size of its batches is not known."
    return _time(1000.0 * session.steps.mean_ms / session.steps.batch_size)


def run_s(session: Session) -> Measured | str:
    """Return the seconds of the run, observed or projected, without those that pipediag took."""
    return _no_ledger(session) if session.run is None else _time(session.run.whole_s)


def part_s(session: Session, part: RunPartName) -> Measured | str:
    """Return the seconds of a part of the run; it may have none."""
    if session.run is None:
        return _no_ledger(session)
    seconds = session.run.seconds_of(part)
    return Measured(seconds, (seconds, seconds))


def part_percent(session: Session, part: RunPartName) -> Measured | str:
    """Return the share of the run that all rows of a part take together."""
    if session.run is None:
        return _no_ledger(session)
    bounds = [_bounds(row) for row in session.run.parts if row.part == part]
    interval = sum(low for low, _ in bounds), sum(high for _, high in bounds)
    return _share(session.run.percent_of(part), interval, whole_in_words(session.run))


def step_percent(session: Session, classes: Sequence[StepClass]) -> Measured | str:
    """Return the share of the step in these classes together.

    The ends of the intervals are added. That is never narrower than the true interval of the sum,
    whatever the correlation between the classes.
    """
    if session.breakdown is None:
        return session.breakdown_missing or "the session has no breakdown of the step."
    missing = [name for name in classes if name not in session.breakdown]
    if missing:
        return f"the breakdown lacks {', '.join(missing)}."
    shares = [session.breakdown[name] for name in classes]
    low = sum(share.ci95_percent[0] for share in shares)
    high = sum(share.ci95_percent[1] for share in shares)
    return _share(sum(share.percent for share in shares), (low, high), "the step")


def _bounds(row: RunPart) -> Interval:
    """Return the interval of a row: what was timed once has none, a projection always has one."""
    if row.ci95_percent is not None:
        return row.ci95_percent
    off = ONCE_OFF * row.percent if row.basis == "projected" else 0.0
    return row.percent - off, row.percent + off


def _no_ledger(session: Session) -> str:
    return session.run_missing or "the session has no ledger of the run."


def _time(value: float) -> Measured | str:
    possible = SHORTEST <= value <= LONGEST
    return Measured(value, (value, value)) if possible else "its value is impossible for a time."


def _share(value: float, interval: Interval, of: str) -> Measured | str:
    possible = -1.0 <= value <= 101.0
    return Measured(value, interval, of) if possible else "its value is impossible for a share."
