"""Graph functions on the host's threads: the training step's, and a loop that one runs by itself.

tf.data runs functions of its own on the same kinds of threads; they have other step ids. The body
of a loop inside a graph is one of tf.data's functions, and counts as the training step. So does a
reduction over a dataset within the step, such as a metric over all candidates: tf.data runs it, and
the step waits for nothing else.

AutoGraph lowers `for batch in dataset` to reduce(take_while(scan(dataset))). A step of that loop is
one GetNext call of the scan's iterator, which takes a batch from the input pipeline below it and
then runs the loop's body as its function. The call is made on the thread of a prefetch that
TensorFlow puts around the scan, or else on the reduction's own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipediag.trace.events import Indices, Line, TraceEvents
from pipediag.trace.intervals import Intervals, covered, intersect, normalise, subtract, union
from pipediag.trace.threads import (
    CAPTURED_FUNCTION,
    Nesting,
    function_time,
    is_pipeline_thread,
    nested_events,
)

FEWEST_BATCHES = 3
"""Two hand-overs may be two replicas' first batches; a third makes it a loop."""

THUNK = "hlo_op"
"""The statistic of events in which XLA ran an instruction."""

OPERATION = re.compile(r"[^\s:]+:(?!:)[A-Za-z_][\w>]*$")
_WRAPPER_OPERATION = re.compile(
    r".*:(__\w+|(Stateful|Stateless)?PartitionedCall|(Stateless)?(If|While|Case)|RemoteCall"
    r"|(Xla|_Xla)(\w*Launch\w*|Run|Compile\w*)|IteratorGetNext\w*|MultiDeviceIterator\w*)$"
)
_REDUCTION = re.compile(r"ReduceDatasetOp::DoCompute$")
_EXECUTOR = re.compile(r"ExecutorState::|FunctionRun$|Executor(Done|Propagate)")
_NUMBER = r"(\[\d+\])?"
_SCAN = re.compile(
    rf"ReduceIterator::Root{_NUMBER}(::(Prefetch|TakeWhile){_NUMBER})*::Scan{_NUMBER}$"
)


@dataclass(frozen=True)
class TrainingGraph:
    """The training step's runs of graph functions."""

    lines: list[Line]
    """Every thread of the host."""
    pipeline_ids: frozenset[int]
    """Step ids of the input pipeline's functions."""
    body_ids: frozenset[int]
    """Step ids of the body of a loop inside a graph; empty for other loops."""

    def operations(self) -> Intervals:
        """Return when an operation or an XLA thunk ran, or a reduction over a dataset."""
        return union(
            self._part_of(lambda line: line.during(line.having(_operation_names(line)))),
            *(line.during(self._reductions(line)) for line in self.lines),
        )

    def operation_pieces(self) -> Iterator[tuple[Line, Indices, NDArray[np.int64]]]:
        """Yield for each thread such events, and spans in which each was the innermost."""
        for line in self.lines:
            nesting = nested_events(line, _operation_names(line))
            owners, spans = nesting.alone()
            of_pipeline = is_pipeline_thread(line)
            ids = self.body_ids if of_pipeline else self.pipeline_ids
            inside = covered(function_time(line, ids), spans) > 0
            chosen = inside if of_pipeline else ~inside
            yield line, nesting.indices[owners[chosen]], spans[chosen]
            reductions = self._reductions(line)
            yield line, reductions, line.spans(reductions)

    def executing(self) -> Intervals:
        """Return when a thread executed the graph."""
        return self._part_of(
            lambda line: union(line.during_like(_EXECUTOR), line.during_like(OPERATION))
        )

    def on_executors(self, pattern: re.Pattern[str]) -> Intervals:
        """Return when a thread that executed the graph was in an event of such a name."""
        return self._part_of(
            lambda line: intersect(line.during_like(pattern), line.during_like(_EXECUTOR))
        )

    def in_body(self, pattern: re.Pattern[str]) -> Intervals:
        """Return when the body was in an event of such a name."""
        return union(
            *(
                intersect(line.during_like(pattern), function_time(line, self.body_ids))
                for line in self.lines
            )
        )

    def _reductions(self, line: Line) -> Indices:
        """Return reductions over datasets other than the input pipeline's and the loop itself."""
        found = line.matching(_REDUCTION)
        if self.body_ids or not len(found):
            return found[:0]
        return found[~np.isin(line.step_ids(found), list(self.pipeline_ids))]

    def _part_of(self, activity: Callable[[Line], Intervals]) -> Intervals:
        return union(
            *(
                intersect(activity(line), function_time(line, self.body_ids))
                if is_pipeline_thread(line)
                else subtract(activity(line), function_time(line, self.pipeline_ids))
                for line in self.lines
            )
        )


def _operation_names(line: Line) -> list[int]:
    wrappers = line.names_like(_WRAPPER_OPERATION)
    return sorted({*line.names_like(OPERATION)}.difference(wrappers).union(line.names_with(THUNK)))


@dataclass(frozen=True)
class GraphLoop:
    """A loop over a dataset inside a graph, with all its passes through the dataset."""

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
    """Calls of one scan iterator, by start: one pass through the dataset."""

    nesting: Nesting
    calls: Indices
    """Places in the nesting."""

    @property
    def spans(self) -> NDArray[np.int64]:
        spans: NDArray[np.int64] = self.nesting.spans[self.calls]
        return spans

    @property
    def extent(self) -> tuple[int, int]:
        return int(self.spans[0, 0]), int(self.spans[-1, 1])

    @property
    def scan_name(self) -> str:
        return self.nesting.line.event_name(int(self.nesting.indices[self.calls[0]]))

    def parts(self, *, body: bool) -> Indices:
        """Return the places directly within its calls: the body's runs, or the calls for input."""
        names = self.nesting.line.used_names
        runs = [key for key, name in names.items() if name.startswith(CAPTURED_FUNCTION)]
        inside = np.isin(self.nesting.parents, self.calls)
        return np.flatnonzero(inside & (np.isin(self.nesting.name_ids, runs) == body))

    def body_ids(self) -> list[int]:
        runs = self.nesting.indices[self.parts(body=True)]
        found: list[int] = self.nesting.line.step_ids(runs).tolist()
        return found


def find_graph_loop(events: TraceEvents) -> GraphLoop | None:
    """Return the loop, or None where too few batches were taken by one.

    Loops within its body or within a function of its input pipeline are part of its steps.
    """
    passes = _one_at_a_time([found for line in events.host_lines for found in _passes(line)])
    if sum(len(found.calls) for found in passes) < FEWEST_BATCHES:
        return None
    starts = [found.spans[:, 0] for found in passes]
    return GraphLoop(
        steps=np.concatenate([np.column_stack((start[:-1], start[1:])) for start in starts]),
        running=normalise(*zip(*(found.extent for found in passes), strict=True)),
        input=union(
            *(normalise(*found.nesting.spans[found.parts(body=False)].T) for found in passes)
        ),
        body_ids=frozenset(run for found in passes for run in found.body_ids()),
        scan_names=frozenset(found.scan_name for found in passes),
    )


def _passes(line: Line) -> list[_Pass]:
    scans = line.names_like(_SCAN)
    if not scans:
        return []
    within = (*(f"{line.plane.names[key]}::" for key in scans), CAPTURED_FUNCTION)
    relevant = {key for key, name in line.used_names.items() if name.startswith(within)}
    nesting = nested_events(line, relevant.union(scans))
    calls = np.flatnonzero(np.isin(nesting.name_ids, scans))
    ids = line.step_ids(nesting.indices[calls])
    return [_Pass(nesting, calls[ids == found]) for found in dict.fromkeys(ids.tolist())]


def _one_at_a_time(passes: list[_Pass]) -> list[_Pass]:
    """Return passes in order of time; where some overlap, the longest."""
    kept: list[_Pass] = []
    for found in sorted(passes, key=lambda found: found.extent[0] - found.extent[1]):
        start, end = found.extent
        if all(end <= other.extent[0] or other.extent[1] <= start for other in kept):
            kept.append(found)
    return sorted(kept, key=lambda found: found.extent)
