"""Which event of a line is innermost, moment by moment."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pipediag.trace.events import Indices, Line
from pipediag.trace.intervals import rows

TOP = -1
"""In place of a parent: no chosen event lies around this one."""


@dataclass(frozen=True)
class Nesting:
    """The chosen events of a line, by start; a place is a position among them."""

    line: Line
    indices: Indices
    """On the line."""
    parents: Indices
    """The place of the chosen event directly around each, or `TOP`."""

    @cached_property
    def spans(self) -> NDArray[np.int64]:
        """Shape (events, 2): start and end."""
        return rows(self.line.start_ns[self.indices], self.line.end_ns[self.indices])

    @cached_property
    def name_ids(self) -> NDArray[np.int32]:
        ids: NDArray[np.int32] = self.line.name_ids[self.indices]
        return ids

    def alone(self) -> tuple[Indices, NDArray[np.int64]]:
        """Each event's time outside its children: the owners' places, and spans (pieces, 2)."""
        places = np.arange(len(self.indices))
        children = np.flatnonzero(self.parents != TOP)
        children = children[np.argsort(self.parents[children], kind="stable")]
        owners = self.parents[children]
        first = np.append(True, owners[1:] != owners[:-1])[: len(owners)]
        before = np.where(first, self.spans[owners, 0], np.roll(self.spans[children, 1], 1))
        # From the last child's end on, or the whole of an event that has none.
        rest = self.spans[:, 0].copy()
        rest[owners] = self.spans[children, 1]
        starts = np.concatenate((before, rest))
        ends = np.concatenate((self.spans[children, 0], self.spans[:, 1]))
        kept = ends > starts
        return (
            np.concatenate((owners, places))[kept],
            rows(starts[kept], ends[kept]),
        )


def nested_events(line: Line, name_ids: Iterable[int]) -> Nesting:
    """The events of a line with these names.

    One thread's events nest or are disjoint: each is written where a C++ scope ends.
    """
    indices = np.flatnonzero(line.named(name_ids))
    starts, ends = line.start_ns[indices].tolist(), line.end_ns[indices].tolist()
    parents = np.empty(len(indices), np.intp)
    around: list[int] = []
    for place, start in enumerate(starts):
        while around and ends[around[-1]] <= start:
            around.pop()
        parents[place] = around[-1] if around else TOP
        around.append(place)
    return Nesting(line, indices, parents)
