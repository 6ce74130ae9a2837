"""CPUs: how many there are to use, who else uses them, and whether their speed is steady.

Thresholds are this project's judgement of what moves a median step time by more than the noise
between two blocks of steps, which is 2 to 5 %.
"""

from __future__ import annotations

import os
from pathlib import Path

import psutil

from pipediag.doctor.check import Check
from pipediag.sensors import cgroup
from pipediag.sensors.machine import cpu_model, usable_cores

ROOT = Path("/")

BUSY_SHARE = 0.25
"""Load of others, as a share of the cores."""

THROTTLED_SHARE = 0.01
STOLEN_PERCENT = 1.0

# Their `powersave` still raises the clock under load.
_SELF_SCALING_DRIVERS = ("intel_pstate", "amd-pstate", "amd-pstate-epp")


def quota(root: Path = ROOT) -> Check:
    """Whether the control group allows fewer CPUs than the scheduler shows."""
    cores, allowed = usable_cores(), cgroup.cpu_quota(root)
    model = cpu_model(root) or "unknown processor"
    if allowed is None or allowed >= cores:
        return Check("CPU", "ok", f"{model}; {cores} cores may be used, no lower quota.")
    return Check(
        "CPU",
        "warn",
        f"{model}; {cores} cores may be used, but the quota is {allowed:.3g} CPUs.",
        "TensorFlow and tf.data size their thread pools by the cores, so more threads run than the "
        "quota feeds, and all of them are paused when it is used up.",
        "Start the script with as many cores as the quota allows, with taskset for instance, or "
        "raise the quota.",
    )


def throttling(root: Path = ROOT) -> Check:
    """How often the quota has paused the group."""
    seen = cgroup.throttling(root)
    if seen is None or not seen.periods:
        return Check("CPU throttling", "ok", "No quota has been at work.")
    share = seen.throttled_periods / seen.periods
    found = f"The quota paused this group in {100 * share:.1f} % of its periods so far."
    if share < THROTTLED_SHARE:
        return Check("CPU throttling", "ok", found)
    return Check(
        "CPU throttling",
        "warn",
        found,
        "Pauses of tens of milliseconds land in single steps: the mean step exceeds the median.",
        "Raise the quota, or use fewer threads than it allows.",
    )


def load(load_1min: float | None = None) -> Check:
    """Whether other programs use the CPUs."""
    if load_1min is None:
        load_1min = os.getloadavg()[0]
    cores = usable_cores()
    found = f"Over the last minute {load_1min:.1f} threads wanted to run, on {cores} cores."
    if load_1min < BUSY_SHARE * cores:
        return Check("Load", "ok", found)
    return Check(
        "Load",
        "warn",
        found,
        "Other programs take CPU time from the script; steps get longer and vary more.",
        "Wait until they have ended, or measure on a quieter machine.",
    )


def stolen(percent: float | None = None) -> Check:
    """The share of CPU time since boot that the hypervisor gave to other machines."""
    if percent is None:
        times = psutil.cpu_times()
        percent = 100 * getattr(times, "steal", 0.0) / max(sum(times), 1e-9)
    found = f"{percent:.1f} % of the CPU time since boot went to other virtual machines."
    if percent < STOLEN_PERCENT:
        return Check("Stolen CPU time", "ok", found)
    return Check(
        "Stolen CPU time",
        "warn",
        found,
        "Step times follow what the neighbours do; two runs an hour apart do not compare.",
        "Measure on dedicated cores, and compare only what ran in the same call.",
    )


def frequency(root: Path = ROOT) -> Check:
    """Whether the CPUs may raise their clock."""
    base = root / "sys/devices/system/cpu"
    governor = _text(base / "cpu0/cpufreq/scaling_governor")
    driver = _text(base / "cpu0/cpufreq/scaling_driver")
    if not governor:
        return Check("CPU clock", "ok", "The system does not show its frequency settings.")
    found = f"Governor {governor}, driver {driver or 'unknown'}{_turbo(base)}."
    if governor != "powersave" or driver in _SELF_SCALING_DRIVERS:
        return Check("CPU clock", "ok", found)
    return Check(
        "CPU clock",
        "warn",
        found,
        "The CPUs stay at their lowest clock, so CPU work looks dearer than it has to be.",
        "Set the governor to performance: cpupower frequency-set -g performance.",
    )


def _turbo(base: Path) -> str:
    no_turbo, boost = _text(base / "intel_pstate/no_turbo"), _text(base / "cpufreq/boost")
    if no_turbo == "0" or boost == "1":
        return ", turbo on: the clock falls as the machine warms up"
    return ", turbo off" if no_turbo or boost else ""


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return ""
