"""Which span each moment of the run belongs to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
    """Every moment from start to end in exactly one segment, in order.

    A span without an end lasts to the end of the run.
    """
    clipped = [
        (max(start_ns, span.start_ns), min(end_ns, _end_of(span, end_ns)), span) for span in spans
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


def _end_of(span: Span, end_ns: int) -> int:
    return end_ns if span.end_ns is None else span.end_ns


def _owner(active: Sequence[Span]) -> Span | None:
    """Of the highest rank, and among those what began last."""
    return max(
        active,
        key=lambda span: (_RANK.get(span.kind, _INNERMOST), span.start_ns, span.id),
        default=None,
    )
