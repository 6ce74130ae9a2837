"""Summary of a profile: each device with its idle gaps, and a report of one or several hosts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from pipediag import __version__
from pipediag.measures.breakdown import CLASSES, round_to_hundred
from pipediag.measures.pipeline_iterators import IteratorKey
from pipediag.session.devices import (
    TRACE_SCHEMA_VERSION,
    ClassShare,
    DeviceActivity,
    DeviceGap,
    TraceHost,
    TraceReport,
    TraceSteps,
    UnreadFile,
)
from pipediag.session.pipeline import Pipeline
from pipediag.trace.devices import DeviceTrace
from pipediag.trace.events import Indices
from pipediag.trace.steps import StepSplit
from pipediag.trace.summary import HostSummary, TraceSummary
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
    """Counted from the window's start."""
    duration_ms: list[float]
    cause: list[GapCause]
    causes_ms: list[list[float]]
    """All time of each gap, in the order of `GAP_CAUSES`."""
    iterator: list[IteratorKey | None]
    """Known for gaps whose cause is input."""
    doing: list[str | None]
    step: list[int | None]


def gap_columns(device: DeviceTrace, trace: TraceSummary, chosen: Indices) -> GapColumns:
    """The columns of the gaps at these places among the device's."""
    gaps = device.gaps
    spans, split_ns = gaps.spans[chosen], gaps.split_ns[chosen]
    causes = np.argmax(split_ns, axis=1)
    of_input = causes == GAP_CAUSES.index("input")
    iterator_ids = np.where(of_input, gaps.iterator_ids[chosen], _NONE)
    steps = trace.steps.steps if trace.steps is not None else None
    doing_names = [name.removeprefix(_TRACER_PREFIX) for name in gaps.doing_names]
    return GapColumns(
        start_ms=((spans[:, 0] - trace.window_ns[0]) / 1e6).tolist(),
        duration_ms=((spans[:, 1] - spans[:, 0]) / 1e6).tolist(),
        cause=[GAP_CAUSES[place] for place in causes.tolist()],
        causes_ms=(split_ns / 1e6).tolist(),
        iterator=_at(gaps.iterators, iterator_ids),
        doing=_at(doing_names, gaps.doing_ids[chosen]),
        step=_at(steps.numbers, steps.at(spans[:, 0])) if steps else [None] * len(spans),
    )


def all_gaps(device: DeviceTrace, trace: TraceSummary) -> Iterator[tuple[Indices, GapColumns]]:
    """Every gap of the device in order of time, some thousand at once, with their places."""
    for first in range(0, len(device.gaps), _AT_ONCE):
        places = np.arange(first, min(first + _AT_ONCE, len(device.gaps)))
        yield places, gap_columns(device, trace, places)


def _at(values: Sequence[_Value], places: NDArray[Any]) -> list[_Value | None]:
    """The values at these places; None at -1."""
    return [None if place == _NONE else values[place] for place in places.tolist()]


MOST_GAPS = 2000
"""A profile of small operations has a hundred thousand gaps, and each takes 300 bytes of JSON: the
longest are kept, and the sums hold all."""


def describe_devices(
    trace: TraceSummary, pipeline: Pipeline | None, operation_of: Mapping[IteratorKey, str]
) -> list[DeviceActivity]:
    """One entry for each device, with its longest gaps, which count from the window's start."""
    return [
        device.activity.model_copy(
            update={"gaps": _longest_gaps(device, trace, pipeline, operation_of)}
        )
        for device in trace.devices
    ]


def _longest_gaps(
    device: DeviceTrace,
    trace: TraceSummary,
    pipeline: Pipeline | None,
    operation_of: Mapping[IteratorKey, str],
) -> list[DeviceGap]:
    longest = np.argsort(-device.gaps.lengths_ns, kind="stable")[:MOST_GAPS]
    columns = gap_columns(device, trace, np.sort(longest))
    ops = {op.id: op for op in (pipeline.ops if pipeline else [])}
    found = []
    for place, (cause, iterator) in enumerate(zip(columns.cause, columns.iterator, strict=True)):
        op_id = operation_of.get(iterator) if iterator is not None else None
        op = ops.get(op_id) if op_id is not None else None
        causes_ms = zip(GAP_CAUSES, columns.causes_ms[place], strict=True)
        found.append(
            DeviceGap(
                start_ms=columns.start_ms[place],
                duration_ms=columns.duration_ms[place],
                cause=cause,
                causes_ms={name: ms for name, ms in causes_ms if ms},
                op_id=op_id,
                file=op.file if op else None,
                line=op.line if op else None,
                iterator=iterator[0] if iterator else None,
                doing=columns.doing[place],
                step=columns.step[place],
            )
        )
    return found


def trace_report(path: str, hosts: Sequence[HostSummary], created_at: str) -> TraceReport:
    """Return the report of the profiles; without findings, which rules add.

    Args:
        path: what the user named.
        hosts: one for each file; those without a summary are listed as unread.
        created_at: ISO 8601, UTC.
    """
    read = [(host, host.summary) for host in hosts if host.summary is not None]
    return TraceReport(
        schema_version=TRACE_SCHEMA_VERSION,
        pipediag_version=__version__,
        created_at=created_at,
        path=path,
        hosts=[_host(host, summary) for host, summary in read],
        unread=[
            UnreadFile(path=str(host.path), reason=host.reason or "")
            for host in hosts
            if host.summary is None
        ],
        # A profile alone shows no operations and lines of the script, so nothing is joined.
        devices=[
            device.model_copy(update={"host": host.host if len(read) > 1 else None})
            for host, summary in read
            for device in describe_devices(summary, None, {})
        ],
    )


def _host(host: HostSummary, summary: TraceSummary) -> TraceHost:
    start, end = summary.window_ns
    return TraceHost(
        path=str(host.path),
        host=host.host,
        format=host.format,
        events=host.events,
        span_ms=(end - start) / 1e6,
        steps=None if summary.steps is None else trace_steps(summary.steps),
        steps_missing=summary.missing.get("steps"),
        warnings=list(host.warnings),
    )


def trace_steps(split: StepSplit) -> TraceSteps:
    """Step times, and the mean step by class; percents are whole hundredths that add up to 100."""
    durations_ms = split.durations_ns / 1e6
    mean_ms = {name: float(split.column(name).mean()) / 1e6 for name in CLASSES}
    percents = round_to_hundred(np.array(list(mean_ms.values())))
    return TraceSteps(
        count=len(durations_ms),
        basis=split.steps.basis,
        mean_ms=float(durations_ms.mean()),
        median_ms=float(np.median(durations_ms)),
        p95_ms=float(np.percentile(durations_ms, 95)),
        breakdown={
            name: ClassShare(ms=ms, percent=percent)
            for (name, ms), percent in zip(mean_ms.items(), percents, strict=True)
        },
    )
