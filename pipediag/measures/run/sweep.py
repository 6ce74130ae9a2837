"""Which span each moment of the run belongs to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pipediag.session.timeline import Span
from pipediag.vocabulary import SpanKind

_OURS, _COMPILING, _EVALUATING, _INNERMOST = 3, 2, 1, 0
_RANK: dict[SpanKind, int] = {
    "aside": _OURS,
    "first_call": _COMPILING,
    "tracing": _COMPILING,
    "evaluation": _EVALUATING,
}
"""What goes before what began later within it. All other spans give way to what they hold."""

_CALLS: frozenset[SpanKind] = frozenset({"script", "fit", "evaluation", "callback"})
"""What ends after all that began in it."""


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
    """Where no end was written: to the end of the call that it lies in, or else of the run."""
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
    """Of the highest rank, and among those what began last."""
    return max(
        active,
        key=lambda span: (_RANK.get(span.kind, _INNERMOST), span.start_ns, span.id),
        default=None,
    )
