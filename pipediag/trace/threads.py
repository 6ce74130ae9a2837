"""Threads of the host, how the events of one nest, and the graph functions that they run.

tf.data names its threads `tf_data_*`. Its functions may also run on TensorFlow's shared pool: the
executor's events then share a step id with the `InstantiatedCapturedFunction::*` event that started
them. A Python function of the pipeline may call a tf.function, which runs under a step id of its
own. The thread that starts it is at work for the caller, so the `FunctionRun` event that has the
new id lies within that work.

A reduction over a dataset within the step, such as a metric over all candidates, counts as the
training step.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Set
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pipediag.trace import STEP_MARKER
from pipediag.trace.events import Indices, Line, Times, TraceEvents
from pipediag.trace.intervals import (
    EMPTY,
    Intervals,
    covered,
    intersect,
    rows,
    subtract,
    total,
    union,
)

CAPTURED_FUNCTION = "InstantiatedCapturedFunction::"
TOP = -1
"""Parent of an event around which no chosen event lies."""

FEWEST_BATCHES = 3
"""Fewest batches of a loop: two hand-overs may be two replicas' first batches."""

THUNK = "hlo_op"
"""The statistic of events in which XLA ran an instruction."""

OPERATION = re.compile(r"[^\s:]+:(?!:)[A-Za-z_][\w>]*$")
_WRAPPER_OPERATION = re.compile(
    r".*:(__\w+|(Stateful|Stateless)?PartitionedCall|(Stateless)?(If|While|Case)|RemoteCall"
    r"|(Xla|_Xla)(\w*Launch\w*|Run|Compile\w*)|IteratorGetNext\w*|MultiDeviceIterator\w*"
    r"|Collective\w+)$"
)
_COLLECTIVE = re.compile(r"[^\s:]+:Collective\w+$")
_REDUCTION = re.compile(r"ReduceDatasetOp::DoCompute$")
_EXECUTOR = re.compile(r"ExecutorState::|FunctionRun$|Executor(Done|Propagate)")

_FUNCTION_RUN = "FunctionRun"
_FUNCTION_CALL = re.compile(r"TFE_Py_Execute|PjitFunction|PJRT_LoadedExecutable_Execute")
_KERNEL_LAUNCH = ("cudaLaunch", "cuLaunch", "hipLaunch", "hipModuleLaunch", "cudaGraphLaunch")
# pipediag's and Kineto's step markers; PyTorch's optimizers are called once a step.
_MARKERS = (STEP_MARKER, "ProfilerStep#", "Optimizer.step#")
_LOADER = "enumerate(DataLoader)"


def is_pipeline_thread(line: Line) -> bool:
    """Return True if tf.data started the thread for itself."""
    return line.name.startswith("tf_data_")


def training_line(events: TraceEvents, of_pipeline: Set[int]) -> Line | None:
    """Return the thread that runs the training loop.

    It is the one with step markers, pipediag's or else Kineto's. A PyTorch profile without any has
    the calls of the optimizer there, or at least those of the DataLoader, unless that thread only
    fetches batches for another one that launches. Otherwise it is the thread that spends most time
    in calls of graph functions, of which single operations and those `of_pipeline` are none; None
    without any.
    """
    lines = events.host_lines
    for marker in _MARKERS:
        if (line := _most_often(marker, lines)) is not None:
            return line
    launching = [line for line in lines if len(line.starting(*_KERNEL_LAUNCH))]
    if (line := _most_often(_LOADER, launching or lines)) is not None:
        return line
    time_ns, line = 0, None
    for other in lines:
        if not is_pipeline_thread(other):
            calls = other.during_like(_FUNCTION_CALL)
            spent = total(subtract(calls, function_time(other, of_pipeline)))
            if spent > time_ns:
                time_ns, line = spent, other
    return line


def _most_often(prefix: str, lines: list[Line]) -> Line | None:
    counts = [len(line.starting(prefix)) for line in lines]
    most = max(counts, default=0)
    return lines[counts.index(most)] if most else None


def captured_function_ids(events: TraceEvents) -> set[int]:
    """Return step ids of the functions that tf.data ran, and of those called by Python in them."""
    found: set[int] = set()
    for line in events.host_lines:
        found.update(line.step_ids(line.starting(CAPTURED_FUNCTION)).tolist())
    found.discard(0)
    starters = [line for line in events.host_lines if len(line.starting(_FUNCTION_RUN))]
    fresh = set(found)
    while fresh:
        fresh = set().union(*(_started_within(line, fresh) for line in starters)) - found
        found |= fresh
    return found


def _started_within(line: Line, function_ids: Set[int]) -> set[int]:
    # Events in the callback of a finished run belong to whoever waited for it.
    work = line.starting("ExecutorState::Process", CAPTURED_FUNCTION)
    work = work[np.isin(line.step_ids(work), list(function_ids))]
    starts = line.starting(_FUNCTION_RUN)
    moments = rows(line.start_ns[starts], line.start_ns[starts] + 1)
    inside = covered(line.during(work), moments) > 0
    return set(line.step_ids(starts[inside]).tolist()) - {0}


def function_time(line: Line, function_ids: Set[int]) -> Intervals:
    """Return when the thread executed one of these runs of graph functions."""
    if not function_ids:
        return EMPTY
    indices, ids = line.executor_work
    return line.during(indices[np.isin(ids, np.fromiter(function_ids, np.int64))])


@dataclass(frozen=True)
class Nesting:
    """Chosen events of a line, by start; a place is a position among them."""

    line: Line
    indices: Indices
    """Indices on the line."""
    parents: Indices
    """The place of the chosen event directly around each, or `TOP`."""

    @cached_property
    def spans(self) -> NDArray[np.int64]:
        """Starts and ends, shape (events, 2)."""
        return self.line.spans(self.indices)

    @cached_property
    def name_ids(self) -> NDArray[np.int32]:
        ids: NDArray[np.int32] = self.line.name_ids[self.indices]
        return ids

    def alone(self) -> tuple[Indices, NDArray[np.int64]]:
        """Return each event's time outside its children: owners' places, and spans (pieces, 2)."""
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
        return np.concatenate((owners, places))[kept], rows(starts[kept], ends[kept])


def nested_events(line: Line, name_ids: Collection[int]) -> Nesting:
    """Return the events of a line with these names."""
    indices = line.having(name_ids)
    return Nesting(line, indices, parents_of(line.start_ns[indices], line.end_ns[indices]))


def parents_of(starts: Times, ends: Times) -> Indices:
    """Return the place of the last event before each that lasts beyond its start, or `TOP`."""
    parents: list[int] = []
    lasting: list[tuple[int, int]] = []
    for place, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        while lasting and lasting[-1][0] <= start:
            lasting.pop()
        parents.append(lasting[-1][1] if lasting else TOP)
        lasting.append((end, place))
    return np.array(parents, np.intp)


@dataclass(frozen=True)
class TrainingGraph:
    """The training step's runs of graph functions."""

    lines: list[Line]
    """Every thread of the host."""
    pipeline_ids: frozenset[int]
    """Step ids of the input pipeline's functions."""

    def operations(self) -> Intervals:
        """Return when an operation or an XLA thunk ran, or a reduction over a dataset."""
        return union(
            self._part_of(lambda line: line.during(line.having(_operation_names(line)))),
            *(line.during(self._reductions(line)) for line in self.lines),
        )

    def collectives(self) -> Intervals:
        """Return when an operation exchanged values with other workers, or waited for them."""
        return self._part_of(lambda line: line.during_like(_COLLECTIVE))

    def operation_pieces(self) -> Iterator[tuple[Line, Indices, NDArray[np.int64]]]:
        """Yield for each thread such events, and spans in which each was the innermost."""
        for line in self.lines:
            if not is_pipeline_thread(line):
                nesting = nested_events(line, _operation_names(line))
                owners, spans = nesting.alone()
                chosen = covered(function_time(line, self.pipeline_ids), spans) == 0
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

    def _reductions(self, line: Line) -> Indices:
        """Return reductions over datasets other than the input pipeline's."""
        found = line.matching(_REDUCTION)
        return found[~np.isin(line.step_ids(found), list(self.pipeline_ids))]

    def _part_of(self, activity: Callable[[Line], Intervals]) -> Intervals:
        return union(
            *(
                subtract(activity(line), function_time(line, self.pipeline_ids))
                for line in self.lines
                if not is_pipeline_thread(line)
            )
        )


def _operation_names(line: Line) -> list[int]:
    wrappers = line.names_like(_WRAPPER_OPERATION)
    return sorted({*line.names_like(OPERATION)}.difference(wrappers).union(line.names_with(THUNK)))
