"""Steps from what repeats, where nothing says which event begins a step.

A kind of event may begin a step if the same happens from each of its occurrences to the next: the
same kinds, as often as each time before, in whatever order. Steps fill the sequence; something that
is repeated within one step, as a layer is, leaves much of it before or after.

Calls of a training function come first. PyTorch has no such function: its optimizer is called once
a step, and where a loop has none, the DataLoader is asked for a batch once a step. The cost of a
call is the device time of what was launched between its start and the next call's: JAX may launch
after the call has returned, TensorFlow on another thread. Without an accelerator it is the call's
own duration.
"""

from __future__ import annotations

import re
from collections.abc import Set
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipediag.trace.device_events import (
    NOT_FOUND,
    device_class,
    device_events,
    launch_calls,
    stream_lines,
)
from pipediag.trace.events import Indices, Line, Times, TraceEvents
from pipediag.trace.intervals import covered
from pipediag.trace.threads import captured_function_ids, function_time, is_pipeline_thread

FEWEST_REPEATS = 3
"""Between two events of a kind lies one stretch, which cannot be seen to repeat."""

SAME_SHARE = 0.75
"""How many of the stretches, and how much of their cost, must hold the same: logging, a checkpoint
or another kind of batch may come now and then."""

LONGEST_REST = 2
"""How many usual stretches may lie before the first event, and as many from the last one on: a step
that the profile saw in part, and time outside the training."""

DOMINANT_SHARE = 0.9
"""A function with this much of the cost is the step, whatever is called between its calls."""

LARGEST_DEVIATION = 0.25
"""How far from the median the number of launches may be where a name does not say which function is
called: a copy or a metric more or less. Different functions lie further apart."""

_FUNCTION_CALL = "tf_function_call"
# They say which function they call; PyTorch's optimizers are called once a step.
_NAMED_CALL = re.compile(r"PjitFunction\(|Optimizer\.step#")
# These share one name, whatever they fetch from or call.
_UNNAMED_CALLS = (
    re.compile(r"enumerate\(DataLoader\)"),
    re.compile(r"(FunctionRun|SessionRun|TFE_Py_Execute(Cancelable)?)$"),
)
_OPERATION_STATS = ("tf_op", "hlo_op", "hlo_module", "name", "level 0", "annotation")


@dataclass(frozen=True)
class Repeat:
    """A kind of event between whose occurrences the same happens."""

    kind: int
    places: NDArray[np.intp]
    """Where it occurs in the sequence."""
    same_share: float
    """The part of the cost between its first and its last occurrence that is the same each time."""


def repeats(kinds: NDArray[np.int64], costs: NDArray[np.int64]) -> list[Repeat]:
    """Return every kind that may begin a step, given the cost of each event of the sequence."""
    if not len(kinds):
        return []
    # Where running sums of random weights differ by the same, the same kinds lie between.
    _, ranks = np.unique(kinds, return_inverse=True)
    weights = np.random.default_rng(0).integers(
        0, np.iinfo(np.uint64).max, int(ranks.max()) + 1, np.uint64
    )
    contents = np.append(np.uint64(0), np.cumsum(weights[ranks], dtype=np.uint64))
    spent = np.append(0, np.cumsum(costs))
    places = np.argsort(kinds, kind="stable")
    edges = np.flatnonzero(np.diff(kinds[places])) + 1
    found = []
    for of_kind in np.split(places, edges):
        if len(of_kind) >= FEWEST_REPEATS:
            same = _same_share(of_kind, contents, spent)
            if same is not None:
                found.append(Repeat(int(kinds[of_kind[0]]), of_kind, same))
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
    """Tell which events do not lie within an earlier one, given their ends in a line's order.

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
        if not is_pipeline_thread(line) and (root := _root(_calls(line, launches, functions)))
    ]
    if not roots:
        return None
    _, starts = max(roots, key=lambda root: root[0])
    return np.column_stack((starts[:-1], starts[1:]))


@dataclass(frozen=True)
class _Calls:
    """Outermost calls of functions on one thread, by start."""

    start_ns: NDArray[np.int64]
    functions: NDArray[np.int64]
    """Which function each calls."""
    costs: NDArray[np.int64]
    launched: NDArray[np.int64] | None
    """How many activities of devices each call started; None without an accelerator."""
    named: bool
    """Whether the calls say which function they call; else they have one name for all."""


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


def _calls(
    line: Line,
    launches: tuple[NDArray[np.int64], NDArray[np.int64]],
    pipeline_ids: Set[int],
) -> _Calls:
    keys = {*line.names_like(_NAMED_CALL), *line.names_with(_FUNCTION_CALL)}
    indices = _of_training(line, line.having(keys), pipeline_ids)
    named = len(indices) >= FEWEST_REPEATS
    for pattern in _UNNAMED_CALLS:
        if len(indices) < FEWEST_REPEATS:
            indices = _of_training(line, line.matching(pattern), pipeline_ids)
    start_ns, functions = line.start_ns[indices], _name_kinds(line)[indices]
    call_ns, device_ns = launches
    if not len(call_ns):
        return _Calls(start_ns, functions, line.end_ns[indices] - start_ns, None, named)
    place = np.searchsorted(start_ns, call_ns, side="right") - 1
    after_first = place >= 0
    launched = np.bincount(place[after_first], minlength=len(indices))
    costs = np.zeros(len(indices), np.int64)
    np.add.at(costs, place[after_first], device_ns[after_first])
    return _Calls(start_ns, functions, costs, launched, named)


def _of_training(line: Line, indices: Indices, pipeline_ids: Set[int]) -> Indices:
    """Return the outermost calls but for the pipeline's functions, and those that these make."""
    of_pipeline = covered(function_time(line, pipeline_ids), line.spans(indices)) > 0
    of_pipeline |= np.isin(line.step_ids(indices), list(pipeline_ids))
    indices = indices[~of_pipeline]
    return indices[outermost(line.end_ns[indices])]


def _root(calls: _Calls) -> tuple[float, NDArray[np.int64]] | None:
    """Return the cost and the starts of the calls that begin the steps."""
    costs = {}
    for function in np.unique(calls.functions).tolist():
        each = calls.costs[calls.functions == function]
        if len(each) >= FEWEST_REPEATS:
            # Tracing costs more than a call usually does.
            costs[function] = len(each) * float(np.median(each))
    least = DOMINANT_SHARE * sum(costs.values())
    likely = [function for function, cost in costs.items() if cost and cost >= least]
    likely = likely or [repeat.kind for repeat in repeats(calls.functions, calls.costs)]
    function = max(likely, key=lambda function: costs[function], default=None)
    if function is None or not (calls.named or _is_steady(calls.launched)):
        return None
    return costs[function], calls.start_ns[calls.functions == function]


def _is_steady(launched: NDArray[np.int64] | None) -> bool:
    """Tell whether each call starts about as much; the profile may cut the last one short."""
    if launched is None:
        return True
    usual = np.median(launched[:-1])
    near = np.abs(launched[:-1] - usual) <= LARGEST_DEVIATION * usual
    return bool(near.mean() >= SAME_SHARE)


def periodic_windows(events: TraceEvents) -> NDArray[np.int64] | None:
    """Return windows from one start of a kernel to the next; None without a period.

    Only the stream that computed longest counts: the order of kernels on different streams differs
    from step to step. Copies are left out, since input arrives when it will. The kernel is one that
    runs once a step; of several, the one for which the stream waited longest.
    """
    kernels = []
    for line in (line for plane in events.accelerators for line in stream_lines(plane)):
        names = line.used_names.items()
        indices = line.having([key for key, name in names if device_class(name) != "device_copy"])
        lengths = (line.end_ns - line.start_ns)[indices]
        if len(line):
            kernels.append((int(lengths.sum()), line, indices, lengths))
    if not kernels:
        return None
    _, line, indices, lengths = max(kernels, key=lambda kernel: kernel[0])
    # The longest period that is kept exactly comes before one that is kept mostly. Where logging
    # runs every ten steps and the profile has three times ten, ten steps pass for one; the other
    # way round one cell of a recurrent layer would.
    found = sorted(
        repeats(_name_kinds(line)[indices], lengths),
        key=lambda repeat: (-repeat.same_share, -len(repeat.places)),
    )
    same_steps = [repeat for repeat in found if _is_one_operation(line, indices[repeat.places])]
    if not same_steps:
        return None
    count = len(same_steps[0].places)
    starts, ends = line.start_ns[indices], line.end_ns[indices]
    waits = np.zeros(len(starts), np.int64)
    waits[1:] = np.maximum(starts[1:] - np.maximum.accumulate(ends)[:-1], 0)
    first = max(
        # Of a step that the profile saw in part, only some kernels are there.
        (repeat for repeat in same_steps if abs(len(repeat.places) - count) <= 1),
        key=lambda repeat: (np.median(waits[repeat.places[1:]]), -repeat.places[0]),
    )
    edges = starts[first.places]
    return np.column_stack((edges[:-1], edges[1:]))


def _is_one_operation(line: Line, indices: NDArray[np.intp]) -> bool:
    """Tell whether a kernel belongs to the same operation each time; a layer's belong to several.

    Where the profile does not name operations, nothing speaks against it.
    """
    first = [line.stats(index) for index in indices[:FEWEST_REPEATS].tolist()]
    return all(len({stats.get(name) for stats in first}) == 1 for name in _OPERATION_STATS)
