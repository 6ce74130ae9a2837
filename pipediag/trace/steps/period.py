"""Steps from the device's activity alone: where the same kernels run again and again."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pipediag.trace.device.streams import device_class, stream_lines
from pipediag.trace.events import Line, TraceEvents
from pipediag.trace.steps.repetition import FEWEST_REPEATS, Repeat, name_kinds, repeats

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
