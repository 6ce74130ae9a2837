"""The steps of a profile, and the nanoseconds that each class takes of each step."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipediag.trace import START_UP, STEP_MARKER
from pipediag.trace.device.streams import device_class, stream_lines
from pipediag.trace.events import Indices, Line, Times, TraceEvents
from pipediag.trace.host.classes import STEP_CLASSES, Activity, sweep
from pipediag.trace.host.graph_loop import FEWEST_BATCHES
from pipediag.trace.host.threads import events_named
from pipediag.trace.host.training_graph import names_with
from pipediag.trace.intervals import covered
from pipediag.trace.steps.outermost import outermost
from pipediag.trace.steps.repetition import FEWEST_REPEATS, Repeat, name_kinds, repeats
from pipediag.trace.steps.roots import root_windows
from pipediag.vocabulary import StepBasis, StepClass

_OPERATION_STATS = ("tf_op", "hlo_op", "hlo_module", "name", "level 0", "annotation")


def periodic_windows(events: TraceEvents) -> NDArray[np.int64] | None:
    """Windows from one start of a kernel to the next, shape (steps, 2); None without a period.

    One stream is looked at, the one that computed longest: the order of kernels on different
    streams differs from step to step. Copies are left out, since input arrives when it will. The
    kernel is one that runs once a step; of several, the one that the stream waited longest for.
    """
    streams = [line for plane in events.accelerators for line in stream_lines(plane)]
    kernels = [(line, _kernels(line)) for line in streams if len(line)]
    if not kernels:
        return None
    line, indices = max(kernels, key=lambda pair: _time_ns(*pair))
    starts, lengths = line.start_ns[indices], (line.end_ns - line.start_ns)[indices]
    found = _likely_first(repeats(name_kinds(line)[indices], lengths))
    same_steps = [repeat for repeat in found if _is_one_operation(line, indices[repeat.places])]
    if not same_steps:
        return None
    count = len(same_steps[0].places)
    waits = _waits(starts, line.end_ns[indices])
    first = max(
        # Of a step that the profile saw in part, only some kernels are there.
        (repeat for repeat in same_steps if abs(len(repeat.places) - count) <= 1),
        key=lambda repeat: (np.median(waits[repeat.places[1:]]), -repeat.places[0]),
    )
    edges = starts[first.places]
    return np.column_stack((edges[:-1], edges[1:]))


def _kernels(line: Line) -> NDArray[np.intp]:
    keys = [key for key, name in line.used_names.items() if device_class(name) != "device_copy"]
    return np.flatnonzero(line.named(keys))


def _time_ns(line: Line, indices: NDArray[np.intp]) -> int:
    return int((line.end_ns[indices] - line.start_ns[indices]).sum())


def _likely_first(found: Sequence[Repeat]) -> list[Repeat]:
    """The longest period that is kept exactly comes before one that is kept mostly.

    Where logging runs every ten steps and the profile sees three times ten, ten steps pass for
    one; the other way round one cell of a recurrent layer would.
    """
    return sorted(found, key=lambda repeat: (-repeat.same_share, -len(repeat.places)))


def _is_one_operation(line: Line, indices: NDArray[np.intp]) -> bool:
    """A kernel of a step belongs to the same operation each time; one of a layer, to each layer's.

    Where the profile does not name operations, nothing speaks against it.
    """
    first = [line.stats(index) for index in indices[:FEWEST_REPEATS].tolist()]
    return all(len({stats.get(name) for stats in first}) == 1 for name in _OPERATION_STATS)


def _waits(starts: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """How long the stream had been idle before each kernel."""
    waits = np.zeros(len(starts), np.int64)
    waits[1:] = np.maximum(starts[1:] - np.maximum.accumulate(ends)[:-1], 0)
    return waits


# The steps that a script or its framework annotated.
#
# Keras, TensorFlow's `Trace` and JAX's `StepTraceAnnotation` write an event with the statistic
# `step_num`; older TensorFlow names it `train` or `test` and marks it as a root (`_r`). PyTorch's
# profiler writes `ProfilerStep#N`.

FEWEST_ANNOTATIONS = 2
"""One annotation may be around the whole training."""

_STEP_NUMBER = "step_num"
_ROOT = "_r"
_ROOT_NAMES = re.compile(r"train|test")
_PROFILER_STEP = re.compile(r"ProfilerStep#(\d+)$")


@dataclass(frozen=True)
class AnnotatedSteps:
    """The steps of one annotation on one thread."""

    windows: NDArray[np.int64]
    """Shape (steps, 2): start and end in nanoseconds; disjoint, in order of time."""
    numbers: tuple[int, ...]
    """What the annotation says; the position where it says nothing."""

    @property
    def rank(self) -> tuple[int, int]:
        """More steps are better; of two annotations that nest, the outer one is."""
        return len(self.windows), int((self.windows[:, 1] - self.windows[:, 0]).sum())


def annotated_steps(events: TraceEvents) -> AnnotatedSteps | None:
    """The annotation with most steps that do not lie within one another, or None.

    A step that ends after the next one's start is cut there.
    """
    found = [steps for line in events.host_lines for steps in _on_line(line)]
    found = [steps for steps in found if len(steps.windows) >= FEWEST_ANNOTATIONS]
    return max(found, key=lambda steps: steps.rank, default=None)


def _on_line(line: Line) -> Iterator[AnnotatedSteps]:
    for keys in _annotations(line).values():
        indices = np.flatnonzero(line.named(keys))
        indices = indices[outermost(line.end_ns[indices])]
        starts, ends = line.start_ns[indices], line.end_ns[indices]
        ends[:-1] = np.minimum(ends[:-1], starts[1:])
        windows = np.column_stack((starts, ends))
        yield AnnotatedSteps(windows, _numbers(line, indices))


def _annotations(line: Line) -> dict[str, list[int]]:
    """The line's annotations of steps, and under which names each is written."""
    numbered, roots = set(names_with(line, _STEP_NUMBER)), set(names_with(line, _ROOT))
    found: dict[str, list[int]] = {}
    for key, name in line.used_names.items():
        if _PROFILER_STEP.match(name):
            found.setdefault("ProfilerStep", []).append(key)
        elif key in numbered or (key in roots and _ROOT_NAMES.match(name)):
            found.setdefault(name, []).append(key)
    return found


def _numbers(line: Line, indices: Indices) -> tuple[int, ...]:
    values, present = line.statistics.integers(_STEP_NUMBER, indices)
    named = [_PROFILER_STEP.match(line.event_name(index)) for index in indices.tolist()]
    return tuple(
        int(values[position]) if present[position] else int(name[1]) if name else position
        for position, name in enumerate(named)
    )


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
