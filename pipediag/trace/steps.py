"""The steps of a profile, and the nanoseconds that each class takes of each step.

Where nothing says which event begins a step, steps come from what repeats. A kind of event may
begin a step if the same kinds happen, as often, from each of its occurrences to the next. Steps
fill the sequence; something that is repeated within one step, as a layer is, leaves much of it.

The cost of a call is the device time of what was launched between its start and the next call's, as
JAX may launch after the call has returned, and TensorFlow on another thread. Without an accelerator
it is the call's own duration.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pipediag.trace import START_UP, STEP_MARKER
from pipediag.trace.classes import STEP_CLASSES, Activity, sweep
from pipediag.trace.device_events import (
    NOT_FOUND,
    device_events,
    launch_calls,
)
from pipediag.trace.events import Indices, Line, Times, TraceEvents
from pipediag.trace.intervals import covered
from pipediag.trace.threads import (
    FEWEST_BATCHES,
    captured_function_ids,
    function_time,
    is_pipeline_thread,
)
from pipediag.vocabulary import StepBasis, StepClass

FEWEST_REPEATS = 3
"""Between two events of a kind lies one stretch, which cannot be seen to repeat."""

SAME_SHARE = 0.75
"""Share of the stretches, and of their cost, that must hold the same: a checkpoint may come now and
then."""

LONGEST_REST = 2
"""Usual stretches that may lie before the first event, and as many from the last one on."""

DOMINANT_SHARE = 0.9
"""A function with this much of the cost is the step, whatever is called between its calls."""

LARGEST_DEVIATION = 0.25
"""Largest share by which a number of launches may differ from the median where a name does not say
which function is called. Different functions lie further apart."""

_FUNCTION_CALL = "tf_function_call"
# They say which function they call; PyTorch's optimizers are called once a step.
_NAMED_CALL = re.compile(r"PjitFunction\(|Optimizer\.step#")
# These share one name, whatever they fetch from or call.
_UNNAMED_CALLS = (
    re.compile(r"enumerate\(DataLoader\)"),
    re.compile(r"(FunctionRun|SessionRun|TFE_Py_Execute(Cancelable)?)$"),
)

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
    over a dataset, the ends of GetNext calls, and at last calls of the training function.
    """
    return (
        _marked_steps(activity)
        or annotated_steps(events)
        or _counted(None if activity.loop is None else activity.loop.steps, "scan")
        or _fetched_steps(activity)
        or _counted(root_windows(events, activity.line), "roots")
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


def repeats(kinds: NDArray[np.int64], costs: NDArray[np.int64]) -> dict[int, float]:
    """Return every kind that may begin a step, given the cost of each event of the sequence.

    With each, the part of the cost between its first and its last event that is the same each time.
    """
    if not len(kinds):
        return {}
    # Where running sums of random weights differ by the same, the same kinds lie between.
    _, ranks = np.unique(kinds, return_inverse=True)
    weights = np.random.default_rng(0).integers(
        0, np.iinfo(np.uint64).max, int(ranks.max()) + 1, np.uint64
    )
    contents = np.append(np.uint64(0), np.cumsum(weights[ranks], dtype=np.uint64))
    spent = np.append(0, np.cumsum(costs))
    places = np.argsort(kinds, kind="stable")
    edges = np.flatnonzero(np.diff(kinds[places])) + 1
    found = {}
    for of_kind in np.split(places, edges):
        if len(of_kind) >= FEWEST_REPEATS:
            same = _same_share(of_kind, contents, spent)
            if same is not None:
                found[int(kinds[of_kind[0]])] = same
    return found


def _same_share(
    places: NDArray[np.intp], contents: NDArray[np.uint64], spent: NDArray[np.int64]
) -> float | None:
    """Return the share of the cost that is the same each time; None where it is too little."""
    costs = np.diff(spent[places])
    _, groups = np.unique(np.diff(contents[places]), return_inverse=True)
    numbers, shares = np.bincount(groups), np.bincount(groups, weights=costs)
    usual = int(np.argmax(numbers))
    if not costs.sum() or numbers[usual] < FEWEST_REPEATS - 1:
        return None
    same = float(shares[usual] / costs.sum())
    rest = max(spent[places[0]], spent[-1] - spent[places[-1]])
    too_long = rest > LONGEST_REST * np.median(costs[groups == usual])
    return None if too_long or min(same, numbers[usual] / len(costs)) < SAME_SHARE else same


def _name_kinds(line: Line) -> NDArray[np.int64]:
    """Number the events of a line by name; a plane may have a name twice."""
    numbers: dict[str, int] = {}
    by_key = [numbers.setdefault(name, len(numbers)) for name in line.plane.names]
    kinds: NDArray[np.int64] = np.array(by_key, np.int64)[line.name_ids]
    return kinds


def outermost(end_ns: Times) -> NDArray[np.bool_]:
    """Return which events do not lie within an earlier one, given their ends in a line's order.

    JAX writes some events twice, one around the other. Events that overlap in part are all kept.
    """
    latest = np.maximum.accumulate(end_ns)
    kept = np.ones(len(end_ns), np.bool_)
    kept[1:] = end_ns[1:] > latest[:-1]
    return kept


def root_windows(events: TraceEvents, training: Line | None) -> NDArray[np.int64] | None:
    """Return windows from one call of the training function to the next; None without one.

    The function is on the training thread or, where that is unknown, on any but tf.data's. One
    that takes nearly all of the cost is the step; else the most costly one between whose calls the
    same functions are called each time.
    """
    launches = _launches(events)
    functions = captured_function_ids(events)
    roots = [
        root
        for line in (events.host_lines if training is None else [training])
        if not is_pipeline_thread(line) and (root := _root(line, launches, functions))
    ]
    if not roots:
        return None
    _, starts = max(roots, key=lambda root: root[0])
    return np.column_stack((starts[:-1], starts[1:]))


def _launches(events: TraceEvents) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return for all activities of devices when they were launched, and how long they took."""
    calls = launch_calls(events)
    call_ns, device_ns = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for plane in events.accelerators:
        device = device_events(plane)
        launched_by = calls.of(device)
        matched = launched_by != NOT_FOUND
        call_ns.append(calls.start_ns[launched_by[matched]])
        device_ns.append((device.end_ns - device.start_ns)[matched])
    return np.concatenate(call_ns), np.concatenate(device_ns)


def _root(
    line: Line,
    launches: tuple[NDArray[np.int64], NDArray[np.int64]],
    pipeline_ids: Set[int],
) -> tuple[float, NDArray[np.int64]] | None:
    """Return the cost and the starts of the calls on the line that begin the steps."""
    keys = {*line.names_like(_NAMED_CALL), *line.names_with(_FUNCTION_CALL)}
    indices = _of_training(line, line.having(keys), pipeline_ids)
    named = len(indices) >= FEWEST_REPEATS
    for pattern in _UNNAMED_CALLS:
        if len(indices) < FEWEST_REPEATS:
            indices = _of_training(line, line.matching(pattern), pipeline_ids)
    start_ns, functions = line.start_ns[indices], _name_kinds(line)[indices]
    costs = line.end_ns[indices] - start_ns
    steady = True
    call_ns, device_ns = launches
    if len(call_ns):
        place = np.searchsorted(start_ns, call_ns, side="right") - 1
        after_first = place >= 0
        costs = np.zeros(len(indices), np.int64)
        np.add.at(costs, place[after_first], device_ns[after_first])
        # The profile may cut the last call short.
        launched = np.bincount(place[after_first], minlength=len(indices))[:-1]
        if not named and len(launched):
            usual = np.median(launched)
            near = np.abs(launched - usual) <= LARGEST_DEVIATION * usual
            steady = bool(near.mean() >= SAME_SHARE)
    cost_of = {}
    for function in np.unique(functions).tolist():
        each = costs[functions == function]
        if len(each) >= FEWEST_REPEATS:
            # Tracing costs more than a call usually does.
            cost_of[function] = len(each) * float(np.median(each))
    least = DOMINANT_SHARE * sum(cost_of.values())
    likely = [function for function, cost in cost_of.items() if cost and cost >= least]
    likely = likely or list(repeats(functions, costs))
    function = max(likely, key=lambda function: cost_of[function], default=None)
    if function is None or not steady:
        return None
    return cost_of[function], start_ns[functions == function]


def _of_training(line: Line, indices: Indices, pipeline_ids: Set[int]) -> Indices:
    """Return the outermost calls but for the pipeline's functions, and those that these make."""
    of_pipeline = covered(function_time(line, pipeline_ids), line.spans(indices)) > 0
    of_pipeline |= np.isin(line.step_ids(indices), list(pipeline_ids))
    indices = indices[~of_pipeline]
    return indices[outermost(line.end_ns[indices])]
