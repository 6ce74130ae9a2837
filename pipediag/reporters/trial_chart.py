"""Geometry of a trial's drawing: the ratio of each round, and the interval that they give."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from statistics import fmean

from pipediag.reporters.quantities import counted, speedup, speedup_interval
from pipediag.session.record import Interval
from pipediag.session.trials import BASE, WORTHWHILE, TrialRun

_JOINT = " + "
_MARGIN = 0.08
"""Of the scale, left free on both sides, so that no dot is cut."""
_APART = 20.0
"""Percent of the width from which the labels of two lines do not run into each other on a phone."""
_HEIGHT = 48
_EDGE = 6.0
"""Pixels above the first and below the last round."""


@dataclass(frozen=True)
class TrialChart:
    """Horizontal positions are percent of the drawing's width."""

    path: str
    """A stroke without length, so a dot, for each round, the first on top; in a view box of 100
    by `height`."""
    height: int
    none: float
    """Where a change does nothing: 1.00x."""
    limit: float
    """Where `confirmed` begins: 1.03x."""
    low: float | None
    high: float | None
    """The interval; None where there is none."""
    mean: float | None
    measured: float | None
    limit_labelled: bool
    mean_labelled: bool
    """Whether they are far enough from other labels for one of their own."""
    words: str
    """The same for those who do not see it."""


def round_ratios(run: TrialRun, edits: Collection[str]) -> list[float]:
    """Throughput of the arm with these edits divided by the base's, for each round with both."""
    rounds: dict[int, dict[bool, list[float]]] = defaultdict(lambda: {True: [], False: []})
    for block in run.blocks:
        is_base = block.arm == BASE
        if is_base or set(block.arm.split(_JOINT)) == set(edits):
            rounds[block.round][is_base].append(block.examples_per_s)
    return [
        fmean(arms[False]) / fmean(arms[True])
        for _, arms in sorted(rounds.items())
        if arms[False] and arms[True] and fmean(arms[True]) > 0
    ]


def trial_chart(
    run: TrialRun | None,
    edits: Collection[str],
    measured: float | None,
    bounds: Interval | None,
) -> TrialChart | None:
    """None where no round had both the base and the arm with these edits."""
    ratios = round_ratios(run, edits) if run is not None and edits else []
    if not ratios:
        return None
    shown: list[float] = [*ratios, 1.0, WORTHWHILE, *(bounds or ())]
    if measured is not None:
        shown.append(measured)
    low, high = min(shown), max(shown)
    margin = _MARGIN * (high - low)

    def x(ratio: float) -> float:
        return 100.0 * (ratio - low + margin) / (high - low + 2 * margin)

    none, limit = x(1.0), x(WORTHWHILE)
    mean = x(measured) if measured is not None else None
    return TrialChart(
        path=_dots([x(ratio) for ratio in ratios]),
        height=_HEIGHT,
        none=none,
        limit=limit,
        low=x(bounds[0]) if bounds else None,
        high=x(bounds[1]) if bounds else None,
        mean=mean,
        measured=measured,
        limit_labelled=limit - none >= _APART,
        mean_labelled=mean is not None and min(abs(mean - none), abs(mean - limit)) >= _APART,
        words=_words(ratios, bounds),
    )


def _dots(places: list[float]) -> str:
    apart = (_HEIGHT - 2 * _EDGE) / len(places)
    return "".join(
        f"M{x:.2f} {_EDGE + apart * (index + 0.5):.1f}h0" for index, x in enumerate(places)
    )


def _words(ratios: list[float], bounds: Interval | None) -> str:
    listed = ", ".join(map(speedup, ratios))
    interval = f"; 95 % interval {speedup_interval(bounds)}" if bounds else ""
    return f"Speed-up in each of {counted(len(ratios), 'round')}: {listed}{interval}"
