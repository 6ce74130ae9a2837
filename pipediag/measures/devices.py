"""Busy and idle time of each device in the profile, with the operation behind each input gap."""

from __future__ import annotations

from collections.abc import Mapping

from pipediag.measures.iterators import IteratorKey
from pipediag.session.model import DeviceActivity, DeviceGap, Pipeline
from pipediag.trace.devices import DeviceTrace, Gap
from pipediag.trace.summary import TraceSummary

MOST_GAPS = 2000
"""A profile of small operations has a hundred thousand gaps; the longest are kept, and the sums
hold all."""


def describe_devices(
    trace: TraceSummary, pipeline: Pipeline | None, operation_of: Mapping[IteratorKey, str]
) -> list[DeviceActivity]:
    """One entry for each device; times in milliseconds, gaps counted from the window's start."""
    return [_describe(device, trace, pipeline, operation_of) for device in trace.devices]


def _describe(
    device: DeviceTrace,
    trace: TraceSummary,
    pipeline: Pipeline | None,
    operation_of: Mapping[IteratorKey, str],
) -> DeviceActivity:
    longest = sorted(device.gaps, key=lambda gap: -gap.duration_ns)[:MOST_GAPS]
    kept = sorted(longest, key=lambda gap: gap.start_ns)
    return DeviceActivity(
        name=device.name,
        kind=device.kind,
        span_ms=device.span_ns / 1e6,
        busy_ms=device.busy_ns / 1e6,
        idle_ms=device.idle_ns / 1e6,
        busy_percent=100.0 * device.busy_ns / device.span_ns if device.span_ns else 0.0,
        idle_percent=100.0 * device.idle_ns / device.span_ns if device.span_ns else 0.0,
        longest_gap_ms=device.longest_gap_ns / 1e6,
        noise_ms=device.noise_ns / 1e6,
        gaps=[_gap(gap, trace.window_ns[0], pipeline, operation_of) for gap in kept],
    )


def _gap(
    gap: Gap, start_ns: int, pipeline: Pipeline | None, operation_of: Mapping[IteratorKey, str]
) -> DeviceGap:
    op_id = operation_of.get(gap.iterator) if gap.iterator is not None else None
    ops = pipeline.ops if pipeline else []
    op = next((op for op in ops if op.id == op_id), None)
    return DeviceGap(
        start_ms=(gap.start_ns - start_ns) / 1e6,
        duration_ms=gap.duration_ns / 1e6,
        cause=gap.cause,
        op_id=op_id,
        file=op.file if op else None,
        line=op.line if op else None,
    )
