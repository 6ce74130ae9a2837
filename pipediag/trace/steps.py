"""The steps of a profile, and the nanoseconds that each class takes of each step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pipediag.trace.classes import STEP_CLASSES, Activity, StepClass, sweep
from pipediag.trace.graph_loop import FEWEST_BATCHES
from pipediag.trace.intervals import covered
from pipediag.trace.marker import STEP_MARKER
from pipediag.trace.threads import events_named

Basis = Literal["markers", "scan", "get_next"]


@dataclass(frozen=True)
class StepWindows:
    """Where each step lies."""

    windows: NDArray[np.int64]
    """Shape (steps, 2): start and end in nanoseconds; disjoint, in order of time."""
    numbers: tuple[int, ...]
    """The marker's `step_num`; counted from 0 where there are no markers."""
    basis: Basis


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


def find_steps(activity: Activity) -> StepWindows | None:
    """The marked steps; without markers, from one batch to the next; None if neither.

    A loop inside a graph function has no markers. Over a dataset, its scan shows where each batch
    was asked for. Over an iterator, GetNext events show where each batch was handed over: a step is
    then the time between the ends of two of them.
    """
    return _marked_steps(activity) or _scanned_steps(activity) or _fetched_steps(activity)


def _marked_steps(activity: Activity) -> StepWindows | None:
    line = activity.line
    found = [] if line is None else list(events_named(line, STEP_MARKER))
    if line is None or not found:
        return None
    starts, ends = line.start_ns[found], line.end_ns[found]
    ends[:-1] = np.minimum(ends[:-1], starts[1:])
    numbers = tuple(
        int(line.stats(index).get("step_num", position)) for position, index in enumerate(found)
    )
    return StepWindows(np.column_stack((starts, ends)), numbers, "markers")


def _scanned_steps(activity: Activity) -> StepWindows | None:
    if activity.loop is None or not len(activity.loop.steps):
        return None
    windows = activity.loop.steps
    return StepWindows(windows, tuple(range(len(windows))), "scan")


def _fetched_steps(activity: Activity) -> StepWindows | None:
    handed_over = activity.get_next[:, 1]
    if len(handed_over) < FEWEST_BATCHES:
        return None
    windows = np.column_stack((handed_over[:-1], handed_over[1:]))
    return StepWindows(windows, tuple(range(len(windows))), "get_next")
