"""How far apart several hosts begin the same step, by their own clocks.

A clock that NTP keeps is right within some milliseconds, so that smaller differences say nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipediag.trace.summary import TraceSummary

_NUMBERED = frozenset({"markers", "annotations"})
"""What tells steps by numbers that are the same on all hosts."""


@dataclass(frozen=True)
class Lateness:
    """Of several hosts."""

    ms: Sequence[float | None]
    """For each host the median over the steps that all recorded of how much later than the first
    one it began; None where that cannot be told."""
    missing: str | None = None
    """Why it cannot be told, as a sentence."""


def step_lateness(hosts: Sequence[tuple[str, TraceSummary]]) -> Lateness:
    """How late each host begins its steps; of one host alone nothing is said."""
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
    """Whether all say when they were recorded, and a moment lies in the window of each."""
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
    """By number of the step, since 1970."""
    if summary.steps is None or summary.steps.steps.basis not in _NUMBERED:
        return {}
    steps = summary.steps.steps
    begun = (steps.windows[:, 0] + (summary.epoch_ns or 0)).tolist()
    return dict(zip(steps.numbers, begun, strict=True))
