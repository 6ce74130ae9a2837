"""A loop over a dataset that a graph function runs by itself.

AutoGraph lowers `for batch in dataset` to reduce(take_while(scan(dataset))). A step of that loop is
one GetNext call of the scan's iterator, which takes a batch from the input pipeline below it and
then runs the loop's body as its function. The call is made on the thread of a prefetch that
TensorFlow puts around the scan, or else on the reduction's own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipediag.trace.events import Indices, Line, TraceEvents
from pipediag.trace.host.nesting import Nesting, nested_events
from pipediag.trace.host.threads import CAPTURED_FUNCTION, step_ids
from pipediag.trace.intervals import Intervals, normalise, union

FEWEST_BATCHES = 3
"""Two hand-overs may be two replicas' first batches; a third makes it a loop."""

_NUMBER = r"(\[\d+\])?"
_SCAN = re.compile(
    rf"ReduceIterator::Root{_NUMBER}(::(Prefetch|TakeWhile){_NUMBER})*::Scan{_NUMBER}$"
)


@dataclass(frozen=True)
class GraphLoop:
    """What the profile saw of the loop, over all its passes through the dataset."""

    steps: NDArray[np.int64]
    """Shape (steps, 2): from one batch's request to the next one's in the same pass."""
    running: Intervals
    """Each pass from its first step's start to its last step's end."""
    input: Intervals
    """When the loop was in the GetNext call of the iterator below the scan."""
    body_ids: frozenset[int]
    """Step ids of the body's runs."""
    scan_names: frozenset[str]
    """Names of the scan's events: what stands above them is the loop, what follows is its input."""


@dataclass(frozen=True)
class _Pass:
    """The calls of one scan iterator, by start: one pass through the dataset."""

    nesting: Nesting
    calls: Indices
    """Places in the nesting."""

    @property
    def span(self) -> tuple[int, int]:
        spans = self.nesting.spans[self.calls]
        return int(spans[0, 0]), int(spans[-1, 1])

    @property
    def steps(self) -> NDArray[np.int64]:
        starts = self.nesting.spans[self.calls, 0]
        return np.column_stack((starts[:-1], starts[1:]))

    @property
    def scan_name(self) -> str:
        return self.nesting.line.event_name(int(self.nesting.indices[self.calls[0]]))

    @property
    def input(self) -> NDArray[np.int64]:
        """When it called for input."""
        return self.nesting.spans[self._parts(body=False)]

    @property
    def body_ids(self) -> list[int]:
        """Step ids of the body's runs."""
        runs = self.nesting.indices[self._parts(body=True)]
        found: list[int] = step_ids(self.nesting.line, runs).tolist()
        return found

    def _parts(self, *, body: bool) -> Indices:
        """What lies directly within its calls: the body's runs, or else the calls for input."""
        names = self.nesting.line.used_names
        runs = [key for key, name in names.items() if name.startswith(CAPTURED_FUNCTION)]
        inside = np.isin(self.nesting.parents, self.calls)
        return np.flatnonzero(inside & (np.isin(self.nesting.name_ids, runs) == body))


def find_graph_loop(events: TraceEvents) -> GraphLoop | None:
    """The loop, or None where too few batches were taken by one.

    Loops within its body or within a function of its input pipeline run inside its time and are
    left out.
    """
    passes = _one_at_a_time([found for line in events.host_lines for found in _passes(line)])
    if sum(len(found.calls) for found in passes) < FEWEST_BATCHES:
        return None
    return GraphLoop(
        steps=np.concatenate([found.steps for found in passes]),
        running=normalise(*zip(*(found.span for found in passes), strict=True)),
        input=union(*(normalise(*found.input.T) for found in passes)),
        body_ids=frozenset(run for found in passes for run in found.body_ids),
        scan_names=frozenset(found.scan_name for found in passes),
    )


def _passes(line: Line) -> list[_Pass]:
    scans = {key: name for key, name in line.used_names.items() if _SCAN.match(name)}
    if not scans:
        return []
    within = (*(f"{name}::" for name in scans.values()), CAPTURED_FUNCTION)
    relevant = {key for key, name in line.used_names.items() if name.startswith(within)}
    nesting = nested_events(line, relevant | scans.keys())
    calls = np.flatnonzero(np.isin(nesting.name_ids, list(scans)))
    ids = step_ids(line, nesting.indices[calls])
    return [_Pass(nesting, calls[ids == found]) for found in dict.fromkeys(ids.tolist())]


def _one_at_a_time(passes: list[_Pass]) -> list[_Pass]:
    """In order of time; of passes that overlap, the longest."""
    kept: list[_Pass] = []
    for found in sorted(passes, key=lambda found: found.span[0] - found.span[1]):
        start, end = found.span
        if all(end <= other.span[0] or other.span[1] <= start for other in kept):
            kept.append(found)
    return sorted(kept, key=lambda found: found.span)
