"""What sessions say of a quantity: a number for each, or why there is none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pipediag.facts.step import GROUPS
from pipediag.session.model import Session
from pipediag.session.steps import Steps
from pipediag.vocabulary import RunPartName, StepClass

Value = Callable[[Session], float | str]
"""A text in place of a number says why there is none."""

_SHORTEST, _LONGEST = 1e-6, 1e12
"""Milliseconds or seconds: a file of a stranger may hold what no clock gives."""

INPUT: tuple[StepClass, ...] = ("input_wait",)
OVERHEAD: tuple[StepClass, ...] = GROUPS["overhead"]


@dataclass(frozen=True)
class Values:
    """Of both sides, or what is missing."""

    base: tuple[float, ...] = ()
    head: tuple[float, ...] = ()
    missing: str | None = None


def values_of(base: Sequence[Session], head: Sequence[Session], value: Value) -> Values:
    """The numbers of all sessions, or why one of them has none."""
    found: list[list[float]] = []
    for name, sessions in (("base", base), ("head", head)):
        numbers = [value(session) for session in sessions]
        for number in numbers:
            if isinstance(number, str):
                return Values(missing=f"Not known of {name}: {number}")
        found.append([number for number in numbers if not isinstance(number, str)])
    return Values(tuple(found[0]), tuple(found[1]))


def step_ms(session: Session) -> float | str:
    """The mean, which the breakdown adds up to, and which holds the bursts of an input."""
    if session.steps is None:
        return session.steps_missing or "no step was measured."
    return _time(session.steps.mean_ms)


def example_us(session: Session) -> float | str:
    """Microseconds of the step for each example of its batch."""
    if session.steps is None or not session.steps.batch_size:
        return "the size of its batches is not known."
    return _time(1000.0 * session.steps.mean_ms / session.steps.batch_size)


def samples_ms(steps: Steps) -> list[float]:
    """Every baseline step that a clock can have given."""
    return [one for one in steps.samples_ms if _SHORTEST <= one <= _LONGEST]


def run_s(session: Session) -> float | str:
    """The run as far as it was seen or is projected, without what pipediag took."""
    if session.run is None:
        return session.run_missing or "the session has no ledger of the run."
    return _time(session.run.whole_s)


def part_s(part: RunPartName) -> Value:
    """Seconds of a part of the run."""

    def seconds(session: Session) -> float | str:
        if session.run is None:
            return session.run_missing or "the session has no ledger of the run."
        return session.run.seconds_of(part)

    return seconds


def part_percent(part: RunPartName) -> Value:
    """Percent of the run that a part takes."""

    def percent(session: Session) -> float | str:
        if session.run is None:
            return session.run_missing or "the session has no ledger of the run."
        return _share(session.run.percent_of(part))

    return percent


def step_percent(classes: Sequence[StepClass]) -> Value:
    """Percent of the step in these classes together."""

    def percent(session: Session) -> float | str:
        if session.breakdown is None:
            return session.breakdown_missing or "the session has no breakdown of the step."
        if any(name not in session.breakdown for name in classes):
            return "the breakdown lacks a part of it."
        return _share(sum(session.breakdown[name].percent for name in classes))

    return percent


def step_percent_width(session: Session, classes: Sequence[StepClass]) -> float:
    """Of the 95 % interval of these classes together, points; never too narrow."""
    shares = [(session.breakdown or {})[name] for name in classes]
    return sum(abs(share.ci95_percent[1] - share.ci95_percent[0]) for share in shares)


def _time(value: float) -> float | str:
    return value if _SHORTEST <= value <= _LONGEST else "it is no time that a clock gives."


def _share(value: float) -> float | str:
    return value if -1.0 <= value <= 101.0 else "it is no share."
