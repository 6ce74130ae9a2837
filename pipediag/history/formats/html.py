"""A history as one page: no script, nothing fetched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipediag.encoding.pages import page_template
from pipediag.history import wording
from pipediag.history.store import Series
from pipediag.history.wording import Move

WIDTH, HEIGHT = 600.0, 120.0
"""Of a drawing, in its own units."""
_MARGIN = 8.0
MOST_DRAWN = 400
"""Measurements; of a longer series the newest are drawn. More would lie upon one another."""


@dataclass(frozen=True)
class Dot:
    """One measurement."""

    x: float
    y: float
    title: str
    """What is said of it where somebody points at it."""


@dataclass(frozen=True)
class Level:
    """The median between two moves."""

    begin: float
    end: float
    y: float


@dataclass(frozen=True)
class Change:
    """Where it moved."""

    x: float
    worse: bool


@dataclass(frozen=True)
class Drawing:
    """A series over its measurements, each as far from the next: days without any take no room."""

    dots: tuple[Dot, ...]
    levels: tuple[Level, ...]
    changes: tuple[Change, ...]
    span: str
    """The lowest and the highest of them, as a sentence."""
    left_out: int
    """The oldest, which have no room."""


def render(found: Sequence[Series]) -> str:
    """The page: of each script and machine the trend of each metric, and where it moved."""
    scripts = [
        (
            title,
            [(series, said := wording.moves(series), _drawing(series, said)) for series in of_one],
            wording.too_few(of_one),
        )
        for title, of_one in wording.by_script(found)
    ]
    return page_template(__package__, "history.html.j2").render(
        scripts=scripts, width=WIDTH, height=HEIGHT, wording=wording
    )


def _drawing(series: Series, moves: Sequence[Move]) -> Drawing:
    left_out = max(0, len(series.points) - MOST_DRAWN)
    points = series.points[left_out:]
    low, high = min(one.value for one in points), max(one.value for one in points)

    def x(at: float) -> float:
        return _MARGIN + (WIDTH - 2 * _MARGIN) * at / max(1, len(points) - 1)

    def y(value: float) -> float:
        share = (min(high, max(low, value)) - low) / (high - low) if high > low else 0.5
        return HEIGHT - _MARGIN - (HEIGHT - 2 * _MARGIN) * share

    ends = [*(move.at for move in moves), len(series.points)]
    levels = [moves[0].before, *(move.after for move in moves)] if moves else []
    shown = [(end - left_out, level) for end, level in zip(ends, levels, strict=False)]
    begins = [0, *(end for end, _ in shown)]
    return Drawing(
        dots=tuple(
            Dot(x(at), y(one.value), f"{wording.value(series, one.value)}, {wording.named(one)}")
            for at, one in enumerate(points)
        ),
        levels=tuple(
            Level(x(max(0, begin)), x(end - 1), y(level))
            for begin, (end, level) in zip(begins, shown, strict=False)
            if end > 0
        ),
        changes=tuple(
            Change(x(move.at - left_out - 0.5), worse=move.after > move.before)
            for move in moves
            if move.at > left_out
        ),
        span=_span(series, low, high),
        left_out=left_out,
    )


def _span(series: Series, low: float, high: float) -> str:
    if low == high:
        return f"Always {wording.value(series, high)}."
    return f"Drawn from {wording.number(low)} to {wording.value(series, high)}."
