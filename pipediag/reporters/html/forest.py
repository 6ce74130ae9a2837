"""All advice on one axis: what was predicted of each change, and what trials measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeGuard

from pipediag.reporters.words import pipeline_estimate
from pipediag.reporters.words.trial_outcomes import outcome
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.session.record import LikelyRange
from pipediag.session.trials import WORTHWHILE
from pipediag.vocabulary import TrialState

MOST_ROWS = 10
_ROUND = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)
_APART = 12.0
"""Percent of the width from which two numbers under the axis do not run into each other."""
_MARGIN = 0.04
"""Of the axis, free on both sides, so that no mark is cut."""
_LEAST_SPAN = math.log(1.25)
"""Below it noise would fill the drawing."""


@dataclass(frozen=True)
class Row:
    """One change. Horizontal positions are percent of the axis."""

    label: str
    rule: str
    state: TrialState
    predicted: float | None
    """Where nothing was predicted, the most that it can be."""
    likely: tuple[float, float] | None
    """Both ends of the range in which the prediction is likely to be measured."""
    measured: float | None
    low: float | None
    high: float | None
    estimated: bool
    """Whether the pipeline ran alone, so that a step's gain follows from that."""
    word: str
    numbers: str


@dataclass(frozen=True)
class Tick:
    x: float
    text: str


@dataclass(frozen=True)
class Forest:
    """Speed-ups on a logarithmic axis, on which twice as fast is as far as half as fast."""

    rows: list[Row]
    more: int
    """Changes that there is no room for."""
    none: float
    """Where a change does nothing."""
    limit: float
    """Where `confirmed` begins."""
    ticks: list[Tick]


def forest(session: Session) -> Forest | None:
    """In the order of the findings; None where there are not two to hold against each other."""
    found = [finding for finding in session.findings if _figures(finding)]
    if len(found) < 2:
        return None
    shown = found[:MOST_ROWS]
    axis = _Axis([figure for finding in shown for figure in _figures(finding)])
    return Forest(
        rows=[_row(finding, axis) for finding in shown],
        more=len(found) - len(shown),
        none=axis.x(1.0),
        limit=axis.x(WORTHWHILE),
        ticks=axis.ticks(),
    )


class _Axis:
    def __init__(self, figures: Sequence[float]) -> None:
        low, high = math.log(min(1.0, *figures)), math.log(max(WORTHWHILE, *figures))
        self._span = max(high - low, _LEAST_SPAN)
        self._low = low

    def x(self, figure: float) -> float:
        part = (math.log(figure) - self._low) / self._span
        return 100.0 * (_MARGIN + (1.0 - 2.0 * _MARGIN) * part)

    def ticks(self) -> list[Tick]:
        """Round figures, that of 1x first of all, as far as they are apart."""
        kept = [Tick(self.x(1.0), "1x")]
        for figure in (one * 10.0**power for power in range(-2, 6) for one in _ROUND):
            x = self.x(figure)
            if 0.0 <= x <= 100.0 and all(abs(x - tick.x) >= _APART for tick in kept):
                kept.append(Tick(x, f"{figure:,.3g}x"))
        return sorted(kept, key=lambda tick: tick.x)


def _figures(finding: Finding) -> list[float]:
    """What there is to draw of it; nothing of what no speed settles."""
    if finding.status not in ("fail", "informative") or finding.about_results:
        return []
    trial = finding.trial
    likely = finding.predicted_range or ()
    known = [_predicted(finding), *likely, trial.speedup, *(trial.ci95 or ())]
    return [figure for figure in known if _drawn(figure)]


def _drawn(figure: float | None) -> TypeGuard[float]:
    return figure is not None and 0.0 < figure < math.inf


def _predicted(finding: Finding) -> float | None:
    return finding.predicted_speedup or finding.speedup_at_most


def _ends(bounds: LikelyRange | None, axis: _Axis) -> tuple[float, float] | None:
    if bounds is None or not all(map(_drawn, bounds)):
        return None
    return (axis.x(bounds[0]), axis.x(bounds[1]))


def _row(finding: Finding, axis: _Axis) -> Row:
    def place(figure: float | None) -> float | None:
        return axis.x(figure) if _drawn(figure) else None

    low, high = finding.trial.ci95 or (None, None)
    known = outcome(finding)
    assert known is not None, "what was neither tried nor predicted has no figure"
    return Row(
        label=finding.edit.label if finding.edit is not None else finding.title,
        rule=finding.rule,
        state=finding.trial.state,
        predicted=place(_predicted(finding)),
        likely=_ends(finding.predicted_range, axis),
        measured=place(finding.trial.speedup),
        low=place(low),
        high=place(high),
        estimated=pipeline_estimate.is_estimate(finding.trial),
        word=known.word,
        numbers=known.numbers,
    )
