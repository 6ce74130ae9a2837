"""Places in the ledger: of each moment, by its span, and of the script's lines seen running."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from pipediag.measures.pipeline import source_line
from pipediag.session.ledger import (
    EVALUATING_LOOP,
    EXITING,
    IN_CALLBACK,
    IN_FRAMEWORK,
    MAKING,
    OWN_LINE,
    READING,
    VALIDATION,
    CallbackLine,
    RunSpan,
    callback_words,
)
from pipediag.session.recorded_loops import RecordedLoop
from pipediag.session.timeline import SeenLine, SeenLines, Span
from pipediag.vocabulary import LoopRole, RunPartName, SpanKind

_OURS, _COMPILING, _EVALUATING, _INNERMOST = 3, 2, 1, 0
_RANK: dict[SpanKind, int] = {
    "aside": _OURS,
    "first_call": _COMPILING,
    "tracing": _COMPILING,
    "evaluation": _EVALUATING,
}
"""Kinds of spans that take precedence over those that began later within them."""

_CALLS: frozenset[SpanKind] = frozenset({"script", "fit", "evaluation", "callback"})
"""Kinds of spans that end after all that began in them."""


@dataclass(frozen=True)
class Place:
    """A place where time goes; equal places add up to one row of the ledger."""

    part: RunPartName | None
    """Part of the run; None for pipediag's own work."""
    what: str | None = None
    file: str | None = None
    line: int | None = None
    loop_id: str | None = None
    """The training loop that it belongs to, or follows within its epochs."""


PIPEDIAG = Place(None)
EXIT = Place("after_training", EXITING)


@dataclass(frozen=True)
class Spent:
    """A stretch of time at one place, which belongs to one span."""

    place: Place
    start_ns: int
    end_ns: int
    fit: int | None = None
    """Id of the `fit` that it lies in."""
    span: Span | None = None
    """Span that it belongs to; None outside of all."""
    loop_id: str | None = None
    """The training loop whose steps it lies in."""
    time: int | None = None
    """Number of one occurrence: all tracing within one call is one."""
    around: tuple[Span, ...] = field(default=(), compare=False, repr=False)
    """All spans that were open, the outermost first."""

    @property
    def ns(self) -> int:
        return self.end_ns - self.start_ns

    def within(self, kind: SpanKind) -> Span | None:
        """Return the innermost span of that kind that was open, if any."""
        return next((span for span in reversed(self.around) if span.kind == kind), None)

    def is_of(self, *kinds: SpanKind) -> bool:
        """Return True if it belongs to a span of one of these kinds."""
        return self.span is not None and self.span.kind in kinds


def segments_of(spans: Iterable[Span], start_ns: int, end_ns: int) -> list[Spent]:
    """Return stretches without places, in order, that cover each moment from start to end once."""
    begin: dict[int, list[Span]] = {}
    end: dict[int, list[Span]] = {}
    for span, last_ns in _with_ends(spans, end_ns):
        first, last = max(start_ns, span.start_ns), min(end_ns, last_ns)
        if first < last:
            begin.setdefault(first, []).append(span)
            end.setdefault(last, []).append(span)
    segments: list[Spent] = []
    active: list[Span] = []
    for first, last in pairwise(sorted({start_ns, end_ns, *begin, *end})):
        for span in end.get(first, ()):
            active.remove(span)
        active.extend(begin.get(first, ()))
        active.sort(key=lambda span: (span.start_ns, span.id))
        owner = max(
            active,
            key=lambda span: (_RANK.get(span.kind, _INNERMOST), span.start_ns, span.id),
            default=None,
        )
        fit = next((span.id for span in reversed(active) if span.kind == "fit"), None)
        segments.append(Spent(PIPEDIAG, first, last, fit, owner, around=tuple(active)))
    return segments


def _with_ends(spans: Iterable[Span], end_ns: int) -> Iterator[tuple[Span, int]]:
    """Yield spans with their ends: without one, that of the call around it, or of the run."""
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


_READING_ROLES: frozenset[LoopRole] = frozenset({"preview", "preparation", "reading", "adapt"})
"""Roles of loops that count as the script's own code."""


def own_ns(spent: Iterable[Spent]) -> int:
    """Return the script's own time, without pipediag's work and the interpreter's exit."""
    return sum(one.ns for one in spent if one.place not in (PIPEDIAG, EXIT))


def spent_on(segments: Sequence[Spent], loops: Iterable[RecordedLoop]) -> list[Spent]:
    """Return each segment with its place; outside of all spans, by what is around it."""
    known = {loop.id: loop for loop in loops}
    segments = [_as_a_step(_as_a_call(segment), known) for segment in segments]
    trained = [
        one if one.is_of("steps", "first_batch") and _trains(one.span, known) else None
        for one in segments
    ]
    befores, afters = _last_before(trained), _last_before(trained[::-1])[::-1]
    spent = []
    for segment, before, after in zip(segments, befores, afters, strict=True):
        steps = segment.within("steps")
        loop_id = steps.name if steps is not None and _trains(steps, known) else None
        place = _place(segment, known, before, after)
        time = segment.span.id if segment.span else None
        time = _traced_in(segment)[0].id if place.part == "compile" else time
        spent.append(replace(segment, place=place, loop_id=loop_id, time=time))
    for index in range(1, len(segments) - 1):
        made, segment, first = segments[index - 1 : index + 2]
        # Keras has made an epoch's iterator and comes to its first step next; meanwhile the last
        # epoch's iterator is destroyed, which waits for its threads.
        if (
            segment.is_of("fit")
            and made.is_of("iterator")
            and first.is_of("first_batch", "steps", "first_call")
        ):
            spent[index] = replace(spent[index], place=spent[index - 1].place)
    return _joined(spent, lambda one: (one.place, one.span, one.fit))


def _last_before(trained: Iterable[Spent | None]) -> list[Spent | None]:
    """Return for each stretch the last one that trains before it."""
    found: list[Spent | None] = [None]
    for one in trained:
        found.append(one or found[-1])
    return found[:-1]


def _as_a_call(segment: Spent) -> Spent:
    """Count the dataset that Keras makes in each `predict` and `evaluate` as a part of the call."""
    call = segment.within("evaluation")
    if call is None or not segment.is_of("tracing"):
        return segment
    unnamed = not any(one.name for one in _traced_in(segment))
    return replace(segment, span=call) if unnamed else segment


def _as_a_step(segment: Spent, loops: dict[str, RecordedLoop]) -> Spent:
    """Count a prediction within each step, as of a GAN's generator, as a part of the step.

    Such steps go on while it predicts; all others are interrupted by the prediction's first batch.
    """
    steps, call = segment.within("steps"), segment.within("evaluation")
    if steps is None or call is None or segment.is_of("aside"):
        return segment
    goes_on = steps.start_ns <= call.start_ns and (
        steps.end_ns is None or (call.end_ns is not None and call.end_ns <= steps.end_ns)
    )
    loop = loops.get(steps.name)
    fed = loop is not None and loop.role == "training" and loop.from_python
    return replace(segment, span=steps) if goes_on and fed else segment


def _trains(span: Span | None, loops: dict[str, RecordedLoop]) -> bool:
    return span is not None and (span.name not in loops or loops[span.name].role == "training")


def _place(
    segment: Spent, loops: dict[str, RecordedLoop], before: Spent | None, after: Spent | None
) -> Place:
    """Return its place; a loop trains in the stretch `before` it, and in the one `after` it."""
    match segment.span:
        case Span(kind="aside"):
            return PIPEDIAG
        case Span(kind="first_call" | "tracing"):
            return _compiling(segment)
        case Span(kind="callback", name=name) as span:
            what = callback_words(name)
            return Place("epoch_end", what, span.file, span.line, _loop_id(before))
        case Span(kind="evaluation", name=name) as span:
            callback = segment.within("callback")
            if callback is not None:
                what = f"`{name}` {IN_CALLBACK} {callback.name}"
            else:
                what = VALIDATION if segment.within("fit") else f"`{name}`"
            return Place("evaluation", what, span.file, span.line, _loop_id(before))
        case Span(kind="iterator" | "first_batch" | "steps", name=name) as span:
            return _in_a_loop(segment, span, loops.get(name), before, after)
        case _:
            return _outside(segment, before, after)


def _in_a_loop(
    segment: Spent,
    span: Span,
    loop: RecordedLoop | None,
    before: Spent | None,
    after: Spent | None,
) -> Place:
    if loop is None or loop.role == "training":
        part: RunPartName = "steps" if span.kind == "steps" else "epoch_start"
        what = MAKING if span.kind == "iterator" else None
        file, line = (loop.file, loop.line) if loop else (None, None)
        return Place(part, what, file, line, span.name)
    if loop.role in _READING_ROLES:
        outside = _outside(segment, before, after)
        return replace(outside, what=READING, file=loop.file, line=loop.line)
    return Place("evaluation", EVALUATING_LOOP, loop.file, loop.line, _loop_id(before))


def _compiling(segment: Spent) -> Place:
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


def _traced_in(segment: Spent) -> list[Span]:
    return [one for one in segment.around if one.kind in ("first_call", "tracing")]


def _outside(segment: Spent, before: Spent | None, after: Spent | None) -> Place:
    """Return the place of what the script or Keras does outside of all spans."""
    if before is None:
        return Place("before_training")
    same_fit = before.fit == segment.fit
    if segment.fit is None and after is None:
        return Place("after_training")
    goes_on = same_fit and (
        segment.fit is not None
        or (after is not None and after.fit is None and _loop_id(before) == _loop_id(after))
    )
    return Place("epoch_end", loop_id=_loop_id(before)) if goes_on else Place("between_loops")


def _loop_id(segment: Spent | None) -> str | None:
    return segment.span.name if segment is not None and segment.span is not None else None


def _joined(spent: Iterable[Spent], key: Callable[[Spent], object]) -> list[Spent]:
    """Return neighbours with the same key as one."""
    joined: list[Spent] = []
    for one in spent:
        if joined and joined[-1].end_ns == one.start_ns and key(joined[-1]) == key(one):
            joined[-1] = replace(joined[-1], end_ns=one.end_ns)
        else:
            joined.append(one)
    return joined


MOST_SPANS = 500
"""Most stretches that are kept. Own choice: a thousand epochs have some thousands, each of them 100
bytes of JSON, and a screen shows no more than the longest."""


def run_spans(spent: Iterable[Spent], started_ns: int) -> list[RunSpan]:
    """Return the longest stretches in order of time, which counts from the recording's start."""
    spans = [
        RunSpan(
            part=one.place.part,
            start_ms=(one.start_ns - started_ns) / 1e6,
            duration_ms=one.ns / 1e6,
            what=one.place.what,
        )
        for one in _joined(spent, lambda one: one.place)
        if one.ns > 0
    ]
    kept = sorted(spans, key=lambda span: -span.duration_ms)[:MOST_SPANS]
    return sorted(kept, key=lambda span: span.start_ms)


# The script's own lines that were seen running outside of all spans, put where they belong.

_LINED = frozenset({"before_training", "between_loops", "epoch_end", "after_training"})
_FEWEST_MS = 50
"""Least time of a line that counts. Own choice: fewer samples may have met it by chance."""


Shares = dict[Place, dict[Place, float]]
_Evaluating = Mapping[tuple[str | None, int | None], Place]
"""The loops that evaluate, by their lines."""


def line_shares(
    spent: Sequence[Spent], seen: Sequence[SeenLines], ns_at: Mapping[Place, int]
) -> Shares:
    """Return the shares of each place that its lines took, imports counted as start-up. Lines that
    were seen for longer than a place lasted are scaled down to it."""
    evaluating = {
        (one.place.file, one.place.line): one.place
        for one in spent
        if one.place.part == "evaluation" and one.place.what == EVALUATING_LOOP
    }
    return {
        place: _shares(place, lines, ns_at[place], evaluating)
        for place, lines in _by_place(spent, seen).items()
        if place.part in _LINED and place.what is None
    }


def at_line_of(loop: RecordedLoop, shares: Shares) -> dict[Place, float]:
    """Return the shares of the ends of epochs for which the loop's own line ran."""
    own = (loop.file, loop.line)
    return {
        place: sum(share for line, share in lines.items() if (line.file, line.line) == own)
        for place, lines in shares.items()
        if place.part == "epoch_end" and place.loop_id == loop.id
    }


_MOST_LINES = 12
"""Most lines of a callback that are kept. Own choice."""


def callback_lines(
    spent: Sequence[Spent], seen: Sequence[SeenLines]
) -> dict[Place, list[CallbackLine]]:
    """Return the lines sampled in each callback of the script's own, and in each loop of its own
    that evaluates, the longest first; places are of no loop, as these may run for several."""
    spent = [replace(one, place=replace(one.place, loop_id=None)) for one in spent]
    return {
        place: [
            CallbackLine(
                what=place.what or "",
                loop_line=place.line if place.part == "evaluation" else None,
                file=line.file,
                line=line.line,
                function=line.function,
                percent=100.0 * ns / sum(lines.values()),
                in_framework=line.in_framework,
                code=source_line(line.file, line.line),
            )
            for line, ns in sorted(lines.items(), key=lambda one: -one[1])[:_MOST_LINES]
        ]
        for place, lines in _by_place(spent, seen).items()
        if (place.part == "epoch_end" or place.what == EVALUATING_LOOP)
        and place.what is not None
        and place.line is not None
        and max(lines.values()) >= _FEWEST_MS * 1_000_000
    }


def _by_place(
    spent: Sequence[Spent], seen: Sequence[SeenLines]
) -> dict[Place, dict[SeenLine, int]]:
    """Return lines and their nanoseconds, by the place of the moments of their samples."""
    starts = [one.start_ns for one in spent]
    places: dict[Place, dict[SeenLine, int]] = {}
    for group in seen:
        middle_ns = (group.start_ns + group.end_ns) // 2
        for line in group.lines:
            index = bisect_right(starts, middle_ns if line.at_ns is None else line.at_ns) - 1
            if index >= 0:
                lines = places.setdefault(spent[index].place, {})
                key = replace(line, ns=0, at_ns=None)
                lines[key] = lines.get(key, 0) + line.ns
    return places


def _shares(
    place: Place, lines: Mapping[SeenLine, int], whole_ns: int, evaluating: _Evaluating
) -> dict[Place, float]:
    seen_ns = sum(lines.values())
    if whole_ns <= 0 or seen_ns <= 0:
        return {}
    scale = min(1.0, whole_ns / seen_ns)
    shares: dict[Place, float] = {}
    for line, ns in lines.items():
        if line.importing or ns * scale >= _FEWEST_MS * 1_000_000:
            # An import was seen in its own code, and in a framework's that it imports.
            own = _of_line(place, line, evaluating)
            shares[own] = shares.get(own, 0.0) + ns * scale / whole_ns
    return shares


def _of_line(place: Place, line: SeenLine, evaluating: _Evaluating) -> Place:
    if line.importing:
        return Place("startup", "imports", line.file, line.line)
    evaluation = evaluating.get((line.file, line.line))
    if evaluation is not None and place.part != "before_training":
        return evaluation
    what = OWN_LINE if line.function == "<module>" else f"in `{line.function}`"
    whose = IN_FRAMEWORK if line.in_framework else ""
    return replace(place, what=what + whose, file=line.file, line=line.line)
