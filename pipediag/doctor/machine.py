"""Checks of the machine: CPUs, memory and clocks.

Thresholds are this project's judgement of what moves a median step time by more than the noise
between two blocks of steps, which is 2 to 5 %.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import psutil

from pipediag.sensors import cgroup
from pipediag.sensors.cgroup import text_of
from pipediag.sensors.machine import cpu_model, usable_cores

ROOT = Path("/")
GIB = 1 << 30

BUSY_SHARE = 0.25
"""Load of others, as a share of the cores."""
THROTTLED_SHARE = 0.01
STOLEN_PERCENT = 1.0

LITTLE_BYTES = 2 * GIB
"""TensorFlow itself takes about half a gibibyte; the rest is for the model and the buffers."""
SWAPPED_BYTES = 1 << 28

# Their `powersave` still raises the clock under load.
_SELF_SCALING_DRIVERS = ("intel_pstate", "amd-pstate", "amd-pstate-epp")


@dataclass(frozen=True)
class Check:
    name: str
    state: Literal["ok", "warn", "problem"]
    found: str
    follows: str = ""
    """What it means for a measurement; empty where it means nothing."""
    do: str = ""
    """What to do about it; empty where nothing need be done."""


def warning_unless(fine: bool, name: str, found: str, follows: str, do: str) -> Check:
    """Return a check that warns of what follows, unless all is fine."""
    return Check(name, "ok", found) if fine else Check(name, "warn", found, follows, do)


def quota(root: Path = ROOT) -> Check:
    """Check whether the control group allows fewer CPUs than the scheduler shows."""
    cores, allowed = usable_cores(), cgroup.cpu_quota(root)
    lower = allowed is not None and allowed < cores
    quota = f"but the quota is {allowed:.3g} CPUs" if lower else "no lower quota"
    return warning_unless(
        not lower,
        "CPU",
        f"{cpu_model(root) or 'unknown processor'}; {cores} cores may be used, {quota}.",
        "TensorFlow and tf.data size their thread pools by the cores, so more threads run than the "
        "quota feeds, and all of them are paused when it is used up.",
        "Start the script with as many cores as the quota allows, with taskset for instance, or "
        "raise the quota.",
    )


def throttling(root: Path = ROOT) -> Check:
    """Check how often the quota has paused the group."""
    seen = cgroup.throttling(root)
    if seen is None or not seen.periods:
        return Check("CPU throttling", "ok", "No quota has paused this group.")
    share = seen.throttled_periods / seen.periods
    return warning_unless(
        share < THROTTLED_SHARE,
        "CPU throttling",
        f"The quota paused this group in {100 * share:.1f} % of its periods so far.",
        "Pauses of tens of milliseconds land in single steps: the mean step exceeds the median.",
        "Raise the quota, or use fewer threads than it allows.",
    )


def load(load_1min: float | None = None) -> Check:
    """Check whether other programs use the CPUs."""
    load_1min = os.getloadavg()[0] if load_1min is None else load_1min
    cores = usable_cores()
    return warning_unless(
        load_1min < BUSY_SHARE * cores,
        "Load",
        f"Over the last minute {load_1min:.1f} threads wanted to run, on {cores} cores.",
        "Other programs take CPU time from the script; steps get longer and vary more.",
        "Wait until they have ended, or measure on a quieter machine.",
    )


def stolen(percent: float | None = None) -> Check:
    """Check how much CPU time since boot the hypervisor gave to other machines."""
    if percent is None:
        times = psutil.cpu_times()
        percent = 100 * getattr(times, "steal", 0.0) / max(sum(times), 1e-9)
    return warning_unless(
        percent < STOLEN_PERCENT,
        "Stolen CPU time",
        f"{percent:.1f} % of the CPU time since boot went to other virtual machines.",
        "Step times vary with the load of other machines; two runs an hour apart do not compare.",
        "Measure on dedicated cores, and compare only what ran in the same call.",
    )


def frequency(root: Path = ROOT) -> Check:
    """Check whether the CPUs may raise their clock."""
    base = root / "sys/devices/system/cpu"
    governor = text_of(base / "cpu0/cpufreq/scaling_governor").strip()
    driver = text_of(base / "cpu0/cpufreq/scaling_driver").strip()
    if not governor:
        return Check("CPU clock", "ok", "The system does not show its frequency settings.")
    no_turbo, boost = (
        text_of(base / name).strip() for name in ("intel_pstate/no_turbo", "cpufreq/boost")
    )
    turbo = ", turbo off" if no_turbo or boost else ""
    if no_turbo == "0" or boost == "1":
        turbo = ", turbo on: the clock falls as the machine warms up"
    return warning_unless(
        governor != "powersave" or driver in _SELF_SCALING_DRIVERS,
        "CPU clock",
        f"Governor {governor}, driver {driver or 'unknown'}{turbo}.",
        "The CPUs stay at their lowest clock, so CPU work takes longer than it has to.",
        "Set the governor to performance: cpupower frequency-set -g performance.",
    )


def room(root: Path = ROOT) -> Check:
    """Check how much memory a script may still take."""
    memory = psutil.virtual_memory()
    available, total = memory.available, memory.total
    limit, use = cgroup.memory_limit(root), cgroup.memory_use(root)
    if limit is not None and use is not None and limit < total:
        used, cached = use
        total, available = limit, min(available, max(0, limit - used + cached))
    return warning_unless(
        available >= LITTLE_BYTES,
        "Memory",
        f"{available / GIB:.1f} GiB of {total / GIB:.1f} GiB are available.",
        "The script may be killed for memory, or read files again that did not stay cached.",
        "End other programs, raise the limit, or measure with smaller shuffle buffers.",
    )


def swap(used_bytes: int | None = None) -> Check:
    """Check whether memory has been moved to disk."""
    used = psutil.swap_memory().used if used_bytes is None else used_bytes
    return warning_unless(
        used < SWAPPED_BYTES,
        "Swap",
        f"{used / GIB:.1f} GiB are swapped out." if used else "Nothing is swapped out.",
        "Memory that is read back from disk stalls single steps by milliseconds.",
        "Free memory before measuring, or turn swap off for the time: swapoff -a.",
    )
