"""What other programs take of the CPUs that this process may use."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import psutil

from pipediag.sensors.cpu_ticks import ticks_of


@dataclass(frozen=True)
class CpuReading:
    """Seconds since some time in the past, summed over the CPUs."""

    whole_s: float
    busy_s: float
    """In which a CPU worked for any program, or for another virtual machine."""
    own_s: float
    """In which it worked for this process and its children."""


def read_cpus(root: Path = Path("/")) -> CpuReading | None:
    """The counters as they stand; None where the system does not show them."""
    if not hasattr(os, "sched_getaffinity"):
        return None
    ticks = ticks_of(os.sched_getaffinity(0), root)
    if ticks is None:
        return None
    a_second = os.sysconf("SC_CLK_TCK")
    return CpuReading(ticks.whole / a_second, ticks.busy / a_second, _own_s())


def others_percent(before: CpuReading | None, after: CpuReading | None) -> float | None:
    """Percent of the CPUs' time between two readings; None where either is missing."""
    if before is None or after is None or after.whole_s <= before.whole_s:
        return None
    others_s = (after.busy_s - before.busy_s) - (after.own_s - before.own_s)
    return 100.0 * max(0.0, others_s) / (after.whole_s - before.whole_s)


def _own_s() -> float:
    """Of this process, of children that have ended, and of those that live."""
    times = os.times()
    living = 0.0
    for child in psutil.Process().children(recursive=True):
        try:
            of_child = child.cpu_times()
        except psutil.Error:
            continue
        living += of_child.user + of_child.system + of_child.children_user
        living += of_child.children_system
    ended = times.children_user + times.children_system
    return times.user + times.system + ended + living
