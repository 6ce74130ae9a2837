"""Which event of a line is innermost, moment by moment."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from pipediag.trace.reader import Line

Span = tuple[int, int]
"""Start and end in nanoseconds."""


@dataclass
class Nested:
    """One of the chosen events of a line."""

    index: int
    """On the line."""
    span: Span
    parent: Nested | None
    """The chosen event directly around it."""
    children: list[Nested] = field(default_factory=list)
    alone: list[Span] = field(default_factory=list)
    """Its time outside its children."""


def nested_events(line: Line, name_ids: Iterable[int]) -> list[Nested]:
    """The events of a line with these names, by start, each with its own time.

    One thread's events nest or are disjoint: each is written where a C++ scope ends.
    """
    chosen = np.flatnonzero(line.named(name_ids))
    found: list[Nested] = []
    enclosing: Nested | None = None
    for index, start, end in zip(
        chosen.tolist(), line.start_ns[chosen].tolist(), line.end_ns[chosen].tolist(), strict=True
    ):
        while enclosing is not None and enclosing.span[1] <= start:
            enclosing = enclosing.parent
        event = Nested(index, (start, end), enclosing)
        if enclosing is not None:
            enclosing.children.append(event)
        enclosing = event
        found.append(event)
    for event in found:
        event.alone = _outside(event)
    return found


def _outside(event: Nested) -> list[Span]:
    at, end = event.span
    spans = []
    for child in event.children:
        if child.span[0] > at:
            spans.append((at, child.span[0]))
        at = max(at, child.span[1])
    if end > at:
        spans.append((at, end))
    return spans
