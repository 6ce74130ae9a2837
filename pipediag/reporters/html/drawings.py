"""Geometry of the page's drawings. The templates turn it into HTML and SVG."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from markupsafe import Markup

from pipediag.facts.names import RUN_PART
from pipediag.reporters.words import trials
from pipediag.reporters.words.labels import STEP_CLASS
from pipediag.reporters.words.quantities import (
    counted,
    milliseconds,
    seconds,
    speedup,
    speedup_interval,
)
from pipediag.reporters.words.run import Part
from pipediag.session.ledger import Run
from pipediag.session.loops import Share
from pipediag.session.model import Session
from pipediag.session.trials import Combined, Trial, TrialRun
from pipediag.vocabulary import BASE, RunPartName, StepClass

MAX_BUCKETS = 500
CLIP_FACTOR = 3.0
"""Steps longer than this many times the 95th percentile are clipped: one 900 ms step would
otherwise press a thousand 10 ms steps into a line."""
_NARROWEST = 0.1
"""Percent of the timeline's width that is about a pixel."""


@dataclass(frozen=True)
class Segment:
    """A piece of a bar."""

    kind: str
    """The class of the style sheet that colours it."""
    name: str
    width: float
    """In percent of the bar."""
    amount: str
    """`4.81 ms`."""


def step_bar(breakdown: Mapping[StepClass, Share]) -> list[Segment]:
    """Return the classes of the step that take any time."""
    return _bar(
        (name, STEP_CLASS[name], share.percent, milliseconds(share.ms))
        for name, share in breakdown.items()
    )


def run_bar(parts: Iterable[Part]) -> list[Segment]:
    """Return the parts of the run."""
    return _bar(
        (f"part-{part.name}", RUN_PART[part.name], part.percent, seconds(part.seconds))
        for part in parts
    )


def _bar(pieces: Iterable[tuple[str, str, float, str]]) -> list[Segment]:
    shown = [piece for piece in pieces if piece[2] > 0]
    total = sum(percent for _, _, percent, _ in shown)
    return [
        Segment(kind, name, 100.0 * percent / total, amount)
        for kind, name, percent, amount in shown
    ]


@dataclass(frozen=True)
class Passed:
    """A stretch of the run in one part, on the clock of the run, in percent of its length."""

    start: float
    width: float
    part: RunPartName | None
    """None: pipediag's own work."""


def run_timeline(run: Run | None) -> list[Passed]:
    """Return the run as it passed: stretches of one part, those too short to be seen joined."""
    spans = sorted(run.spans, key=lambda one: one.start_ms) if run is not None else []
    if not spans:
        return []
    begin = spans[0].start_ms
    whole = max(one.start_ms + one.duration_ms for one in spans) - begin or 1.0
    found: list[Passed] = []
    for span in spans:
        start, width = (100.0 * part / whole for part in (span.start_ms - begin, span.duration_ms))
        last = found[-1] if found else None
        if last is not None and start + width - last.start < _NARROWEST:
            # The longer of two stretches that share a pixel gives its colour.
            longer = last.part if last.width >= width else span.part
            found[-1] = Passed(last.start, start + width - last.start, longer)
        elif last is not None and last.part == span.part:
            found[-1] = Passed(last.start, start + width - last.start, last.part)
        else:
            found.append(Passed(start, width, span.part))
    return found


@dataclass(frozen=True)
class Strip:
    """Step times as vertical strokes from minimum to maximum of each bucket.

    Coordinates are for a view box of 1000 by 100.
    """

    count: int
    buckets: int
    scale_ms: float
    path: Markup
    clipped: int
    longest_ms: float
    median_y: float
    p95_y: float


def step_strip(session: Session) -> Strip | None:
    """Return None where there are no baseline samples to draw."""
    steps = session.steps
    if steps is None or not steps.samples_ms:
        return None
    samples = steps.samples_ms
    limit = CLIP_FACTOR * max(steps.p95_ms, steps.median_ms)
    clipped = sum(sample > limit for sample in samples) if limit > 0 else 0
    top = max((one for one in samples if not clipped or one <= limit), default=max(samples))
    scale = max(top, steps.p95_ms) * 1.08 or 1.0
    buckets = min(len(samples), MAX_BUCKETS)
    return Strip(
        count=len(samples),
        buckets=buckets,
        scale_ms=scale,
        path=_strokes(samples, buckets, scale),
        clipped=clipped,
        longest_ms=max(samples),
        median_y=_height(steps.median_ms, scale),
        p95_y=_height(steps.p95_ms, scale),
    )


def _strokes(samples: Sequence[float], buckets: int, scale: float) -> Markup:
    strokes: list[str] = []
    for bucket in range(buckets):
        first, last = (place * len(samples) // buckets for place in (bucket, bucket + 1))
        values = samples[first:last]
        x = 1000.0 * (bucket + 0.5) / buckets
        low, high = _height(min(values), scale), _height(max(values), scale)
        strokes.append(f"M{x:.1f} {low:.1f}V{high:.1f}")
    return Markup("".join(strokes))  # of numbers alone, and as long as it has to be


def _height(value: float, scale: float) -> float:
    return max(0.0, 100.0 * (1.0 - value / scale))


_MARGIN = 0.08
"""Part of the scale that is left free on both sides, so that no dot is cut."""


@dataclass(frozen=True)
class TrialChart:
    """The ratio of each round of a trial with the interval of all, in percent of the width."""

    rounds: list[float]
    nothing_gained: float
    interval: tuple[float, float] | None
    words: str
    """The same for those who do not see it."""


def trial_chart(
    run: TrialRun | None, edits: Collection[str], figures: Trial | Combined
) -> TrialChart | None:
    """Return None where no round had both the base and a block with these edits."""
    ratios = round_ratios(run, edits) if run is not None and edits else []
    if not ratios:
        return None
    alone = trials.is_estimate(figures)
    bounds = figures.pipeline_ci95 if alone else figures.ci95
    shown: list[float] = [*ratios, 1.0, *(bounds or ())]
    low, high = min(shown), max(shown)
    margin = _MARGIN * (high - low) or 1.0

    def x(ratio: float) -> float:
        return 100.0 * (ratio - low + margin) / (high - low + 2 * margin)

    rounds = f"{' of the pipeline alone' if alone else ''} in {counted(len(ratios), 'round')}"
    listed = ", ".join(map(speedup, ratios))
    interval = f"; 95 % interval {speedup_interval(bounds)}" if bounds else ""
    return TrialChart(
        rounds=list(map(x, ratios)),
        nothing_gained=x(1.0),
        interval=(x(bounds[0]), x(bounds[1])) if bounds else None,
        words=f"Speed-up{rounds}: {listed}{interval}",
    )


def round_ratios(run: TrialRun, edits: Collection[str]) -> list[float]:
    """Return throughput with these edits divided by the base's, for each round with both."""
    rounds: dict[int, dict[bool, list[float]]] = defaultdict(lambda: {True: [], False: []})
    for block in run.blocks:
        is_base = block.arm == BASE
        if is_base or trials.edits_of(block) == set(edits):
            rounds[block.round][is_base].append(block.examples_per_s)
    return [
        fmean(rates[False]) / fmean(rates[True])
        for _, rates in sorted(rounds.items())
        if rates[False] and rates[True] and fmean(rates[True]) > 0
    ]
