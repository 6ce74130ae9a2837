"""The machine that the run happened on."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from pathlib import Path

import psutil

from pipediag.sensors import cgroup
from pipediag.sensors.gpus import installed_gpus
from pipediag.session.model import Environment
from pipediag.session.recording import RecordedEnvironment
from pipediag.session.worker import worker_of

ROOT = Path("/")


def describe_machine(recorded: RecordedEnvironment | None, root: Path = ROOT) -> Environment:
    """Return the environment section of the session, with TensorFlow's part as the child saw it.

    `root` is where the system's files are looked for.
    """
    known = recorded or RecordedEnvironment(python=platform.python_version())
    model, cores, quota = cpu_model(root), usable_cores(), cgroup.cpu_quota(root)
    names = sorted(f"{device.kind} {device.name}" for device in known.devices)
    facts = json.dumps([model, cores, quota, names])
    return Environment(
        cpu_model=model,
        cores=cores,
        cpu_quota=quota,
        memory_bytes=memory_bytes(root),
        gpu_installed=installed_gpus(root),
        platform=platform.platform(),
        fingerprint=hashlib.sha256(facts.encode()).hexdigest()[:16],
        worker=worker_of(),
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
