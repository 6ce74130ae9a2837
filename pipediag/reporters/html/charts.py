"""Geometry of the report's drawings. The templates turn it into SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from pipediag.reporters.words.run_parts import Part
from pipediag.session.ledger import Run
from pipediag.session.loops import Share
from pipediag.session.model import Session
from pipediag.session.record import Interval
from pipediag.vocabulary import RunPartName, StepClass

MAX_BUCKETS = 500
CLIP_FACTOR = 3.0
"""Steps longer than this many times the 95th percentile are clipped: one 900 ms step would
otherwise press a thousand 10 ms steps into a line."""
_NARROWEST = 0.1
"""Percent of the timeline's width that is about a pixel."""
_CHARACTER_WIDE = 0.85
_CHARACTER_NARROW = 2.4
"""Percent of the bar that one character of a label takes, at about 950 and 340 pixels."""


@dataclass(frozen=True)
class _OfABar:
    """A piece of a bar, in percent of its width."""

    start: float
    width: float

    def fits(self, text: str, narrow: bool) -> bool:
        """Whether a label of that text stays over its own segment."""
        character = _CHARACTER_NARROW if narrow else _CHARACTER_WIDE
        return self.width >= (len(text) + 1) * character


@dataclass(frozen=True)
class Segment(_OfABar):
    """A class of the step."""

    name: StepClass
    share: Share


@dataclass(frozen=True)
class RunSegment(_OfABar):
    """A part of the run."""

    part: Part


def run_segments(parts: Sequence[Part]) -> list[RunSegment]:
    """The parts of the run, in their order."""
    segments: list[RunSegment] = []
    total = sum(part.percent for part in parts) or 100.0
    start = 0.0
    for part in parts:
        width = 100.0 * part.percent / total
        segments.append(RunSegment(start, width, part))
        start += width
    return segments


@dataclass(frozen=True)
class Passed(_OfABar):
    """A stretch of the run in one part, on the clock of the run."""

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


def breakdown_segments(breakdown: dict[StepClass, Share]) -> list[Segment]:
    """The classes in their order, those without any time left out."""
    segments: list[Segment] = []
    total = sum(share.percent for share in breakdown.values()) or 100.0
    start = 0.0
    for name, share in breakdown.items():
        width = 100.0 * share.percent / total
        if width > 0:
            segments.append(Segment(start, width, name, share))
        start += width
    return segments


def bar_cells(percent: float, full: int) -> int:
    """How many of a terminal bar's `full` cells are filled, also where no bar could show that."""
    return min(full, max(0, round(percent / 100 * full)))


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
    """None where there are no baseline samples to draw."""
    steps = session.steps
    if steps is None or not steps.samples_ms:
        return None
    samples = steps.samples_ms
    limit = CLIP_FACTOR * max(steps.p95_ms, steps.median_ms)
    longest = max(samples)
    clipped = sum(sample > limit for sample in samples) if limit > 0 else 0
    top = max((sample for sample in samples if not clipped or sample <= limit), default=longest)
    scale = max(top, steps.p95_ms) * 1.08 or 1.0
    buckets = min(len(samples), MAX_BUCKETS)
    return Strip(
        count=len(samples),
        buckets=buckets,
        scale_ms=scale,
        path=_strokes(samples, buckets, scale),
        clipped=clipped,
        longest_ms=longest,
        median_y=_height(steps.median_ms, scale),
        p95_y=_height(steps.p95_ms, scale),
    )


def _strokes(samples: Sequence[float], buckets: int, scale: float) -> Markup:
    strokes: list[str] = []
    for bucket in range(buckets):
        first = bucket * len(samples) // buckets
        last = (bucket + 1) * len(samples) // buckets
        values = samples[first:last]
        x = 1000.0 * (bucket + 0.5) / buckets
        low, high = _height(min(values), scale), _height(max(values), scale)
        strokes.append(f"M{x:.1f} {low:.1f}V{high:.1f}")
    return Markup("".join(strokes))  # of numbers alone, and as long as it has to be


def _height(value: float, scale: float) -> float:
    return max(0.0, 100.0 * (1.0 - value / scale))


@dataclass(frozen=True)
class Whisker:
    """A bar with its 95 % interval, in percent of the full width."""

    width: float
    low: float
    high: float


def whisker(percent: float, bounds: Interval, full: float = 100.0) -> Whisker:
    """`full` is the percentage at which the bar is full."""

    def scaled(value: float) -> float:
        return min(100.0, max(0.0, 100.0 * value / full))

    return Whisker(scaled(percent), scaled(bounds[0]), scaled(bounds[1]))
