"""What the compute of the steps was, operation by operation.

Without an accelerator these are the operations of the training graph on the host's threads, with
one the kernels of its devices by the operation that launched them. Where several run at once, each
gets an equal part of that time: so they add up to the time in which any ran, which is the step's
compute, and not to the longer sum over the threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipediag.trace.device.streams import device_events
from pipediag.trace.events import Plane, TraceEvents
from pipediag.trace.host.classes import Activity

_OPERATION_STAT = "tf_op"
_OF_XLA = ("hlo_op", "hlo_module")
_EAGER = "eager:"
"""In place of a name: what runs between the calls of graphs is no operation of one."""
_COMPILED = None
"""In place of a name: XLA fuses operations into others, which bear names of its own."""


@dataclass(frozen=True)
class ComputeTimes:
    """Of all steps of a profile together, in nanoseconds."""

    total_ns: int
    """In which anything was computed."""
    summed_ns: int
    """The same added up over what ran at once."""
    by_operation: dict[str, float]
    """Operations as `scope/name:Type`; all eager ones together as `eager:`."""
    compiled_ns: float
    """What XLA has compiled, which no operation of the graph has a name for."""

    @property
    def unnamed_ns(self) -> float:
        """What else no operation is known for."""
        return max(0.0, self.total_ns - self.compiled_ns - sum(self.by_operation.values()))


@dataclass(frozen=True)
class _Pieces:
    """Spans in which an operation ran."""

    names: list[str | None]
    """Empty where none is known."""
    name_of: NDArray[np.intp]
    """Of each span, the place of its name."""
    spans: NDArray[np.int64]


def compute_times(
    events: TraceEvents, activity: Activity, windows: NDArray[np.int64], total_ns: int
) -> ComputeTimes:
    """Divides the compute of the steps, whose windows are given, among operations."""
    found = _on_devices(events.accelerators) if events.accelerators else _on_host(activity)
    pieces = list(found)
    spans = np.concatenate([np.empty((0, 2), np.int64), *(one.spans for one in pieces)])
    took, summed_ns = shares(spans, windows)
    times: dict[str | None, float] = {}
    behind = np.cumsum([len(one.spans) for one in pieces])
    for one, its in zip(pieces, np.split(took, behind[:-1]), strict=True):
        sums = np.bincount(one.name_of, its, minlength=len(one.names))
        for place in np.flatnonzero(sums).tolist():
            name = one.names[place]
            times[name] = times.get(name, 0.0) + float(sums[place])
    named = {name: ns for name, ns in times.items() if name}
    return ComputeTimes(total_ns, summed_ns, named, times.get(_COMPILED, 0.0))


def _on_host(activity: Activity) -> Iterator[_Pieces]:
    yield _Pieces([_EAGER], np.zeros(len(activity.eager), np.intp), activity.eager)
    graph = activity.graph
    for line, indices, spans in graph.operation_pieces():
        compiled = graph.compiled(line)
        names = enumerate(line.plane.names)
        shown = [_COMPILED if key in compiled else name for key, name in names]
        yield _Pieces(shown, line.name_ids[indices].astype(np.intp), spans)


def _on_devices(planes: list[Plane]) -> Iterator[_Pieces]:
    for plane in planes:
        device = device_events(plane)
        computing = device.of_class("device_compute")
        for place, line in enumerate(device.lines):
            chosen = computing & (device.line_ids == place)
            indices = device.indices[chosen]
            texts, text_of = line.statistics.texts(_OPERATION_STAT, indices)
            by_xla = np.zeros(len(indices), np.bool_)
            for stat in _OF_XLA:
                modules, module_of = line.statistics.texts(stat, indices)
                by_xla |= np.array([bool(text) for text in modules], np.bool_)[module_of]
            names = [*texts, _COMPILED]
            name_of = np.where(by_xla, len(texts), text_of)
            spans = np.column_stack((device.start_ns[chosen], device.end_ns[chosen]))
            yield _Pieces(names, name_of, spans)


def shares(spans: NDArray[np.int64], windows: NDArray[np.int64]) -> tuple[NDArray[np.float64], int]:
    """Of each span its part of the time within the windows; and that time added up over all."""
    edges, places = np.unique(np.concatenate((spans.ravel(), windows.ravel())), return_inverse=True)
    places = places.reshape(-1, 2)
    running = _open(places[: len(spans)], len(edges))
    lengths = np.append(np.diff(edges), 0) * (_open(places[len(spans) :], len(edges)) > 0)
    each = np.divide(lengths, running, out=np.zeros(len(edges)), where=running > 0)
    elapsed = np.append(0.0, np.cumsum(each))
    starts, ends = places[: len(spans)].T
    return elapsed[ends] - elapsed[starts], int((lengths * running).sum())


def _open(places: NDArray[np.intp], edges: int) -> NDArray[np.int64]:
    """How many spans, given by the places of their edges, are open from each edge on."""
    begun = np.bincount(places[:, 0], minlength=edges) - np.bincount(places[:, 1], minlength=edges)
    return np.cumsum(begun)
