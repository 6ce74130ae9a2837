"""What pipediag found as tracks: steps, and for each device its idle gaps and how busy it was."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from pipediag.measures.profile import GapColumns, all_gaps
from pipediag.reporters.perfetto.writer import TraceWriter, Track, arguments_of, encoded
from pipediag.reporters.words import labels
from pipediag.session.findings import Finding
from pipediag.trace.device.launches import CORRELATION
from pipediag.trace.device.traces import DeviceTrace
from pipediag.trace.events import Indices
from pipediag.trace.intervals import covered
from pipediag.trace.steps.splitting import StepSplit
from pipediag.trace.summary import TraceSummary
from pipediag.vocabulary import GAP_CAUSES

BUSY_INTERVALS = 1_000
"""The window is drawn as that many values of how busy the device was."""
_LEAST_INTERVAL_NS = 1_000


def write_own_tracks(
    writer: TraceWriter, pid: int, summary: TraceSummary, findings: Sequence[Finding]
) -> None:
    """Writes the steps, each device's gaps and business, and the findings into a process."""
    if summary.steps is not None:
        _write_steps(writer, pid, summary.steps)
    for device in summary.devices:
        _write_gaps(writer, pid, summary, device)
        _write_busy(writer, pid, device)
    if findings:
        track = writer.track(pid, "Findings")
        for finding in findings:
            _write_finding(writer, track, finding, summary.window_ns[0])


def _write_steps(writer: TraceWriter, pid: int, split: StepSplit) -> None:
    windows = split.steps.windows
    writer.slices(
        writer.track(pid, "Steps"),
        windows[:, 0],
        windows[:, 1],
        [encoded(f"step {number}") for number in split.steps.numbers],
        [
            arguments_of(
                {f"{name}_us": ns / 1e3 for name, ns in zip(split.classes, row, strict=True) if ns}
            )
            for row in split.ns.tolist()
        ],
    )


def _write_gaps(writer: TraceWriter, pid: int, summary: TraceSummary, device: DeviceTrace) -> None:
    track = writer.track(pid, f"{device.name} idle")
    for places, gaps in all_gaps(device, summary):
        writer.slices(
            track,
            device.gaps.spans[places, 0],
            device.gaps.spans[places, 1],
            [encoded(labels.gap_cause(cause)) for cause in gaps.cause],
            _gap_arguments(device, places, gaps),
        )


def _gap_arguments(device: DeviceTrace, places: Indices, gaps: GapColumns) -> Iterator[str]:
    lengths_ns = device.gaps.lengths_ns[places].tolist()
    split_ns = device.gaps.split_ns[places].tolist()
    for at, place in enumerate(places.tolist()):
        iterator = gaps.iterator[at]
        split = zip(GAP_CAUSES, split_ns[at], strict=True)
        yield arguments_of(
            {
                "cause": gaps.cause[at],
                "duration_us": lengths_ns[at] / 1e3,
                "start_ms": gaps.start_ms[at],
                "step": gaps.step[at],
                CORRELATION: device.gaps.details.launch(place),
                "doing": gaps.doing[at],
                "operation": iterator[0] if iterator else None,
                "operation_names": ", ".join(iterator[1]) or None if iterator else None,
                **{f"{name}_us": ns / 1e3 for name, ns in split if ns},
            }
        )


def _write_busy(writer: TraceWriter, pid: int, device: DeviceTrace) -> None:
    """How busy the device was, in percent; gaps under the floor count as busy."""
    start, end = device.window
    count = max(1, min(BUSY_INTERVALS, (end - start) // _LEAST_INTERVAL_NS))
    edges = np.linspace(start, end, count + 1).astype(np.int64)
    idle = covered(device.gaps.spans, np.column_stack((edges[:-1], edges[1:])))
    lengths = np.maximum(edges[1:] - edges[:-1], 1)
    busy = (100.0 - 100.0 * idle / lengths).tolist()
    writer.counter(pid, f"{device.name} busy", "percent", edges, [*busy, 0.0])


def _write_finding(writer: TraceWriter, track: Track, finding: Finding, time_ns: int) -> None:
    writer.instant(
        track,
        time_ns,
        finding.title,
        {
            "rule": finding.rule,
            "status": finding.status,
            "severity": finding.severity,
            "advice": finding.advice,
            **finding.evidence,
        },
    )
