"""The span that each moment of the run belongs to, and its place in the ledger."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from pipediag.session.ledger import (
    EVALUATING_LOOP,
    EXITING,
    MAKING,
    READING,
    RunSpan,
    callback_words,
)
from pipediag.session.recorded_loops import RecordedLoop
from pipediag.session.timeline import Span
from pipediag.vocabulary import LoopRole, RunPartName, SpanKind

_OURS, _COMPILING, _EVALUATING, _INNERMOST = 3, 2, 1, 0
_RANK: dict[SpanKind, int] = {
    "aside": _OURS,
    "first_call": _COMPILING,
    "tracing": _COMPILING,
    "evaluation": _EVALUATING,
}
"""Spans that go before those that began later within them. All others give way."""

_CALLS: frozenset[SpanKind] = frozenset({"script", "fit", "evaluation", "callback"})
"""Spans that end after all that began in them."""


@dataclass(frozen=True)
class Segment:
    """Moments that belong to one span; `around` are all that were open, the outermost first."""

    start_ns: int
    end_ns: int
    span: Span | None
    """None outside of all."""
    around: tuple[Span, ...] = ()

    @property
    def ns(self) -> int:
        return self.end_ns - self.start_ns

    def within(self, kind: SpanKind) -> Span | None:
        """The innermost span of that kind that was open, if any."""
        return next((span for span in reversed(self.around) if span.kind == kind), None)


def segments_of(spans: Iterable[Span], start_ns: int, end_ns: int) -> list[Segment]:
    """Every moment from start to end in exactly one segment, in order."""
    clipped = [
        (max(start_ns, span.start_ns), min(end_ns, last_ns), span)
        for span, last_ns in _with_ends(spans, end_ns)
    ]
    lasting = [one for one in clipped if one[0] < one[1]]
    bounds = sorted({start_ns, end_ns, *(t for one in lasting for t in one[:2])})
    begin: dict[int, list[Span]] = {}
    end: dict[int, list[Span]] = {}
    for first, last, span in lasting:
        begin.setdefault(first, []).append(span)
        end.setdefault(last, []).append(span)
    segments: list[Segment] = []
    active: list[Span] = []
    for first, last in pairwise(bounds):
        for span in end.get(first, ()):
            active.remove(span)
        active.extend(begin.get(first, ()))
        active.sort(key=lambda span: (span.start_ns, span.id))
        segments.append(Segment(first, last, _owner(active), tuple(active)))
    return segments


def _with_ends(spans: Iterable[Span], end_ns: int) -> Iterator[tuple[Span, int]]:
    """Yield spans with ends: without one, to the end of the call around it, or of the run."""
    calls: list[int] = []
    for span in sorted(spans, key=lambda span: (span.start_ns, span.id)):
        while calls and calls[-1] <= span.start_ns:
            calls.pop()
        last_ns = span.end_ns
        if last_ns is None:
            last_ns = calls[-1] if calls else end_ns
        if span.kind in _CALLS:
            calls.append(last_ns)
        yield span, last_ns


def _owner(active: Sequence[Span]) -> Span | None:
    return max(
        active,
        key=lambda span: (_RANK.get(span.kind, _INNERMOST), span.start_ns, span.id),
        default=None,
    )


_READING_ROLES: frozenset[LoopRole] = frozenset({"preview", "preparation", "reading", "adapt"})
"""Roles of loops that count as the script's own code."""


@dataclass(frozen=True)
class Place:
    """A place where time goes; equal places add up to one row of the ledger."""

    part: RunPartName | None
    """None: to pipediag."""
    what: str | None = None
    file: str | None = None
    line: int | None = None
    loop_id: str | None = None
    """The training loop that it belongs to, or follows within its epochs."""


PIPEDIAG = Place(None)
EXIT = Place("after_training", EXITING)


@dataclass(frozen=True)
class Spent:
    """A stretch of time at one place."""

    place: Place
    start_ns: int
    end_ns: int
    fit: int | None = None
    """Id of the `fit` that it lies in."""
    span: Span | None = None
    loop_id: str | None = None
    """The training loop whose steps it lies in."""
    time: int | None = None
    """Identifies one occurrence: all tracing within one call is one."""

    @property
    def ns(self) -> int:
        return self.end_ns - self.start_ns


def own_ns(spent: Iterable[Spent]) -> int:
    """Return the script's own time, without pipediag's work and the interpreter's exit."""
    return sum(one.ns for one in spent if one.place not in (PIPEDIAG, EXIT))


def spent_on(segments: Sequence[Segment], loops: Iterable[RecordedLoop]) -> list[Spent]:
    """Return each segment with its place; outside of all spans by what is around it."""
    known = {loop.id: loop for loop in loops}
    segments = [_as_a_step(segment, known) for segment in segments]
    trainings = _Trainings(segments, known)
    spent = [_spent(segment, known, trainings) for segment in segments]
    for index in range(1, len(segments) - 1):
        if _starts_up(*segments[index - 1 : index + 2]):
            spent[index] = replace(spent[index], place=spent[index - 1].place)
    return list(_merged(spent))


def _as_a_step(segment: Segment, loops: dict[str, RecordedLoop]) -> Segment:
    """Count what each step predicts as a part of the step, as of a GAN's generator.

    Such steps last on while it predicts; all others are interrupted by the first batch of that.
    """
    steps, call = segment.within("steps"), segment.within("evaluation")
    if steps is None or call is None or _is_of(segment, ("aside",)):
        return segment
    goes_on = steps.start_ns <= call.start_ns and (
        steps.end_ns is None or (call.end_ns is not None and call.end_ns <= steps.end_ns)
    )
    loop = loops.get(steps.name)
    fed = loop is not None and loop.role == "training" and loop.from_python
    return replace(segment, span=steps) if goes_on and fed else segment


def _starts_up(made: Segment, segment: Segment, first: Segment) -> bool:
    """Return True if Keras has made an epoch's iterator and comes to its first step next.

    The last epoch's iterator goes meanwhile, and waits for its threads.
    """
    return (
        segment.span is not None
        and segment.span.kind == "fit"
        and _is_of(made, ("iterator",))
        and _is_of(first, ("first_batch", "steps", "first_call"))
    )


def _is_of(segment: Segment, kinds: tuple[SpanKind, ...]) -> bool:
    return segment.span is not None and segment.span.kind in kinds


class _Trainings:
    """Stretches in which a loop trains, in order."""

    def __init__(self, segments: Iterable[Segment], loops: dict[str, RecordedLoop]) -> None:
        self.stretches = [
            segment
            for segment in segments
            if segment.span is not None
            and segment.span.kind in ("steps", "first_batch")
            and _trains(segment.span, loops)
        ]
        self._starts = [one.start_ns for one in self.stretches]
        self._ends = [one.end_ns for one in self.stretches]

    def before(self, segment: Segment) -> Segment | None:
        index = bisect_right(self._ends, segment.start_ns)
        return self.stretches[index - 1] if index else None

    def after(self, segment: Segment) -> Segment | None:
        index = bisect_left(self._starts, segment.end_ns)
        return self.stretches[index] if index < len(self.stretches) else None


def _trains(span: Span, loops: dict[str, RecordedLoop]) -> bool:
    loop = loops.get(span.name)
    return loop is None or loop.role == "training"


def _spent(segment: Segment, loops: dict[str, RecordedLoop], trainings: _Trainings) -> Spent:
    span, fit = segment.span, segment.within("fit")
    place = _place(segment, loops, trainings)
    steps = segment.within("steps")
    return Spent(
        place,
        segment.start_ns,
        segment.end_ns,
        fit=fit.id if fit else None,
        span=span,
        loop_id=steps.name if steps is not None and _trains(steps, loops) else None,
        time=_traced_in(segment)[0].id if place.part == "compile" else span.id if span else None,
    )


def _place(segment: Segment, loops: dict[str, RecordedLoop], trainings: _Trainings) -> Place:
    span = segment.span
    if span is None:
        return _outside(segment, trainings)
    match span.kind:
        case "aside":
            place = PIPEDIAG
        case "first_call" | "tracing":
            place = _compiling(segment)
        case "evaluation" | "callback":
            place = _called(segment, span, _loop_id(trainings.before(segment)))
        case "iterator" | "first_batch" | "steps":
            place = _in_a_loop(segment, span, loops, trainings)
        case _:
            place = _outside(segment, trainings)
    return place


def _called(segment: Segment, span: Span, loop_id: str | None) -> Place:
    if span.kind == "callback":
        return Place("epoch_end", callback_words(span.name), span.file, span.line, loop_id)
    callback = segment.within("callback")
    if callback is not None:
        what = f"`{span.name}` in the callback {callback.name}"
    else:
        what = "validation in `fit`" if segment.within("fit") else f"`{span.name}`"
    return Place("evaluation", what, span.file, span.line, loop_id)


def _in_a_loop(
    segment: Segment, span: Span, loops: dict[str, RecordedLoop], trainings: _Trainings
) -> Place:
    loop = loops.get(span.name)
    if loop is None or loop.role == "training":
        part: RunPartName = "steps" if span.kind == "steps" else "epoch_start"
        what = MAKING if span.kind == "iterator" else None
        file, line = (loop.file, loop.line) if loop else (None, None)
        return Place(part, what, file, line, span.name)
    if loop.role in _READING_ROLES:
        outside = _outside(segment, trainings)
        return replace(outside, what=READING, file=loop.file, line=loop.line)
    followed = _loop_id(trainings.before(segment))
    return Place("evaluation", EVALUATING_LOOP, loop.file, loop.line, followed)


def _compiling(segment: Segment) -> Place:
    """Return the place of the outermost of nested tracing calls."""
    outer = _traced_in(segment)
    named = next((one for one in outer if one.name), None)
    call = segment.within("evaluation") or segment.within("fit")
    if named is None:
        name = call.name if call else "a function"
        place = (call.file, call.line) if call else (None, None)
        return Place("compile", f"what `{name}` builds", *place)
    if call is not None and (named.file, named.line) == (call.file, call.line):
        return Place("compile", f"the step of `{call.name}`", call.file, call.line)
    return Place("compile", named.name, named.file, named.line)


def _traced_in(segment: Segment) -> list[Span]:
    return [one for one in segment.around if one.kind in ("first_call", "tracing")]


def _outside(segment: Segment, trainings: _Trainings) -> Place:
    """Return the place of what the script or Keras does outside of all spans."""
    before, after, fit = trainings.before(segment), trainings.after(segment), segment.within("fit")
    if before is None:
        return Place("before_training")
    same_fit = _fit_id(before) == (fit.id if fit else None)
    if fit is not None:
        return Place("epoch_end", loop_id=_loop_id(before)) if same_fit else Place("between_loops")
    if after is None:
        return Place("after_training")
    goes_on = same_fit and _fit_id(after) is None and _loop_id(before) == _loop_id(after)
    return Place("epoch_end", loop_id=_loop_id(before)) if goes_on else Place("between_loops")


def _fit_id(segment: Segment) -> int | None:
    fit = segment.within("fit")
    return fit.id if fit else None


def _loop_id(segment: Segment | None) -> str | None:
    return segment.span.name if segment is not None and segment.span is not None else None


def _merged(all_spent: Iterable[Spent]) -> Iterator[Spent]:
    """Neighbours that belong to one span and place are one."""
    last: Spent | None = None
    for spent in all_spent:
        if last is not None and (last.place, last.span, last.fit) == (
            spent.place,
            spent.span,
            spent.fit,
        ):
            last = replace(last, end_ns=spent.end_ns)
            continue
        if last is not None:
            yield last
        last = spent
    if last is not None:
        yield last


MOST_SPANS = 500
"""Own choice: a thousand epochs have some thousands, each of them 100 bytes of JSON, and a screen
shows no more than the longest."""


def run_spans(spent: Iterable[Spent], started_ns: int) -> list[RunSpan]:
    """Return the longest stretches in order of time.

    `started_ns` is the recording's, from which steps and windows count.
    """
    spans = [
        RunSpan(
            part=one.place.part,
            start_ms=(one.start_ns - started_ns) / 1e6,
            duration_ms=one.ns / 1e6,
            what=one.place.what,
        )
        for one in _joined(spent)
        if one.ns > 0
    ]
    kept = sorted(spans, key=lambda span: -span.duration_ms)[:MOST_SPANS]
    return sorted(kept, key=lambda span: span.start_ms)


def _joined(spent: Iterable[Spent]) -> Iterator[Spent]:
    """Neighbours that are the same to a reader are one."""
    last: Spent | None = None
    for one in spent:
        if last is not None and last.end_ns == one.start_ns and last.place == one.place:
            last = replace(last, end_ns=one.end_ns)
            continue
        if last is not None:
            yield last
        last = one
    if last is not None:
        yield last
