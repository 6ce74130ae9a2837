"""A device's idle gaps as columns: when, how long, why, and what is known beside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from pipediag.measures.pipeline.iterators import IteratorKey
from pipediag.trace.device.traces import DeviceTrace
from pipediag.trace.events import Indices
from pipediag.trace.summary import TraceSummary
from pipediag.vocabulary import GAP_CAUSES, GapCause

_Value = TypeVar("_Value")

_AT_ONCE = 10_000
"""As Python's objects a gap takes half a kilobyte."""

_NONE = -1
_TRACER_PREFIX = "$"
"""TensorFlow's Python tracer begins the names of its events with it."""


@dataclass(frozen=True)
class GapColumns:
    """Some gaps of one device, a value for each; None where nothing is known."""

    start_ms: list[float]
    """From the window's start."""
    duration_ms: list[float]
    cause: list[GapCause]
    causes_ms: list[list[float]]
    """Of each gap all of its time, in the order of `GAP_CAUSES`."""
    iterator: list[IteratorKey | None]
    """Of gaps whose cause is input, like the next."""
    buffered_elements: list[float | None]
    doing: list[str | None]
    step: list[int | None]


def gap_columns(device: DeviceTrace, trace: TraceSummary, chosen: Indices) -> GapColumns:
    """The columns of the gaps at these places among the device's."""
    details = device.gaps.details
    spans, split_ns = device.gaps.spans[chosen], device.gaps.split_ns[chosen]
    causes = np.argmax(split_ns, axis=1)
    of_input = causes == GAP_CAUSES.index("input")
    iterator_ids = np.where(of_input, details.iterator_ids[chosen], _NONE)
    buffered = details.buffered_elements[chosen]
    has_buffer = of_input & ~np.isnan(buffered)
    doing_names = [name.removeprefix(_TRACER_PREFIX) for name in details.doing_names]
    return GapColumns(
        start_ms=((spans[:, 0] - trace.window_ns[0]) / 1e6).tolist(),
        duration_ms=((spans[:, 1] - spans[:, 0]) / 1e6).tolist(),
        cause=[GAP_CAUSES[place] for place in causes.tolist()],
        causes_ms=(split_ns / 1e6).tolist(),
        iterator=_at(details.iterators, iterator_ids),
        buffered_elements=_where(has_buffer, buffered),
        doing=_at(doing_names, details.doing_ids[chosen]),
        step=_steps_at(trace, spans[:, 0]),
    )


def all_gaps(device: DeviceTrace, trace: TraceSummary) -> Iterator[tuple[Indices, GapColumns]]:
    """Every gap of the device in order of time, some thousand at once, with their places."""
    for first in range(0, len(device.gaps), _AT_ONCE):
        places = np.arange(first, min(first + _AT_ONCE, len(device.gaps)))
        yield places, gap_columns(device, trace, places)


def _at(values: Sequence[_Value], places: NDArray[Any]) -> list[_Value | None]:
    """The values at these places; None at -1."""
    return [None if place == _NONE else values[place] for place in places.tolist()]


def _where(known: NDArray[np.bool_], values: NDArray[np.float64]) -> list[float | None]:
    return [
        value if is_known else None
        for value, is_known in zip(values.tolist(), known.tolist(), strict=True)
    ]


def _steps_at(trace: TraceSummary, times_ns: NDArray[np.int64]) -> list[int | None]:
    """The number of the step that each time lies in."""
    if trace.steps is None:
        return [None] * len(times_ns)
    steps = trace.steps.steps
    return _at(steps.numbers, steps.at(times_ns))
