"""Which event of a line is innermost, moment by moment."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from pipediag.trace.events import Indices, Line, Times
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
    starts, ends = line.start_ns[indices], line.end_ns[indices]
    parents = _parents_by_depth(starts, ends)
    inner = np.flatnonzero(parents != TOP)
    if (ends[parents[inner]] < ends[inner]).any():
        parents = _parents_one_by_one(starts, ends)
    return Nesting(line, indices, parents)


def _parents_by_depth(starts: Times, ends: Times) -> Indices:
    """Around each event the last one before it that is one less deep: right if no two cross.

    Where two do, some event outlasts what is found around it.
    """
    depths = _depths(starts, ends)
    parents = np.full(len(starts), TOP, np.intp)
    by_depth = np.argsort(depths.astype(np.min_scalar_type(depths.max(initial=0))), kind="stable")
    levels = np.split(by_depth, np.flatnonzero(np.diff(depths[by_depth])) + 1)
    for outer, inner in pairwise(levels):
        parents[inner] = outer[np.searchsorted(outer, inner) - 1]
    return parents


def _depths(starts: Times, ends: Times) -> Indices:
    """How many of the events before each last beyond its start."""
    lasting = ends > starts
    over = np.searchsorted(np.sort(ends[lasting]), starts, side="right")
    # What takes no time is over for all that come after it, also for those at the same time.
    momentary: Indices = np.cumsum(~lasting) - ~lasting
    return np.arange(len(starts)) - over - momentary


def _parents_one_by_one(starts: Times, ends: Times) -> Indices:
    """Around each event the last one before it that lasts beyond its start."""
    parents = np.empty(len(starts), np.intp)
    end = ends.tolist()
    around: list[int] = []
    for place, start in enumerate(starts.tolist()):
        while around and end[around[-1]] <= start:
            around.pop()
        parents[place] = around[-1] if around else TOP
        around.append(place)
    return parents
