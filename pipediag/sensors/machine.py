"""The machine that the run happened on, and what other programs use of its CPUs."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from dataclasses import dataclass
from pathlib import Path

import psutil

from pipediag.sensors import cgroup
from pipediag.sensors.gpus import installed_gpus
from pipediag.sensors.processes import ticks_of
from pipediag.session.model import Environment
from pipediag.session.recording import Device, RecordedEnvironment

ROOT = Path("/")


def describe_machine(recorded: RecordedEnvironment | None, root: Path = ROOT) -> Environment:
    """Return the environment section of the session, with TensorFlow's part as the child saw it.

    `root` is where the system's files are looked for.
    """
    known = recorded or RecordedEnvironment(python=platform.python_version())
    model, cores, quota = cpu_model(root), usable_cores(), cgroup.cpu_quota(root)
    return Environment(
        cpu_model=model,
        cores=cores,
        cpu_quota=quota,
        memory_bytes=memory_bytes(root),
        gpu_installed=installed_gpus(root),
        platform=platform.platform(),
        fingerprint=_fingerprint(model, cores, quota, known.devices),
        **vars(known),
    )


def cpu_model(root: Path = ROOT) -> str | None:
    """Return the processor's name as the kernel or the platform gives it."""
    for line in cgroup.text_of(root / "proc/cpuinfo").splitlines():
        key, _, value = line.partition(":")
        if key.strip() in ("model name", "Model", "cpu"):
            return value.strip()
    return platform.processor() or platform.machine() or None


def usable_cores() -> int:
    """Return the number of CPUs that the scheduler may put this process on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def memory_bytes(root: Path = ROOT) -> int:
    """Return the physical memory, or the control group's limit where that is less."""
    physical = psutil.virtual_memory().total
    return min(physical, cgroup.memory_limit(root) or physical)


def _fingerprint(model: str | None, cores: int, quota: float | None, devices: list[Device]) -> str:
    names = sorted(f"{device.kind} {device.name}" for device in devices)
    facts = json.dumps([model, cores, quota, names])
    return hashlib.sha256(facts.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class CpuReading:
    """Seconds since some time in the past, summed over the CPUs."""

    whole_s: float
    busy_s: float
    """In which a CPU worked for any program, or for another virtual machine."""
    own_s: float
    """In which it worked for this process and its children."""


def read_cpus(root: Path = Path("/")) -> CpuReading | None:
    """Read the counters; None where the system does not show them."""
    if not hasattr(os, "sched_getaffinity"):
        return None
    ticks = ticks_of(os.sched_getaffinity(0), root)
    if ticks is None:
        return None
    a_second = os.sysconf("SC_CLK_TCK")
    return CpuReading(ticks.whole / a_second, ticks.busy / a_second, _own_s())


def others_percent(before: CpuReading | None, after: CpuReading | None) -> float | None:
    """Return the percent of the CPUs' time that other programs took between two readings."""
    if before is None or after is None or after.whole_s <= before.whole_s:
        return None
    others_s = (after.busy_s - before.busy_s) - (after.own_s - before.own_s)
    return 100.0 * max(0.0, others_s) / (after.whole_s - before.whole_s)


def _own_s() -> float:
    """Return the CPU time of this process, of its ended children and of its living ones."""
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
