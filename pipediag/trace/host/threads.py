"""Which line of the host is which thread: the training loop's, tf.data's, or another.

tf.data names its threads `tf_data_*`. Its functions may also run on TensorFlow's shared pool; they
are told apart from the training graph by the step id that the executor's events share with the
`InstantiatedCapturedFunction::*` event that started them.

A Python function of the pipeline may call a tf.function, which runs under a step id of its own, and
nothing in its events names the caller. But the thread that starts it is still at work on the
caller, so the `FunctionRun` event that bears the new id lies within that work. Python that hands
the call to a thread of its own leaves no such trace.
"""

from __future__ import annotations

import re
from collections.abc import Set

import numpy as np
from numpy.typing import NDArray

from pipediag.trace import STEP_MARKER
from pipediag.trace.events import Indices, Line, TraceEvents
from pipediag.trace.intervals import EMPTY, Intervals, covered, normalise, subtract, total

CAPTURED_FUNCTION = "InstantiatedCapturedFunction::"
_PROCESS = "ExecutorState::Process"
_EXECUTOR_WORK = (_PROCESS, "ExecutorDoneCallback")
_FUNCTION_RUN = "FunctionRun"

_PROFILER_STEP = "ProfilerStep#"
_OPTIMIZER_STEP = "Optimizer.step#"
_LOADER = "enumerate(DataLoader)"
_KERNEL_LAUNCH = ("cudaLaunch", "cuLaunch", "hipLaunch", "hipModuleLaunch", "cudaGraphLaunch")
_FUNCTION_CALL = re.compile(r"TFE_Py_Execute|PjitFunction|PJRT_LoadedExecutable_Execute")


def is_pipeline_thread(line: Line) -> bool:
    """A thread that tf.data started for itself."""
    return line.name.startswith("tf_data_")


def named_intervals(line: Line, pattern: re.Pattern[str]) -> Intervals:
    """When the line was in an event whose name the pattern matches from its start."""
    return chosen_intervals(
        line, [key for key, name in line.used_names.items() if pattern.match(name)]
    )


def chosen_intervals(line: Line, name_ids: list[int]) -> Intervals:
    """When the line was in an event with one of these names."""
    if not name_ids:
        return EMPTY
    chosen = line.named(name_ids)
    return normalise(line.start_ns[chosen], line.end_ns[chosen])


def events_named(line: Line, *prefixes: str) -> Indices:
    """Indices of the events whose name starts with one of the prefixes, by start."""
    keep = [key for key, name in line.used_names.items() if name.startswith(prefixes)]
    return np.flatnonzero(line.named(keep)) if keep else np.empty(0, np.intp)


def training_line(events: TraceEvents) -> Line | None:
    """The thread that runs the training loop.

    It is the one with step markers, pipediag's or else Kineto's. A PyTorch profile without any has
    the calls of the optimizer there, or at least those of the DataLoader, unless that thread only
    fetches batches for another one that launches. Otherwise it is the thread that spends most time
    in calls of graph functions; None where no such call begins and ends in the profile. Single
    operations show nothing: pipediag itself reads the counter of a loop inside a graph from another
    thread.
    """
    for marker in (STEP_MARKER, _PROFILER_STEP, _OPTIMIZER_STEP):
        if (line := _most_often(marker, events.host_lines)) is not None:
            return line
    launching = [line for line in events.host_lines if len(events_named(line, *_KERNEL_LAUNCH))]
    if (line := _most_often(_LOADER, launching or events.host_lines)) is not None:
        return line
    pipeline_ids = captured_function_ids(events)
    callers = [
        (total(_calls_outside(line, pipeline_ids)), line)
        for line in events.host_lines
        if not is_pipeline_thread(line)
    ]
    time_ns, line = max(callers, key=lambda pair: pair[0], default=(0, None))
    return line if time_ns else None


def _most_often(prefix: str, lines: list[Line]) -> Line | None:
    """Return the line with most events of that name, or None where there is none."""
    counts = [len(events_named(line, prefix)) for line in lines]
    most = max(counts, default=0)
    return lines[counts.index(most)] if most else None


def _calls_outside(line: Line, function_ids: Set[int]) -> Intervals:
    """Calls of graph functions, but for those that these runs make."""
    return subtract(named_intervals(line, _FUNCTION_CALL), function_time(line, function_ids))


def is_marked(line: Line | None) -> bool:
    """Whether the line bears pipediag's step markers."""
    return line is not None and len(events_named(line, STEP_MARKER)) > 0


def captured_function_ids(events: TraceEvents) -> set[int]:
    """Step ids of the functions that tf.data ran, and of those that Python in them called."""
    found: set[int] = set()
    for line in events.host_lines:
        found.update(step_ids(line, events_named(line, CAPTURED_FUNCTION)).tolist())
    return with_nested(events.host_lines, found - {0})


def with_nested(lines: list[Line], function_ids: Set[int]) -> set[int]:
    """These runs of graph functions, and all that were started within them, however deep."""
    starters = [line for line in lines if len(events_named(line, _FUNCTION_RUN))]
    found, fresh = set(function_ids), set(function_ids)
    while fresh:
        fresh = set().union(*(_started_within(line, fresh) for line in starters)) - found
        found |= fresh
    return found


def _started_within(line: Line, function_ids: Set[int]) -> set[int]:
    # What follows in the callback of a run that is done is the work of whoever waited for it.
    work = events_named(line, _PROCESS, CAPTURED_FUNCTION)
    work = work[np.isin(step_ids(line, work), list(function_ids))]
    starts = events_named(line, _FUNCTION_RUN)
    moments = np.column_stack((line.start_ns[starts], line.start_ns[starts] + 1))
    inside = covered(normalise(line.start_ns[work], line.end_ns[work]), moments) > 0
    return set(step_ids(line, starts[inside]).tolist()) - {0}


def step_ids(line: Line, indices: Indices) -> NDArray[np.int64]:
    """The runs of graph functions that these events belong to; 0 where one does not say."""
    return line.integers("id", indices)


def executor_work(line: Line) -> tuple[Indices, NDArray[np.int64]]:
    """What the thread executed of graph functions: indices, and the run that each belongs to."""
    keys = [key for key, name in line.used_names.items() if name.startswith(_EXECUTOR_WORK)]
    return line.integers_of("id", tuple(keys))


def function_time(line: Line, function_ids: Set[int]) -> Intervals:
    """When the thread executed one of these runs of graph functions."""
    if not function_ids:
        return EMPTY
    indices, ids = executor_work(line)
    wanted = np.fromiter(function_ids, np.int64, len(function_ids))
    chosen = indices[np.isin(ids, wanted)]
    return normalise(line.start_ns[chosen], line.end_ns[chosen])
