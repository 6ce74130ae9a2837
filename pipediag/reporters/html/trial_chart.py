"""Geometry of a trial's drawing: the ratio of each round, and the interval that they give.

Where the pipeline ran alone, both are its own, and what they come to for a step stands beside them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from statistics import fmean

from markupsafe import Markup

from pipediag.reporters.words.pipeline_estimate import is_estimate
from pipediag.reporters.words.quantities import counted, speedup, speedup_interval
from pipediag.session.record import Interval
from pipediag.session.trials import WORTHWHILE, Combined, Trial, TrialRun
from pipediag.vocabulary import BASE

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

    path: Markup
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
    estimate: float | None
    """What a step gains by estimate; None where steps were measured."""
    estimated: float | None
    estimate_labelled: bool
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
    figures: Trial | Combined,
) -> TrialChart | None:
    """None where no round had both the base and the arm with these edits."""
    ratios = round_ratios(run, edits) if run is not None and edits else []
    if not ratios:
        return None
    alone = is_estimate(figures)
    measured = figures.pipeline_speedup if alone else figures.speedup
    bounds = figures.pipeline_ci95 if alone else figures.ci95
    estimated = figures.speedup if alone else None
    known = [each for each in (measured, estimated) if each is not None]
    shown: list[float] = [*ratios, 1.0, WORTHWHILE, *(bounds or ()), *known]
    low, high = min(shown), max(shown)
    margin = _MARGIN * (high - low)

    def x(ratio: float) -> float:
        return 100.0 * (ratio - low + margin) / (high - low + 2 * margin)

    none, limit = x(1.0), x(WORTHWHILE)
    mean = x(measured) if measured is not None else None
    estimate = x(estimated) if estimated is not None else None
    mean_labelled = _apart(mean, none, limit)
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
        mean_labelled=mean_labelled,
        estimate=estimate,
        estimated=estimated,
        estimate_labelled=_apart(estimate, none, limit, mean if mean_labelled else None),
        words=_words(ratios, bounds, estimated),
    )


def _apart(place: float | None, *others: float | None) -> bool:
    """Whether there is room for a label."""
    return place is not None and all(
        abs(place - other) >= _APART for other in others if other is not None
    )


def _dots(places: list[float]) -> Markup:
    apart = (_HEIGHT - 2 * _EDGE) / len(places)
    dots = (f"M{x:.2f} {_EDGE + apart * (index + 0.5):.1f}h0" for index, x in enumerate(places))
    return Markup("".join(dots))  # of numbers alone, and as long as it has to be


def _words(ratios: list[float], bounds: Interval | None, estimated: float | None) -> str:
    listed = ", ".join(map(speedup, ratios))
    interval = f"; 95 % interval {speedup_interval(bounds)}" if bounds else ""
    what = "Speed-up" if estimated is None else "Speed-up of the pipeline alone"
    step = "" if estimated is None else f"; a step is estimated at {speedup(estimated)}"
    return f"{what} in each of {counted(len(ratios), 'round')}: {listed}{interval}{step}"
