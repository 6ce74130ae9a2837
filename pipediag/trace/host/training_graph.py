"""What the training step's graph does on the host's threads: its operations and its executor.

tf.data runs functions of its own on the same kinds of threads; they are told apart by step id. Of a
loop inside a graph the body is one of tf.data's functions, and counts as the training step. So does
a reduction over a dataset that the step itself holds, as a metric over all candidates makes it:
tf.data runs it, and the step waits for nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipediag.trace.events import Indices, Line
from pipediag.trace.host.nesting import nested_events
from pipediag.trace.host.threads import (
    chosen_intervals,
    function_time,
    is_pipeline_thread,
    named_intervals,
    step_ids,
)
from pipediag.trace.intervals import Intervals, covered, intersect, normalise, subtract, union

OPERATION = re.compile(r"[^\s:]+:(?!:)[A-Za-z_][\w>]*$")
_WRAPPER_OPERATION = re.compile(
    r".*:(__\w+|(Stateful|Stateless)?PartitionedCall|(Stateless)?(If|While|Case)|RemoteCall"
    r"|(Xla|_Xla)(\w*Launch\w*|Run|Compile\w*)|IteratorGetNext\w*|MultiDeviceIterator\w*)$"
)
_THUNK = "hlo_op"
_REDUCTION = re.compile(r"ReduceDatasetOp::DoCompute$")
_EXECUTOR = re.compile(r"ExecutorState::|FunctionRun$|Executor(Done|Propagate)")


@dataclass(frozen=True)
class TrainingGraph:
    """Which runs of graph functions are the training step's, by step id."""

    lines: list[Line]
    """Every thread of the host."""
    pipeline_ids: frozenset[int]
    """The input pipeline's functions."""
    body_ids: frozenset[int]
    """The body of a loop inside a graph; empty for other loops."""

    def operations(self) -> Intervals:
        """When an operation or an XLA thunk ran, or a reduction over the step's own dataset."""
        reductions = ((line, self._reductions(line)) for line in self.lines)
        return union(
            self._part_of(_operations),
            *(normalise(line.start_ns[i], line.end_ns[i]) for line, i in reductions),
        )

    def operation_pieces(self) -> Iterator[tuple[Line, Indices, NDArray[np.int64]]]:
        """The same one by one: of each thread events, and spans in which each was the innermost."""
        for line in self.lines:
            nesting = nested_events(line, _operation_keys(line))
            owners, spans = nesting.alone()
            aside = is_pipeline_thread(line)
            ids = self.body_ids if aside else self.pipeline_ids
            inside = covered(function_time(line, ids), spans) > 0
            chosen = inside if aside else ~inside
            yield line, nesting.indices[owners[chosen]], spans[chosen]
            reductions = self._reductions(line)
            whole = np.column_stack((line.start_ns[reductions], line.end_ns[reductions]))
            yield line, reductions, whole

    def compiled(self, line: Line) -> list[int]:
        """Names of the line, by their places, of what XLA ran."""
        return names_with(line, _THUNK)

    def executing(self) -> Intervals:
        """When a thread executed the graph."""
        return self._part_of(_executor_time)

    def on_executors(self, pattern: re.Pattern[str]) -> Intervals:
        """When a thread that executed the graph was in an event whose name the pattern matches."""
        return self._part_of(
            lambda line: intersect(named_intervals(line, pattern), named_intervals(line, _EXECUTOR))
        )

    def in_body(self, pattern: re.Pattern[str]) -> Intervals:
        """When the body was in an event whose name the pattern matches."""
        return union(
            *(
                intersect(named_intervals(line, pattern), function_time(line, self.body_ids))
                for line in self.lines
            )
        )

    def _reductions(self, line: Line) -> Indices:
        """Reductions over datasets that are neither the input pipeline's nor the loop itself."""
        keys = [key for key, name in line.used_names.items() if _REDUCTION.match(name)]
        if not keys or self.body_ids:
            return np.empty(0, np.intp)
        found = np.flatnonzero(line.named(keys))
        return found[~np.isin(step_ids(line, found), list(self.pipeline_ids))]

    def _part_of(self, activity: Callable[[Line], Intervals]) -> Intervals:
        return union(*(self._of_training(line, activity) for line in self.lines))

    def _of_training(self, line: Line, activity: Callable[[Line], Intervals]) -> Intervals:
        if not is_pipeline_thread(line):
            return subtract(activity(line), function_time(line, self.pipeline_ids))
        return intersect(activity(line), function_time(line, self.body_ids))


def thunks(line: Line) -> Intervals:
    """What XLA ran on the line."""
    return chosen_intervals(line, names_with(line, _THUNK))


def names_with(line: Line, stat: str) -> list[int]:
    """Names whose first event carries the statistic; a TraceMe site always writes the same ones."""
    return [key for key, first in line.first_events.items() if stat in line.stats(first)]


def _operations(line: Line) -> Intervals:
    return chosen_intervals(line, _operation_keys(line))


def _operation_keys(line: Line) -> list[int]:
    keys = {
        key
        for key, name in line.used_names.items()
        if OPERATION.match(name) and not _WRAPPER_OPERATION.match(name)
    }
    return sorted(keys.union(names_with(line, _THUNK)))


def _executor_time(line: Line) -> Intervals:
    return union(named_intervals(line, _EXECUTOR), named_intervals(line, OPERATION))
