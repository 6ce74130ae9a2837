"""The steps of a profile, and the nanoseconds that each class takes of each step."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipediag.trace import START_UP, STEP_MARKER
from pipediag.trace.classes import STEP_CLASSES, Activity, sweep
from pipediag.trace.events import Indices, Line, Times, TraceEvents
from pipediag.trace.graphs import FEWEST_BATCHES
from pipediag.trace.intervals import covered
from pipediag.trace.repetition import outermost, periodic_windows, root_windows
from pipediag.vocabulary import StepBasis, StepClass

FEWEST_ANNOTATIONS = 2
"""One annotation may be around the whole training."""

_STEP_NUMBER = "step_num"
# Older TensorFlow names its annotations so, and marks them as a root.
_ROOT, _ROOT_NAMES = "_r", re.compile(r"train|test")
_PROFILER_STEP = re.compile(r"ProfilerStep#(\d+)$")


@dataclass(frozen=True)
class StepWindows:
    """Where each step lies."""

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
class StepSplit:
    """Where the time of each step went."""

    steps: StepWindows
    ns: NDArray[np.int64]
    """Shape (steps, classes), columns as in `classes`; each row adds up to its step exactly."""
    get_next_ns: NDArray[np.int64]
    """The consumer's time in GetNext per step, also where the device computed meanwhile."""
    classes: tuple[StepClass, ...] = STEP_CLASSES

    def column(self, name: StepClass) -> NDArray[np.int64]:
        """Return nanoseconds of one class per step."""
        column: NDArray[np.int64] = self.ns[:, self.classes.index(name)]
        return column

    @property
    def durations_ns(self) -> NDArray[np.int64]:
        lengths: NDArray[np.int64] = self.steps.windows[:, 1] - self.steps.windows[:, 0]
        return lengths


def split_steps(activity: Activity, steps: StepWindows) -> StepSplit:
    """Return the nanoseconds of every class in every step; the rest is unattributed."""
    windows = steps.windows
    swept = sweep(activity.by_class)
    columns = [covered(swept[name], windows) for name in STEP_CLASSES[:-1]]
    rest = windows[:, 1] - windows[:, 0] - np.sum(columns, axis=0)
    return StepSplit(
        steps=steps,
        ns=np.column_stack((*columns, rest)),
        get_next_ns=covered(activity.get_next, windows),
    )


def find_steps(events: TraceEvents, activity: Activity) -> StepWindows | None:
    """Return the steps by the first means that shows any; None if none does.

    pipediag's markers say exactly what a step is; the annotations of a framework or a script say
    what its author takes for one. A loop inside a graph function has neither. Over a dataset, its
    scan shows where each batch was asked for. Over an iterator, GetNext events show where each
    batch was handed over: a step is then the time between the ends of two of them. Where no batch
    shows either, a step is the time from one call of the training function to the next, or at last
    the time in which the kernels on a device repeat.
    """
    return (
        _marked_steps(activity)
        or annotated_steps(events)
        or _counted(None if activity.loop is None else activity.loop.steps, "scan")
        or _fetched_steps(activity)
        or _counted(root_windows(events, activity.line), "roots")
        or _counted(periodic_windows(events), "period")
    )


def _counted(windows: NDArray[np.int64] | None, basis: StepBasis) -> StepWindows | None:
    if windows is None or not len(windows):
        return None
    return StepWindows(windows, tuple(range(len(windows))), basis)


def _marked_steps(activity: Activity) -> StepWindows | None:
    line = activity.line
    if line is None:
        return None
    found = line.starting(STEP_MARKER)
    found = found[~line.statistics.integers(START_UP, found)[1]]
    return _steps_of(line, found, "markers") if len(found) else None


def _fetched_steps(activity: Activity) -> StepWindows | None:
    handed_over = activity.handed_over_ns
    if len(handed_over) < FEWEST_BATCHES:
        return None
    return _counted(np.column_stack((handed_over[:-1], handed_over[1:])), "get_next")


def annotated_steps(events: TraceEvents) -> StepWindows | None:
    """Return the annotation with most steps that do not lie within one another, or None.

    Keras, TensorFlow's `Trace` and JAX's `StepTraceAnnotation` write an event with the statistic
    `step_num`; older TensorFlow names it `train` or `test` and marks it as a root (`_r`). PyTorch's
    profiler writes `ProfilerStep#N`. Of two annotations that nest, the outer one counts.
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
    numbered, roots = set(line.names_with(_STEP_NUMBER)), set(line.names_with(_ROOT))
    found: dict[str, list[int]] = {}
    for key, name in line.used_names.items():
        if _PROFILER_STEP.match(name):
            found.setdefault("ProfilerStep", []).append(key)
        elif key in numbered or (key in roots and _ROOT_NAMES.match(name)):
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
