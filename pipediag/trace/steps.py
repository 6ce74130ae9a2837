"""The steps of a profile, and the nanoseconds that each class takes of each step."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from pipediag.trace import START_UP, STEP_MARKER
from pipediag.trace.classes import STEP_CLASSES, Activity
from pipediag.trace.events import Indices, Line, Times, TraceEvents
from pipediag.trace.intervals import Intervals, covered, rows, without_earlier
from pipediag.trace.threads import FEWEST_BATCHES
from pipediag.vocabulary import StepBasis, StepClass

FEWEST_CALLS = 3
"""Number of calls: with two there is one step, which may be the first."""

DOMINANT_SHARE = 0.9
"""A function that takes so much of the time of all calls is the step. Own choice."""

_FUNCTION_CALL = "tf_function_call"
"""The statistic of calls that say which function they call."""
# PyTorch's optimizers are called once a step.
_STEP_CALL = re.compile(r"PjitFunction\(|Optimizer\.step#")
_FETCH = re.compile(r"enumerate\(DataLoader\)")

FEWEST_ANNOTATIONS = 2
"""One annotation may be around the whole training."""

_STEP_NUMBER = "step_num"
_PROFILER_STEP = re.compile(r"ProfilerStep#(\d+)$")


@dataclass(frozen=True)
class StepWindows:
    windows: NDArray[np.int64]
    """Shape (steps, 2): start and end in nanoseconds; disjoint, in order of time."""
    numbers: tuple[int, ...]
    """Numbers of the marker or the annotation; counted from 0 where it has none."""
    basis: StepBasis

    def at(self, times_ns: Times) -> Indices:
        """Return for each time the place of the step in which it lies, or -1."""
        place = np.searchsorted(self.windows[:, 0], times_ns, side="right") - 1
        return np.where(times_ns < self.windows[np.maximum(place, 0), 1], place, -1)


@dataclass(frozen=True)
class StepSplit(StepWindows):
    ns: NDArray[np.int64]
    """Shape (steps, classes), columns as in `STEP_CLASSES`; each row adds up to its step."""

    def up_to(self, times_median: float) -> StepSplit:
        """Return the steps that are not longer than so many times the median."""
        durations = self.durations_ns
        kept = durations <= times_median * np.median(durations)
        numbers = tuple(compress(self.numbers, kept))
        return replace(self, windows=self.windows[kept], numbers=numbers, ns=self.ns[kept])

    def column(self, name: StepClass) -> NDArray[np.int64]:
        column: NDArray[np.int64] = self.ns[:, STEP_CLASSES.index(name)]
        return column

    @property
    def durations_ns(self) -> NDArray[np.int64]:
        lengths: NDArray[np.int64] = self.windows[:, 1] - self.windows[:, 0]
        return lengths


def split_steps(by_class: dict[StepClass, Intervals], steps: StepWindows) -> StepSplit:
    """Return the nanoseconds of every class in every step; the rest is unattributed.

    Where several classes hold, a nanosecond is the first one's.
    """
    windows = steps.windows
    alone = without_earlier(by_class[name] for name in STEP_CLASSES[:-1])
    columns = [covered(spans, windows) for spans in alone]
    rest = windows[:, 1] - windows[:, 0] - np.sum(columns, axis=0)
    return StepSplit(**vars(steps), ns=np.column_stack((*columns, rest)))


def find_steps(events: TraceEvents, activity: Activity) -> StepWindows | None:
    """Return the steps by the first means that shows any; None if none does.

    pipediag's markers, annotations of a framework or a script, the ends of GetNext calls, and at
    last calls of one function.
    """
    line, handed_over_ns = activity.line, activity.handed_over_ns
    if line is not None:
        marked = line.starting(STEP_MARKER)
        marked = marked[~line.statistics.integers(START_UP, marked)[1]]
        if len(marked):
            return _steps_of(line, marked, "markers")
    if (annotated := annotated_steps(events)) is not None:
        return annotated
    if len(handed_over_ns) >= FEWEST_BATCHES:
        return _counted(rows(handed_over_ns[:-1], handed_over_ns[1:]), "get_next")
    windows = called_windows(line)
    return None if windows is None else _counted(windows, "calls")


def _counted(windows: NDArray[np.int64], basis: StepBasis) -> StepWindows:
    return StepWindows(windows, tuple(range(len(windows))), basis)


def annotated_steps(events: TraceEvents) -> StepWindows | None:
    """Return the annotation with most steps that do not lie within one another, or None.

    Keras, TensorFlow's `Trace` and JAX's `StepTraceAnnotation` write an event with the statistic
    `step_num`, PyTorch's profiler `ProfilerStep#N`. Of two annotations that nest, the outer one
    counts.
    """
    found = [
        _steps_of(line, indices[outermost(line.end_ns[indices])], "annotations")
        for line in events.host_lines
        for indices in _annotations(line)
    ]
    found = [steps for steps in found if len(steps.windows) >= FEWEST_ANNOTATIONS]
    return max(
        found,
        key=lambda steps: (len(steps.windows), int(np.diff(steps.windows).sum())),
        default=None,
    )


def _annotations(line: Line) -> Iterator[Indices]:
    """Yield the events of each annotation of steps on the line."""
    numbered = set(line.names_with(_STEP_NUMBER))
    found: dict[str, list[int]] = {}
    for key, name in line.used_names.items():
        if _PROFILER_STEP.match(name):
            found.setdefault("ProfilerStep", []).append(key)
        elif key in numbered:
            found.setdefault(name, []).append(key)
    return map(line.having, found.values())


def _steps_of(line: Line, indices: Indices, basis: StepBasis) -> StepWindows:
    """Return steps from events; one that ends after the next one's start is cut there."""
    windows = line.spans(indices)
    windows[:-1, 1] = np.minimum(windows[:-1, 1], windows[1:, 0])
    values, present = line.statistics.integers(_STEP_NUMBER, indices)
    named = [_PROFILER_STEP.match(line.event_name(index)) for index in indices.tolist()]
    numbers = tuple(
        int(values[position]) if present[position] else int(name[1]) if name else position
        for position, name in enumerate(named)
    )
    return StepWindows(windows, numbers, basis)


def outermost(end_ns: Times) -> NDArray[np.bool_]:
    """Return which events do not lie within an earlier one, given their ends in a line's order.

    JAX writes some events twice, one around the other. Events that overlap in part are all kept.
    """
    latest = np.maximum.accumulate(end_ns)
    kept = np.ones(len(end_ns), np.bool_)
    kept[1:] = end_ns[1:] > latest[:-1]
    return kept


def called_windows(line: Line | None) -> NDArray[np.int64] | None:
    """Return windows from one call of the training function to the next; None without one.

    It is the function that takes nearly all of the time of such calls on the training thread.
    """
    if line is None:
        return None
    calls = line.having({*line.names_like(_STEP_CALL), *line.names_with(_FUNCTION_CALL)})
    if not len(calls):
        calls = line.matching(_FETCH)
    calls = calls[outermost(line.end_ns[calls])]
    by_function: dict[str, list[int]] = {}
    for call in calls.tolist():
        by_function.setdefault(line.event_name(call), []).append(call)
    spent_ns = {
        # Tracing takes longer than a call usually does.
        name: len(each) * float(np.median(line.end_ns[each] - line.start_ns[each]))
        for name, each in by_function.items()
        if len(each) >= FEWEST_CALLS
    }
    longest = max(spent_ns, key=spent_ns.__getitem__, default=None)
    if longest is None or spent_ns[longest] < DOMINANT_SHARE * sum(spent_ns.values()):
        return None
    starts = line.start_ns[by_function[longest]]
    return rows(starts[:-1], starts[1:])
