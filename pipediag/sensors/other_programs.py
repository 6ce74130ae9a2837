"""What other programs take of the CPUs that this process may use."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import psutil

_IDLE, _DISK = 3, 4
_COUNTED = 8
"""Columns of a CPU in /proc/stat: user, nice, system, idle, waiting for the disk, interrupts, soft
interrupts, stolen by the hypervisor. Guests, behind them, are in the first two already."""


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
    names = {f"cpu{number}".encode() for number in os.sched_getaffinity(0)}
    try:
        # A line for each CPU: the file is longer than the beginnings that procfs reads.
        lines = (root / "proc/stat").read_bytes().splitlines()
    except OSError:
        return None
    cpus = [line.split()[1:] for line in lines if line.partition(b" ")[0] in names]
    ticks = [[int(one) for one in cpu[:_COUNTED]] for cpu in cpus if len(cpu) > _DISK]
    whole = sum(map(sum, ticks))
    idle = sum(cpu[_IDLE] + cpu[_DISK] for cpu in ticks)
    if whole == 0:
        return None
    a_second = os.sysconf("SC_CLK_TCK")
    return CpuReading(whole / a_second, (whole - idle) / a_second, _own_s())


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
