"""The steps of a profile, and the nanoseconds that each class takes of each step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipediag.trace.events import Indices, Times, TraceEvents
from pipediag.trace.host.classes import STEP_CLASSES, Activity, sweep
from pipediag.trace.host.graph_loop import FEWEST_BATCHES
from pipediag.trace.host.threads import events_named
from pipediag.trace.intervals import covered
from pipediag.trace.marker import START_UP, STEP_MARKER
from pipediag.trace.steps.annotations import annotated_steps
from pipediag.trace.steps.period import periodic_windows
from pipediag.trace.steps.roots import root_windows
from pipediag.vocabulary import StepBasis, StepClass


@dataclass(frozen=True)
class StepWindows:
    """Where each step lies."""

    windows: NDArray[np.int64]
    """Shape (steps, 2): start and end in nanoseconds; disjoint, in order of time."""
    numbers: tuple[int, ...]
    """As the marker or the annotation says; counted from 0 where neither does."""
    basis: StepBasis

    def at(self, times_ns: Times) -> Indices:
        """For each time the place of the step that it lies in, or -1."""
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
        """One class: nanoseconds per step."""
        column: NDArray[np.int64] = self.ns[:, self.classes.index(name)]
        return column

    @property
    def durations_ns(self) -> NDArray[np.int64]:
        lengths: NDArray[np.int64] = self.steps.windows[:, 1] - self.steps.windows[:, 0]
        return lengths


def split_steps(activity: Activity, steps: StepWindows) -> StepSplit:
    """The nanoseconds of every class in every step; what no class claims is unattributed."""
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
    """The steps by the first means that shows any; None if none does.

    pipediag's markers say exactly what a step is; the annotations of a framework or a script say
    what its author takes for one. A loop inside a graph function has neither. Over a dataset, its
    scan shows where each batch was asked for. Over an iterator, GetNext events show where each
    batch was handed over: a step is then the time between the ends of two of them. Where no batch
    shows either, a step is the time from one call of the training function to the next, or at last
    the time in which the kernels on a device repeat.
    """
    return (
        _marked_steps(activity)
        or _annotated_steps(events)
        or _scanned_steps(activity)
        or _fetched_steps(activity)
        or _counted(root_windows(events, activity), "roots")
        or _counted(periodic_windows(events), "period")
    )


def _marked_steps(activity: Activity) -> StepWindows | None:
    line = activity.line
    if line is None:
        return None
    found = events_named(line, STEP_MARKER)
    found = found[~line.statistics.integers(START_UP, found)[1]]
    if not len(found):
        return None
    starts, ends = line.start_ns[found], line.end_ns[found]
    ends[:-1] = np.minimum(ends[:-1], starts[1:])
    numbers, numbered = line.statistics.integers("step_num", found)
    numbers = np.where(numbered, numbers, np.arange(len(found)))
    return StepWindows(np.column_stack((starts, ends)), tuple(numbers.tolist()), "markers")


def _annotated_steps(events: TraceEvents) -> StepWindows | None:
    found = annotated_steps(events)
    return None if found is None else StepWindows(found.windows, found.numbers, "annotations")


def _scanned_steps(activity: Activity) -> StepWindows | None:
    return None if activity.loop is None else _counted(activity.loop.steps, "scan")


def _fetched_steps(activity: Activity) -> StepWindows | None:
    handed_over = activity.handed_over_ns
    if len(handed_over) < FEWEST_BATCHES:
        return None
    return _counted(np.column_stack((handed_over[:-1], handed_over[1:])), "get_next")


def _counted(windows: NDArray[np.int64] | None, basis: StepBasis) -> StepWindows | None:
    if windows is None or not len(windows):
        return None
    return StepWindows(windows, tuple(range(len(windows))), basis)
