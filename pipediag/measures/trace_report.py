"""A trace report from the profiles of one or several hosts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipediag import __version__
from pipediag.measures.breakdown import CLASSES, round_to_hundred
from pipediag.measures.devices import describe_devices
from pipediag.session.devices import DeviceActivity
from pipediag.session.trace_report import (
    TRACE_SCHEMA_VERSION,
    ClassShare,
    TraceHost,
    TraceReport,
    TraceSteps,
    UnreadFile,
)
from pipediag.trace.hosts import HostSummary
from pipediag.trace.steps.splitting import StepSplit
from pipediag.trace.summary import TraceSummary

_NUMBERED = frozenset({"markers", "annotations"})
"""Sources of step numbers that are the same on all hosts."""


@dataclass(frozen=True)
class Lateness:
    """How late each of several hosts begins its steps."""

    ms: Sequence[float | None]
    """For each host the median over the steps that all recorded of how much later than the first
    one it began; None where that is not known."""
    missing: str | None = None
    """The reason why it is not known, as a sentence."""


def step_lateness(hosts: Sequence[tuple[str, TraceSummary]]) -> Lateness:
    """Return how late each host begins its steps; of one host alone nothing is known."""
    unknown = [None] * len(hosts)
    summaries = [summary for _, summary in hosts]
    if len(hosts) < 2:
        return Lateness(unknown)
    if unaligned := [host for host, summary in hosts if summary.epoch_ns is None]:
        return Lateness(unknown, _no_clock(unaligned))
    if not at_one_time(summaries):
        return Lateness(unknown, "The hosts were recorded at different times.")
    starts = [_starts(summary) for summary in summaries]
    common = sorted(set.intersection(*map(set, starts)))
    if not common:
        reason = "The hosts share no numbered step, so that their starts cannot be compared."
        return Lateness(unknown, reason)
    begun = np.array([[steps[number] for number in common] for steps in starts])
    return Lateness((np.median(begun - begun.min(axis=0), axis=1) / 1e6).tolist())


def at_one_time(summaries: Sequence[TraceSummary]) -> bool:
    """Return True if all say when they were recorded, and a moment lies in the window of each."""
    windows = [
        (summary.epoch_ns + summary.window_ns[0], summary.epoch_ns + summary.window_ns[1])
        for summary in summaries
        if summary.epoch_ns is not None
    ]
    return len(windows) == len(summaries) and (
        max(start for start, _ in windows) < min(end for _, end in windows)
    )


def _no_clock(hosts: list[str]) -> str:
    more = f" and {len(hosts) - 1} more" if len(hosts) > 1 else ""
    return (
        f"The hosts' clocks cannot be aligned, as the file of {hosts[0]}{more} holds no absolute "
        "time: each counts from its own first step."
    )


def _starts(summary: TraceSummary) -> dict[int, int]:
    if summary.steps is None or summary.steps.steps.basis not in _NUMBERED:
        return {}
    steps = summary.steps.steps
    begun = (steps.windows[:, 0] + (summary.epoch_ns or 0)).tolist()
    return dict(zip(steps.numbers, begun, strict=True))


def trace_report(path: str, hosts: Sequence[HostSummary], created_at: str) -> TraceReport:
    """Return the report of the profiles; without findings, which rules add.

    Args:
        path: what the user named.
        hosts: one for each file; those without a summary are listed as unread.
        created_at: ISO 8601, UTC.
    """
    read = [(host, host.summary) for host in hosts if host.summary is not None]
    several = len(read) > 1
    late = step_lateness([(host.host, summary) for host, summary in read])
    return TraceReport(
        schema_version=TRACE_SCHEMA_VERSION,
        pipediag_version=__version__,
        created_at=created_at,
        path=path,
        hosts=[_host(host, summary, ms) for (host, summary), ms in zip(read, late.ms, strict=True)],
        steps_late_missing=late.missing,
        unread=[
            UnreadFile(path=str(host.path), reason=host.reason or "")
            for host in hosts
            if host.summary is None
        ],
        devices=[
            device
            for (host, summary), ms in zip(read, late.ms, strict=True)
            for device in _devices(summary, host.host if several else None, ms)
        ],
    )


def _host(host: HostSummary, summary: TraceSummary, late_ms: float | None) -> TraceHost:
    start, end = summary.window_ns
    return TraceHost(
        path=str(host.path),
        host=host.host,
        format=host.format,
        events=host.events,
        span_ms=(end - start) / 1e6,
        steps=None if summary.steps is None else trace_steps(summary.steps),
        steps_missing=summary.missing.get("steps"),
        starts_unix_ms=None if summary.epoch_ns is None else (summary.epoch_ns + start) / 1e6,
        steps_late_ms=late_ms,
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


def _devices(
    summary: TraceSummary, host: str | None, late_ms: float | None
) -> list[DeviceActivity]:
    """A profile alone shows no operations and lines of the script, so there is nothing to join."""
    devices = describe_devices(summary, None, {})
    return [device.model_copy(update={"host": host, "host_late_ms": late_ms}) for device in devices]
