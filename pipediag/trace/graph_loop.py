"""A loop over a dataset that a graph function runs by itself.

AutoGraph lowers `for batch in dataset` to reduce(take_while(scan(dataset))). A step of that loop is
one GetNext call of the scan's iterator, which takes a batch from the input pipeline below it and
then runs the loop's body as its function. The call is made on the thread of a prefetch that
TensorFlow puts around the scan, or else on the reduction's own.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from pipediag.trace.intervals import Intervals, normalise
from pipediag.trace.nesting import Nested, Span, nested_events
from pipediag.trace.reader import Line, TraceEvents
from pipediag.trace.threads import CAPTURED_FUNCTION, step_id

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

    line: Line
    calls: list[Nested]

    @property
    def span(self) -> Span:
        return self.calls[0].span[0], self.calls[-1].span[1]

    @property
    def steps(self) -> list[Span]:
        return [(one.span[0], following.span[0]) for one, following in pairwise(self.calls)]

    @property
    def scan_name(self) -> str:
        return self.line.event_name(self.calls[0].index)

    def parts(self, *, body: bool) -> Iterator[Nested]:
        """The body's runs, or else the calls for input."""
        for call in self.calls:
            for child in call.children:
                name = self.line.event_name(child.index)
                if name.startswith(CAPTURED_FUNCTION) == body:
                    yield child


def find_graph_loop(events: TraceEvents) -> GraphLoop | None:
    """The loop, or None where too few batches were taken by one.

    Loops within its body or within a function of its input pipeline run inside its time and are
    left out.
    """
    passes = _one_at_a_time([found for line in events.host_lines for found in _passes(line)])
    if sum(len(found.calls) for found in passes) < FEWEST_BATCHES:
        return None
    steps = [step for found in passes for step in found.steps]
    waits = [part.span for found in passes for part in found.parts(body=False)]
    return GraphLoop(
        steps=np.array(steps, np.int64).reshape(-1, 2),
        running=_covered([found.span for found in passes]),
        input=_covered(waits),
        body_ids=frozenset(
            step_id(found.line, part.index) for found in passes for part in found.parts(body=True)
        ),
        scan_names=frozenset(found.scan_name for found in passes),
    )


def _passes(line: Line) -> list[_Pass]:
    scans = {key: name for key, name in line.used_names.items() if _SCAN.match(name)}
    if not scans:
        return []
    within = (*(f"{name}::" for name in scans.values()), CAPTURED_FUNCTION)
    relevant = {key for key, name in line.used_names.items() if name.startswith(within)}
    calls: dict[int, list[Nested]] = defaultdict(list)
    for event in nested_events(line, relevant | scans.keys()):
        if int(line.name_ids[event.index]) in scans:
            calls[step_id(line, event.index)].append(event)
    return [_Pass(line, of_iterator) for of_iterator in calls.values()]


def _one_at_a_time(passes: list[_Pass]) -> list[_Pass]:
    """In order of time; of passes that overlap, the longest."""
    kept: list[_Pass] = []
    for found in sorted(passes, key=lambda found: found.span[0] - found.span[1]):
        start, end = found.span
        if all(end <= other.span[0] or other.span[1] <= start for other in kept):
            kept.append(found)
    return sorted(kept, key=lambda found: found.span)


def _covered(spans: list[Span]) -> Intervals:
    return normalise([start for start, _ in spans], [end for _, end in spans])
