"""What every form of a history says in the same words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import median

from pipediag.history.change_points import FEWEST, change_points
from pipediag.history.store import Point, Series

_LONGEST_COMMIT = 12
EMPTY = "The history is empty."


@dataclass(frozen=True)
class Move:
    """A place where a metric went to another level."""

    at: int
    """The position of the first measurement of the new level."""
    before: float
    after: float
    """Medians of the two levels."""
    said: str
    """The sentence."""


def by_script(found: Sequence[Series]) -> Iterator[tuple[str, list[Series]]]:
    """The series of each script on each machine, with its name."""
    for title, of_one in groupby(found, key=_title):
        yield title, list(of_one)


def _title(series: Series) -> str:
    return " ".join((series.script, *series.args)) + f" on {series.fingerprint}"


def moves(series: Series) -> list[Move]:
    """Where it moved, in order; less is better for every metric."""
    numbers = [point.value for point in series.points]
    edges = [0, *change_points(numbers), len(numbers)]
    return [
        _move(series, at, median(numbers[begin:at]), median(numbers[at:end]))
        for begin, at, end in zip(edges, edges[1:], edges[2:], strict=False)
    ]


def _move(series: Series, at: int, before: float, after: float) -> Move:
    said = (
        f"From {number(before)} to {number(after)} {series.metric.unit} "
        f"since {named(series.points[at])}."
    )
    return Move(at, before, after, said)


def too_few(of_one: Iterable[Series]) -> str | None:
    """Why nothing is looked for in some of them, as a sentence."""
    if min(len(series.points) for series in of_one) >= 2 * FEWEST:
        return None
    return f"A change is looked for from {2 * FEWEST} measurements on."


def latest(series: Series) -> str:
    """The newest value, and of how many."""
    return f"{value(series, series.points[-1].value)}, {len(series.points)} measured"


def value(series: Series, measured: float) -> str:
    """A value with its unit."""
    return f"{number(measured)} {series.metric.unit}"


def named(point: Point) -> str:
    """The commit and the day; the day alone where nobody said the commit."""
    day = point.created_at[:10]
    return day if point.commit is None else f"{point.commit[:_LONGEST_COMMIT]} ({day})"


def number(measured: float) -> str:
    """Three digits or more, no exponent where a person reads it."""
    return f"{measured:,.0f}" if abs(measured) >= 1000 else f"{measured:.3g}"
