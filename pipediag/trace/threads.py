"""Which line of the host is which thread: the training loop's, tf.data's, or another.

tf.data names its threads `tf_data_*`. Its functions may also run on TensorFlow's shared pool; they
are told apart from the training graph by the step id that the executor's events share with the
`InstantiatedCapturedFunction::*` event that started them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Set

import numpy as np

from pipediag.trace.intervals import EMPTY, Intervals, normalise, total, union
from pipediag.trace.marker import STEP_MARKER
from pipediag.trace.reader import Line, TraceEvents

CAPTURED_FUNCTION = "InstantiatedCapturedFunction::"
EXECUTOR_WORK = ("ExecutorState::Process", "ExecutorDoneCallback")

_FUNCTION_CALL = re.compile(r"TFE_Py_Execute|PjitFunction|PJRT_LoadedExecutable_Execute")


def is_pipeline_thread(line: Line) -> bool:
    """A thread that tf.data started for itself."""
    return line.name.startswith("tf_data_")


def named_intervals(line: Line, pattern: re.Pattern[str]) -> Intervals:
    """When the line was in an event whose name the pattern matches from its start."""
    keep = [key for key, name in line.used_names.items() if pattern.match(name)]
    chosen = line.named(keep)
    return normalise(line.start_ns[chosen], line.end_ns[chosen])


def events_named(line: Line, *prefixes: str) -> Iterator[int]:
    """Indices of the events whose name starts with one of the prefixes, by start."""
    keep = [key for key, name in line.used_names.items() if name.startswith(prefixes)]
    if keep:
        yield from np.flatnonzero(line.named(keep)).tolist()


def training_line(events: TraceEvents) -> Line | None:
    """The thread that runs the training loop.

    It is the one with pipediag's step markers; without any, the one that spends most time in calls
    of graph functions; None where no such call begins and ends in the profile. Single operations
    show nothing: pipediag itself reads the counter of a loop inside a graph from another thread.
    """
    marked = [(sum(1 for _ in events_named(line, STEP_MARKER)), line) for line in events.host_lines]
    best = max(marked, key=lambda pair: pair[0], default=(0, None))
    if best[0]:
        return best[1]
    callers = [
        (total(named_intervals(line, _FUNCTION_CALL)), line)
        for line in events.host_lines
        if not is_pipeline_thread(line)
    ]
    time_ns, line = max(callers, key=lambda pair: pair[0], default=(0, None))
    return line if time_ns else None


def is_marked(line: Line | None) -> bool:
    """Whether the line bears pipediag's step markers."""
    return line is not None and any(True for _ in events_named(line, STEP_MARKER))


def captured_function_ids(events: TraceEvents) -> set[int]:
    """Step ids of the functions that tf.data ran."""
    return {
        step_id(line, index)
        for line in events.host_lines
        for index in events_named(line, CAPTURED_FUNCTION)
    } - {0}


def step_id(line: Line, index: int) -> int:
    """The run of a graph function that the event belongs to; 0 where it does not say."""
    return int(line.stat(index, "id") or 0)


def function_time(line: Line, function_ids: Set[int]) -> Intervals:
    """When the thread executed one of these runs of graph functions."""
    if not function_ids:
        return EMPTY
    spans = [
        (line.start_ns[index], line.end_ns[index])
        for index in events_named(line, *EXECUTOR_WORK)
        if step_id(line, index) in function_ids
    ]
    return union(normalise(*zip(*spans, strict=True))) if spans else EMPTY
