"""Summary of a profile: each device with its idle gaps, and a report of one or several hosts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from pipediag import __version__
from pipediag.measures.steps import CLASSES, round_to_hundred
from pipediag.session.devices import (
    ClassShare,
    DeviceActivity,
    DeviceGap,
    TraceHost,
    TraceReport,
    TraceSteps,
    UnreadFile,
)
from pipediag.session.pipeline import Pipeline
from pipediag.trace import PYTHON_FRAME
from pipediag.trace.devices import DeviceTrace
from pipediag.trace.events import Indices
from pipediag.trace.pipeline import IteratorKey
from pipediag.trace.steps import StepSplit
from pipediag.trace.summary import TraceSummary
from pipediag.vocabulary import GAP_CAUSES

_Value = TypeVar("_Value")

_NONE = -1


def gaps_at(
    device: DeviceTrace,
    trace: TraceSummary,
    places: Indices,
    pipeline: Pipeline | None = None,
    operation_of: Mapping[IteratorKey, str] | None = None,
) -> list[DeviceGap]:
    """Return the gaps at these places among the device's; starts count from the window's."""
    gaps = device.gaps
    spans, split_ns = gaps.spans[places], gaps.split_ns[places]
    causes = np.argmax(split_ns, axis=1)
    of_input = causes == GAP_CAUSES.index("input")
    iterators = _at(gaps.iterators, np.where(of_input, gaps.iterator_ids[places], _NONE))
    doing_names = [name.removeprefix(PYTHON_FRAME) for name in gaps.doing_names]
    steps = trace.steps
    ops = {op.id: op for op in (pipeline.ops if pipeline else [])}
    found = []
    for start_ns, end_ns, cause, split, iterator, doing, step in zip(
        *spans.T.tolist(),
        causes.tolist(),
        split_ns.tolist(),
        iterators,
        _at(doing_names, gaps.doing_ids[places]),
        _at(steps.numbers, steps.at(spans[:, 0])) if steps else [None] * len(spans),
        strict=True,
    ):
        op = ops.get((operation_of or {}).get(iterator, "")) if iterator is not None else None
        found.append(
            DeviceGap(
                start_ms=(start_ns - trace.window_ns[0]) / 1e6,
                duration_ms=(end_ns - start_ns) / 1e6,
                cause=GAP_CAUSES[cause],
                causes_ms={
                    name: ns / 1e6 for name, ns in zip(GAP_CAUSES, split, strict=True) if ns
                },
                op_id=op.id if op else None,
                file=op.file if op else None,
                line=op.line if op else None,
                iterator=iterator[0] if iterator else None,
                doing=doing,
                step=step,
            )
        )
    return found


def all_gaps(device: DeviceTrace, trace: TraceSummary) -> list[DeviceGap]:
    """Return every gap of the device in order of time; each takes half a kilobyte."""
    return gaps_at(device, trace, np.arange(len(device.gaps)))


def _at(values: Sequence[_Value], places: NDArray[Any]) -> list[_Value | None]:
    """Return the values at these places; None at -1."""
    return [None if place == _NONE else values[place] for place in places.tolist()]


MOST_GAPS = 2000
"""A profile of small operations has a hundred thousand gaps, and each takes 300 bytes of JSON: the
longest are kept, and the sums hold all."""


def describe_devices(
    trace: TraceSummary, pipeline: Pipeline | None, operation_of: Mapping[IteratorKey, str]
) -> list[DeviceActivity]:
    """Return each device with its longest gaps, which count from the window's start."""
    found = []
    for device in trace.devices:
        longest = np.sort(np.argsort(-device.gaps.lengths_ns, kind="stable")[:MOST_GAPS])
        gaps = gaps_at(device, trace, longest, pipeline, operation_of)
        found.append(device.activity.but(gaps=gaps))
    return found


def trace_report(
    path: str, hosts: Sequence[TraceSummary], unread: Sequence[UnreadFile], created_at: str
) -> TraceReport:
    """Return the report of the profiles; without findings, which rules add.

    Args:
        path: what the user named.
        created_at: ISO 8601, UTC.
    """
    return TraceReport(
        pipediag_version=__version__,
        created_at=created_at,
        path=path,
        hosts=[
            TraceHost(
                path=str(host.path),
                host=host.host,
                format=host.format,
                events=host.event_count,
                span_ms=(host.window_ns[1] - host.window_ns[0]) / 1e6,
                steps=None if host.steps is None else trace_steps(host.steps),
                steps_missing=host.steps_missing,
                warnings=list(host.warnings),
            )
            for host in hosts
        ],
        unread=list(unread),
        # A profile alone shows no operations and lines of the script, so nothing is joined.
        devices=[
            device.but(host=host.host if len(hosts) > 1 else None)
            for host in hosts
            for device in describe_devices(host, None, {})
        ],
    )


def trace_steps(split: StepSplit) -> TraceSteps:
    """Return step times, and the mean step by class in whole hundredths that add up to 100."""
    durations_ms = split.durations_ns / 1e6
    mean_ms = {name: float(split.column(name).mean()) / 1e6 for name in CLASSES}
    percents = round_to_hundred(np.array(list(mean_ms.values())))
    return TraceSteps(
        count=len(durations_ms),
        basis=split.basis,
        mean_ms=float(durations_ms.mean()),
        median_ms=float(np.median(durations_ms)),
        p95_ms=float(np.percentile(durations_ms, 95)),
        breakdown={
            name: ClassShare(ms=ms, percent=percent)
            for (name, ms), percent in zip(mean_ms.items(), percents, strict=True)
        },
    )
