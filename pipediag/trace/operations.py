"""Compute of the steps, operation by operation, and their work on text.

Without an accelerator these are the operations of the training graph on the host's threads, with
one the kernels of its devices by the operation that launched them. Where several run at once, each
gets an equal part of that time, so that they add up to the step's compute. The program that the
profile keeps says of which operations each of XLA's instructions was made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipediag.tensorflow_names import TEXT_WORK
from pipediag.trace.classes import Activity
from pipediag.trace.device_events import DeviceEvents
from pipediag.trace.events import CompiledWork, Indices, Line, Program, TraceEvents
from pipediag.trace.intervals import EMPTY, intersect, normalise, total, union
from pipediag.trace.threads import THUNK

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
    by_operation: dict[str, float]
    """Operations as `scope/name:Type`; all eager ones together as `eager:`."""
    compiled_ns: float
    """Programs of XLA that the profile does not keep."""
    by_instruction: dict[CompiledWork, float] = field(default_factory=dict)
    """Time by instruction of XLA, where it is another."""

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
    if activity.devices:
        pieces = [one for device in activity.devices for one in _on_device(device, programs)]
    else:
        pieces = [_Pieces([_EAGER], np.zeros(len(activity.eager), np.intp), activity.eager)]
        for line, indices, spans in activity.graph.operation_pieces():
            named = list(line.plane.names), line.name_ids[indices].astype(np.intp)
            by_xla = line.named(line.names_with(THUNK))[indices]
            pieces.append(_pieces(line, indices, spans, named, by_xla, programs))
    ran = np.concatenate([np.empty((0, 2), np.int64), *(one.spans for one in pieces)])
    took = shares(ran, windows)
    times: dict[_Work, float] = {}
    behind = np.cumsum([len(one.spans) for one in pieces])
    for (works, work_of, _), its in zip(pieces, np.split(took, behind[:-1]), strict=True):
        sums = np.bincount(work_of, its, minlength=len(works))
        for place in np.flatnonzero(sums).tolist():
            times[works[place]] = times.get(works[place], 0.0) + float(sums[place])
    return ComputeTimes(
        total_ns,
        {work: ns for work, ns in times.items() if isinstance(work, str) and work},
        times.get(None, 0.0),
        {work: ns for work, ns in times.items() if isinstance(work, CompiledWork)},
    )


def _on_device(device: DeviceEvents, programs: _Programs) -> Iterator[_Pieces]:
    computing = device.of_class("device_compute")
    for place, line in enumerate(device.lines):
        chosen = computing & (device.line_ids == place)
        indices = device.indices[chosen]
        by_xla = np.zeros(len(indices), np.bool_)
        for stat in _OF_XLA:
            by_xla |= line.statistics.texts(stat, indices)[1] > 0
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
        works.append(None if program is None else program(instructions[instruction]))
    return _Pieces(works, work_of, spans)


def shares(spans: NDArray[np.int64], windows: NDArray[np.int64]) -> NDArray[np.float64]:
    """Divide the time within the windows among the spans."""
    edges, places = np.unique(np.concatenate((spans.ravel(), windows.ravel())), return_inverse=True)
    places = places.reshape(-1, 2)
    running = _open(places[: len(spans)], len(edges))
    lengths = np.append(np.diff(edges), 0) * (_open(places[len(spans) :], len(edges)) > 0)
    each = np.divide(lengths, running, out=np.zeros(len(edges)), where=running > 0)
    elapsed = np.append(0.0, np.cumsum(each))
    starts, ends = places[: len(spans)].T
    took: NDArray[np.float64] = elapsed[ends] - elapsed[starts]
    return took


def _open(places: NDArray[np.intp], edges: int) -> NDArray[np.int64]:
    """Count the spans, given by the places of their edges, that are open from each edge on."""
    begun = np.bincount(places[:, 0], minlength=edges) - np.bincount(places[:, 1], minlength=edges)
    return np.cumsum(begun)


def text_ns(activity: Activity, windows: NDArray[np.int64]) -> int:
    """Return the time of the steps, whose windows are given, in which their graph works on text.

    Such operations split, hash and look up strings, or decode bytes. They run on the host, so the
    input pipeline could do the same during the step before.
    """
    if not any(map(_of_text, activity.graph.lines)):
        return 0
    ran = EMPTY
    for line, indices, spans in activity.graph.operation_pieces():
        found = spans[np.isin(line.name_ids[indices], _of_text(line))]
        ran = union(ran, normalise(found[:, 0], found[:, 1]))
    return total(intersect(ran, normalise(windows[:, 0], windows[:, 1])))


def _of_text(line: Line) -> list[int]:
    """Return the places of such operations' names on the line."""
    return [key for key, name in line.used_names.items() if name.rpartition(":")[2] in TEXT_WORK]
