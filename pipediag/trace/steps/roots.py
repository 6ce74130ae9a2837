"""Steps from repeated calls of a training function, where nothing annotates them.

PyTorch has no such function: its optimizer is called once a step, and where a loop has none, the
DataLoader is asked for a batch once a step.

What a call costs is the device time of what was launched between its start and the next call's:
JAX may launch after the call has returned, TensorFlow on another thread. Without an accelerator it
is the call's own duration.
"""

from __future__ import annotations

import re
from collections.abc import Set
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipediag.trace.device.launches import NOT_FOUND, launch_calls
from pipediag.trace.device.streams import device_events
from pipediag.trace.events import Indices, Line, TraceEvents
from pipediag.trace.host.classes import Activity
from pipediag.trace.host.threads import (
    captured_function_ids,
    function_time,
    is_pipeline_thread,
    step_ids,
)
from pipediag.trace.host.training_graph import names_with
from pipediag.trace.intervals import covered
from pipediag.trace.steps.outermost import outermost
from pipediag.trace.steps.repetition import FEWEST_REPEATS, SAME_SHARE, name_kinds, repeats

DOMINANT_SHARE = 0.9
"""A function with this much of the cost is the step, whatever is called between its calls."""

LARGEST_DEVIATION = 0.25
"""How far from the median the number of launches may be where a name does not say which function is
called: a copy or a metric more or less. Different functions lie further apart."""

_FUNCTION_CALL = "tf_function_call"
# They say which function they call; PyTorch's optimizers are called once a step.
_NAMED_CALL = re.compile(r"PjitFunction\(|Optimizer\.step#")
# These share one name, whatever they fetch from or call.
_BATCH_FETCH = re.compile(r"enumerate\(DataLoader\)")
_ANY_CALL = re.compile(r"(FunctionRun|SessionRun|TFE_Py_Execute(Cancelable)?)$")


@dataclass(frozen=True)
class _Launches:
    """What the host started on devices, by the time of the call that did."""

    call_ns: NDArray[np.int64]
    device_ns: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.call_ns)


@dataclass(frozen=True)
class _Calls:
    """The outermost calls of functions on one thread, by start."""

    start_ns: NDArray[np.int64]
    functions: NDArray[np.int64]
    """Which function each calls."""
    costs: NDArray[np.int64]
    launched: NDArray[np.int64] | None
    """How many activities of devices each call started; None without an accelerator."""
    named: bool
    """Whether the calls say which function they call; else they have one name for all."""

    @property
    def cost_of(self) -> dict[int, float]:
        """Each repeated function's calls times what a call usually costs, tracing being unusual."""
        functions, counts = np.unique(self.functions, return_counts=True)
        return {
            function: count * float(np.median(self.costs[self.functions == function]))
            for function, count in zip(functions.tolist(), counts.tolist(), strict=True)
            if count >= FEWEST_REPEATS
        }


@dataclass(frozen=True)
class _Root:
    """The function whose calls begin the steps."""

    start_ns: NDArray[np.int64]
    cost: float


def root_windows(events: TraceEvents, activity: Activity) -> NDArray[np.int64] | None:
    """Windows from one call to the next, shape (steps, 2); None where no function is repeated.

    The function is looked for on the training thread; where none is known, on every thread but
    tf.data's. A function that takes nearly all of the cost is the step; else the most costly one
    between whose calls the same functions are called each time.
    """
    lines = [activity.line] if activity.line is not None else events.host_lines
    launches = _launches(events)
    functions = captured_function_ids(events)
    roots = [
        root
        for line in lines
        if not is_pipeline_thread(line) and (root := _root(_calls(line, launches, functions)))
    ]
    best = max(roots, key=lambda root: root.cost, default=None)
    if best is None:
        return None
    return np.column_stack((best.start_ns[:-1], best.start_ns[1:]))


def _launches(events: TraceEvents) -> _Launches:
    calls = launch_calls(events)
    call_ns, device_ns = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for plane in events.accelerators:
        device = device_events(plane)
        launched_by = calls.of(device)
        matched = launched_by != NOT_FOUND
        call_ns.append(calls.start_ns[launched_by[matched]])
        device_ns.append((device.end_ns - device.start_ns)[matched])
    return _Launches(np.concatenate(call_ns), np.concatenate(device_ns))


def _calls(line: Line, launches: _Launches, pipeline_ids: Set[int]) -> _Calls:
    indices = _outermost(line, _outside(line, _named_calls(line), pipeline_ids))
    named = len(indices) >= FEWEST_REPEATS
    if not named:
        for pattern in (_BATCH_FETCH, _ANY_CALL):
            indices = _outermost(line, _outside(line, _matching(line, pattern), pipeline_ids))
            if len(indices) >= FEWEST_REPEATS:
                break
    start_ns, functions = line.start_ns[indices], name_kinds(line)[indices]
    if not len(launches):
        return _Calls(start_ns, functions, line.end_ns[indices] - start_ns, None, named)
    place = np.searchsorted(start_ns, launches.call_ns, side="right") - 1
    after_first = place >= 0
    launched = np.bincount(place[after_first], minlength=len(indices))
    costs = np.zeros(len(indices), np.int64)
    np.add.at(costs, place[after_first], launches.device_ns[after_first])
    return _Calls(start_ns, functions, costs, launched, named)


def _named_calls(line: Line) -> Indices:
    keys = {key for key, name in line.used_names.items() if _NAMED_CALL.match(name)}
    return np.flatnonzero(line.named(keys | set(names_with(line, _FUNCTION_CALL))))


def _matching(line: Line, pattern: re.Pattern[str]) -> Indices:
    keys = [key for key, name in line.used_names.items() if pattern.match(name)]
    return np.flatnonzero(line.named(keys))


def _outside(line: Line, indices: Indices, pipeline_ids: Set[int]) -> Indices:
    """Those that are no functions of the pipeline, nor called by Python in them."""
    spans = np.column_stack((line.start_ns[indices], line.end_ns[indices]))
    of_pipeline = covered(function_time(line, pipeline_ids), spans) > 0
    of_pipeline |= np.isin(step_ids(line, indices), list(pipeline_ids))
    kept: Indices = indices[~of_pipeline]
    return kept


def _outermost(line: Line, indices: Indices) -> Indices:
    return indices[outermost(line.end_ns[indices])]


def _root(calls: _Calls) -> _Root | None:
    costs = calls.cost_of
    least = DOMINANT_SHARE * sum(costs.values())
    likely = [function for function, cost in costs.items() if cost and cost >= least]
    likely = likely or [repeat.kind for repeat in repeats(calls.functions, calls.costs)]
    function = max(likely, key=lambda function: costs[function], default=None)
    if function is None or not (calls.named or _is_steady(calls.launched)):
        return None
    return _Root(calls.start_ns[calls.functions == function], costs[function])


def _is_steady(launched: NDArray[np.int64] | None) -> bool:
    """Whether each call starts about as much; the profile may cut the last one short."""
    if launched is None:
        return True
    usual = np.median(launched[:-1])
    near = np.abs(launched[:-1] - usual) <= LARGEST_DEVIATION * usual
    return bool(near.mean() >= SAME_SHARE)
