"""A comparison as one page: no script, nothing fetched."""

from __future__ import annotations

from dataclasses import dataclass

from pipediag.comparison import wording
from pipediag.comparison.result import Change, Comparison, Quantity
from pipediag.encoding.pages import page_template

_WIDTH = 600.0
"""Of a drawing, in its own units."""
_MARGIN = 0.1
"""Of the drawn range, to each side."""
_LEAST, _MOST = -100.0, 1_000.0
"""Percent. What three very different runs can give lies beyond, and is drawn to the edge."""


@dataclass(frozen=True)
class Drawing:
    """Places along the line of a change, from 0 to `_WIDTH`."""

    nothing: float
    floor: float
    low: float
    high: float
    value: float


def render(comparison: Comparison) -> str:
    """The page: what was judged with its intervals drawn, what explains it, and a closing line."""
    judged = [one for one in comparison.quantities if one.outcome != "not judged"]
    return page_template(__package__, "comparison.html.j2").render(
        comparison=comparison,
        judged=[(one, _drawing(one)) for one in judged],
        others=[one for one in comparison.quantities if one.outcome == "not judged"],
        explained=list(wording.explained(comparison)),
        width=_WIDTH,
        wording=wording,
    )


def _drawing(quantity: Quantity) -> Drawing | None:
    change, floor = quantity.change, quantity.floor
    if change is None or floor is None:
        return None
    ends = [0.0, floor, *_drawn(change)]
    low, high = min(ends), max(ends)
    reach = (high - low) or 1.0
    places = [_WIDTH * (_MARGIN + (1.0 - 2.0 * _MARGIN) * (end - low) / reach) for end in ends]
    return Drawing(*places)


def _drawn(change: Change) -> tuple[float, float, float]:
    low, high, value = (
        min(_MOST, max(_LEAST, one)) for one in (change.low, change.high, change.value)
    )
    return low, high, value
