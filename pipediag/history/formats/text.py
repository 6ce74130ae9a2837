"""A history for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pipediag.encoding.terminal import lines
from pipediag.history.store import Series
from pipediag.history.wording import EMPTY, by_script, latest, moves, too_few

_BARS = "▁▂▃▄▅▆▇█"
_WIDTH = 40
"""Bars; of a longer series the newest are drawn."""


def render(found: Sequence[Series]) -> str:
    """Each script and machine, with the trend of each metric and where it moved."""
    said: list[str] = []
    for title, of_one in by_script(found):
        said += [*([""] if said else []), title, *_body(of_one)]
    return lines(said or [EMPTY])


def _body(of_one: Sequence[Series]) -> Iterator[str]:
    for series in of_one:
        drawn = _drawn([point.value for point in series.points])
        yield f"  {series.metric.label:<12}{drawn}  {latest(series)}"
        yield from (f"              {move.said}" for move in moves(series))
    if (why := too_few(of_one)) is not None:
        yield f"  {why}"


def _drawn(numbers: Sequence[float]) -> str:
    shown = numbers[-_WIDTH:]
    low, high = min(shown), max(shown)
    if high <= low:
        return _BARS[0] * len(shown)
    scale = (len(_BARS) - 1) / (high - low)
    return "".join(_BARS[round((one - low) * scale)] for one in shown)
