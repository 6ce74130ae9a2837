"""The steps of a profile: what each class takes of each step, and each operation of their compute.

Without an accelerator these are the operations of the training graph on the host's threads, with
one the kernels of its devices by the operation that launched them. Where several run at once, each
gets an equal part of that time, so that they add up to the step's compute. The program that the
profile keeps says of which operations each of XLA's instructions was made.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipediag.tensorflow_names import TEXT_WORK
from pipediag.trace import START_UP, STEP_MARKER
from pipediag.trace.classes import STEP_CLASSES, Activity, sweep
from pipediag.trace.device_events import device_events
from pipediag.trace.events import CompiledWork, Indices, Line, Plane, Program, Times, TraceEvents
from pipediag.trace.intervals import EMPTY, Intervals, covered, intersect, normalise, total, union
from pipediag.trace.threads import (
    FEWEST_BATCHES,
    THUNK,
)
from pipediag.vocabulary import StepBasis, StepClass

FEWEST_ANNOTATIONS = 2
"""One annotation may be around the whole training."""

_STEP_NUMBER = "step_num"
_PROFILER_STEP = re.compile(r"ProfilerStep#(\d+)$")


@dataclass(frozen=True)
class StepWindows:
    """Start and end of each step."""

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
    """Time of each step by class."""

    steps: StepWindows
    ns: NDArray[np.int64]
    """Shape (steps, classes), columns as in `classes`; each row adds up to its step exactly."""
    classes: tuple[StepClass, ...] = STEP_CLASSES

    def up_to(self, times_median: float) -> StepSplit:
        """Return the steps that are not longer than so many times the median."""
        durations = self.durations_ns
        kept = durations <= times_median * np.median(durations)
        numbers = tuple(n for n, one in zip(self.steps.numbers, kept, strict=True) if one)
        steps = replace(self.steps, windows=self.steps.windows[kept], numbers=numbers)
        return replace(self, steps=steps, ns=self.ns[kept])

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
    )


def find_steps(events: TraceEvents, activity: Activity) -> StepWindows | None:
    """Return the steps by the first means that shows any; None if none does.

    pipediag's markers, annotations of a framework or a script, the scan of a loop inside a graph
    over a dataset, and the ends of GetNext calls.
    """
    return (
        _marked_steps(activity)
        or annotated_steps(events)
        or _counted(None if activity.loop is None else activity.loop.steps, "scan")
        or _fetched_steps(activity)
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


_OPERATION_STAT = "tf_op"
_PROGRAM = "program_id"
_OF_XLA = (THUNK, "hlo_module")
_EAGER = "eager:"
"""Stands for all operations that run between the calls of graphs."""
_Work = str | CompiledWork | None
"""Name in the graph, empty where it has none; operations that XLA made one of; or None for a
program of XLA that the profile does not keep."""
_Programs = Mapping[int, Program]


@dataclass(frozen=True)
class ComputeTimes:
    """Compute of all steps of a profile together, in nanoseconds."""

    total_ns: int
    """Time in which anything was computed."""
    summed_ns: int
    """Time added up over what ran at once."""
    by_operation: dict[str, float]
    """Operations as `scope/name:Type`; all eager ones together as `eager:`."""
    compiled_ns: float
    """Programs of XLA that the profile does not keep."""
    by_instruction: dict[CompiledWork, float] = field(default_factory=dict)
    """Other instructions of XLA."""

    @property
    def unnamed_ns(self) -> float:
        """Time for which no operation is known."""
        known = sum(self.by_operation.values()) + sum(self.by_instruction.values())
        return max(0.0, self.total_ns - self.compiled_ns - known)


class _Pieces(NamedTuple):
    """Spans in which an operation ran."""

    works: list[_Work]
    work_of: Indices
    """For each span, the place of what ran."""
    spans: NDArray[np.int64]


def compute_times(
    events: TraceEvents, activity: Activity, windows: NDArray[np.int64], total_ns: int
) -> ComputeTimes:
    """Divide the compute of the steps, whose windows are given, among operations."""
    programs = events.programs
    if events.accelerators:
        pieces = list(_on_devices(events.accelerators, programs))
    else:
        pieces = [_Pieces([_EAGER], np.zeros(len(activity.eager), np.intp), activity.eager)]
        for line, indices, spans in activity.graph.operation_pieces():
            named = list(line.plane.names), line.name_ids[indices].astype(np.intp)
            by_xla = line.named(line.names_with(THUNK))[indices]
            pieces.append(_pieces(line, indices, spans, named, by_xla, programs))
    ran = np.concatenate([np.empty((0, 2), np.int64), *(one.spans for one in pieces)])
    took, summed_ns = shares(ran, windows)
    times: dict[_Work, float] = {}
    behind = np.cumsum([len(one.spans) for one in pieces])
    for (works, work_of, _), its in zip(pieces, np.split(took, behind[:-1]), strict=True):
        sums = np.bincount(work_of, its, minlength=len(works))
        for place in np.flatnonzero(sums).tolist():
            times[works[place]] = times.get(works[place], 0.0) + float(sums[place])
    return ComputeTimes(
        total_ns,
        summed_ns,
        {work: ns for work, ns in times.items() if isinstance(work, str) and work},
        times.get(None, 0.0),
        {work: ns for work, ns in times.items() if isinstance(work, CompiledWork)},
    )


def _on_devices(planes: list[Plane], programs: _Programs) -> Iterator[_Pieces]:
    for plane in planes:
        device = device_events(plane)
        computing = device.of_class("device_compute")
        for place, line in enumerate(device.lines):
            chosen = computing & (device.line_ids == place)
            indices = device.indices[chosen]
            by_xla = np.zeros(len(indices), np.bool_)
            for stat in _OF_XLA:
                modules, module_of = line.statistics.texts(stat, indices)
                by_xla |= np.array([bool(text) for text in modules], np.bool_)[module_of]
            spans = np.column_stack((device.start_ns[chosen], device.end_ns[chosen]))
            named = line.statistics.texts(_OPERATION_STAT, indices)
            yield _pieces(line, indices, spans, named, by_xla, programs)


def _pieces(
    line: Line,
    indices: Indices,
    spans: NDArray[np.int64],
    named: tuple[list[str], Indices],
    by_xla: NDArray[np.bool_],
    programs: _Programs,
) -> _Pieces:
    """Return events of a line by the names that are given, but those of XLA by its programs."""
    works: list[_Work] = list(named[0])
    work_of = named[1].copy()
    of_xla = indices[by_xla]
    instructions, instruction_of = line.statistics.texts(THUNK, of_xla)
    numbers, number_of = np.unique(line.integers(_PROGRAM, of_xla), return_inverse=True)
    pairs, pair_of = np.unique(number_of * len(instructions) + instruction_of, return_inverse=True)
    work_of[by_xla] = pair_of + len(works)
    for pair in pairs.tolist():
        number, instruction = divmod(pair, len(instructions))
        program = programs.get(int(numbers[number]))
        works.append(None if program is None else program.work(instructions[instruction]))
    return _Pieces(works, work_of, spans)


def shares(spans: NDArray[np.int64], windows: NDArray[np.int64]) -> tuple[NDArray[np.float64], int]:
    """Divide the time within the windows among the spans; also return the sum of their times."""
    edges, places = np.unique(np.concatenate((spans.ravel(), windows.ravel())), return_inverse=True)
    places = places.reshape(-1, 2)
    running = _open(places[: len(spans)], len(edges))
    lengths = np.append(np.diff(edges), 0) * (_open(places[len(spans) :], len(edges)) > 0)
    each = np.divide(lengths, running, out=np.zeros(len(edges)), where=running > 0)
    elapsed = np.append(0.0, np.cumsum(each))
    starts, ends = places[: len(spans)].T
    return elapsed[ends] - elapsed[starts], int((lengths * running).sum())


def _open(places: NDArray[np.intp], edges: int) -> NDArray[np.int64]:
    """Count the spans, given by the places of their edges, that are open from each edge on."""
    begun = np.bincount(places[:, 0], minlength=edges) - np.bincount(places[:, 1], minlength=edges)
    return np.cumsum(begun)


@dataclass(frozen=True)
class TextTimes:
    """Work on text within all steps of a profile together, in nanoseconds."""

    total_ns: int
    """Time in which any such operation ran."""
    by_type: dict[str, int]
    """Time of each type alone: what runs at once counts for each."""


def text_times(activity: Activity, windows: NDArray[np.int64]) -> TextTimes:
    """Measure work on text in the graph of the steps, whose windows are given.

    Such operations split, hash and look up strings, or decode bytes. They run on the host, so the
    input pipeline could do the same during the step before.
    """
    if not any(map(_types, activity.graph.lines)):
        return TextTimes(0, {})
    ran: dict[str, Intervals] = {}
    for line, indices, spans in activity.graph.operation_pieces():
        keys = line.name_ids[indices]
        for key, kind in _types(line).items():
            found = spans[keys == key]
            ran[kind] = union(ran.get(kind, EMPTY), normalise(found[:, 0], found[:, 1]))
    steps = normalise(windows[:, 0], windows[:, 1])
    by_type = {kind: total(intersect(spans, steps)) for kind, spans in ran.items()}
    return TextTimes(
        total_ns=total(intersect(union(*ran.values()), steps)),
        by_type={kind: ns for kind, ns in by_type.items() if ns},
    )


def _types(line: Line) -> dict[int, str]:
    """Return such operations' names on the line, by their places, and their types."""
    return {
        key: kind
        for key, name in line.used_names.items()
        if (kind := name.rpartition(":")[2]) in TEXT_WORK
    }
