"""The operations of graphs on the host's threads, and when threads execute a graph."""

from __future__ import annotations

import re

import numpy as np

from pipediag.trace.intervals import Intervals, intersect, normalise, subtract, union
from pipediag.trace.reader import Line
from pipediag.trace.threads import function_time, named_intervals

OPERATION = re.compile(r"[^\s:]+:(?!:)[A-Za-z_][\w>]*$")
_WRAPPER_OPERATION = re.compile(
    r".*:(__\w+|(Stateful|Stateless)?PartitionedCall|(Stateless)?(If|While|Case)|RemoteCall"
    r"|(Xla|_Xla)(\w*Launch\w*|Run|Compile\w*)|IteratorGetNext\w*|MultiDeviceIterator\w*)$"
)
_EXECUTOR = re.compile(r"ExecutorState::|FunctionRun$|Executor(Done|Propagate)")


def operations_without(line: Line, functions: set[int]) -> Intervals:
    """The line's operations and XLA thunks, but not those of these runs of functions."""
    return subtract(_operations(line), function_time(line, functions))


def operations_of(line: Line, functions: set[int]) -> Intervals:
    """The operations and XLA thunks of these runs of functions alone."""
    return intersect(_operations(line), function_time(line, functions))


def executor_time_without(line: Line, functions: set[int]) -> Intervals:
    """When the line executed a graph, but not in these runs of functions."""
    busy = union(named_intervals(line, _EXECUTOR), named_intervals(line, OPERATION))
    return subtract(busy, function_time(line, functions))


def thunks(line: Line) -> Intervals:
    """What XLA ran on the line."""
    return _chosen(line, names_with(line, "hlo_op"))


def names_with(line: Line, stat: str) -> set[int]:
    """Names whose first event carries the statistic; a TraceMe site always writes the same ones."""
    keys, first = np.unique(line.name_ids, return_index=True)
    return {
        int(key) for key, index in zip(keys, first, strict=True) if stat in line.stats(int(index))
    }


def _operations(line: Line) -> Intervals:
    keys = {
        key
        for key, name in line.used_names.items()
        if OPERATION.match(name) and not _WRAPPER_OPERATION.match(name)
    }
    return union(_chosen(line, keys), thunks(line))


def _chosen(line: Line, keys: set[int]) -> Intervals:
    chosen = line.named(keys)
    return normalise(line.start_ns[chosen], line.end_ns[chosen])
