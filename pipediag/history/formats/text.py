"""A history for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from statistics import median

from pipediag.encoding.terminal import lines
from pipediag.history.change_points import FEWEST, change_points
from pipediag.history.store import Point, Series

_BARS = "▁▂▃▄▅▆▇█"
_WIDTH = 40
"""Bars; of a longer series the newest are drawn."""
_LONGEST_COMMIT = 12


def render(found: Sequence[Series]) -> str:
    """Each script and machine, with the trend of each metric and where it moved."""
    said: list[str] = []
    for title, of_one in groupby(found, key=_title):
        said += [*([""] if said else []), title, *_body(list(of_one))]
    return lines(said or ["The history is empty."])


def _title(series: Series) -> str:
    return " ".join((series.script, *series.args)) + f" on {series.fingerprint}"


def _body(of_one: Sequence[Series]) -> Iterator[str]:
    for series in of_one:
        yield from _lines(series)
    if min(len(series.points) for series in of_one) < 2 * FEWEST:
        yield f"  A change is looked for from {2 * FEWEST} measurements on."


def _lines(series: Series) -> Iterator[str]:
    numbers = [point.value for point in series.points]
    metric = series.metric
    yield (
        f"  {metric.label:<12}{_drawn(numbers)}  {_number(numbers[-1])} {metric.unit}, "
        f"{len(numbers)} measured"
    )
    edges = [0, *change_points(numbers), len(numbers)]
    for begin, at, end in zip(edges, edges[1:], edges[2:], strict=False):
        before, after = median(numbers[begin:at]), median(numbers[at:end])
        yield (
            f"              From {_number(before)} to {_number(after)} {metric.unit} "
            f"since {_named(series.points[at])}."
        )


def _drawn(numbers: Sequence[float]) -> str:
    shown = numbers[-_WIDTH:]
    low, high = min(shown), max(shown)
    if high <= low:
        return _BARS[0] * len(shown)
    scale = (len(_BARS) - 1) / (high - low)
    return "".join(_BARS[round((one - low) * scale)] for one in shown)


def _named(point: Point) -> str:
    day = point.created_at[:10]
    return day if point.commit is None else f"{point.commit[:_LONGEST_COMMIT]} ({day})"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
