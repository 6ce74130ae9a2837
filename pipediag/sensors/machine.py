"""The machine that the run happened on, and the hash by which two machines compare."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import tempfile
from pathlib import Path

import psutil

from pipediag.sensors import cgroup
from pipediag.sensors.cpu_capacity import cpu_capacity
from pipediag.sensors.gpus import installed_gpus
from pipediag.session.recording import RecordedEnvironment
from pipediag.session.run import Device, Environment

ROOT = Path("/")


def describe_machine(recorded: RecordedEnvironment | None, root: Path = ROOT) -> Environment:
    """The environment section of the session; facts about TensorFlow come from the child's record.

    `root` is where the system's files are looked for. The script must have ended or be waiting, as
    what the CPUs do together is measured here.
    """
    known = recorded or RecordedEnvironment(python=platform.python_version(), executable="")
    model, cores, quota = cpu_model(root), usable_cores(), cgroup.cpu_quota(root)
    devices = [Device(name=device.name, kind=device.kind) for device in known.devices]
    return Environment(
        python=known.python,
        tensorflow=known.tensorflow,
        keras=known.keras,
        keras_backend=known.keras_backend,
        jax=known.jax,
        numpy=known.numpy,
        cpu_model=model,
        cores=cores,
        cpu_quota=quota,
        cpu_capacity=cpu_capacity(max(1, round(min(cores, quota or cores)))),
        memory_bytes=memory_bytes(root),
        free_disk_bytes=_free_disk_bytes(),
        devices=devices,
        cuda_build=known.cuda_build,
        gpu_installed=installed_gpus(root),
        cuda_visible_devices=known.cuda_visible_devices,
        run_functions_eagerly=known.run_functions_eagerly,
        tf_data_debug_mode=known.tf_data_debug_mode,
        legacy_keras=known.legacy_keras,
        mixed_precision=known.mixed_precision,
        framework_messages=list(known.framework_messages),
        platform=platform.platform(),
        fingerprint=_fingerprint(model, cores, quota, devices),
    )


def cpu_model(root: Path = ROOT) -> str | None:
    """The processor's name as the kernel or the platform gives it."""
    try:
        lines = (root / "proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor() or None
    for line in lines:
        key, _, value = line.partition(":")
        if key.strip() in ("model name", "Model", "cpu"):
            return value.strip()
    return platform.processor() or platform.machine() or None


def _free_disk_bytes() -> int | None:
    try:
        return shutil.disk_usage(tempfile.gettempdir()).free
    except OSError:
        return None


def usable_cores() -> int:
    """CPUs that the scheduler may put this process on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def memory_bytes(root: Path = ROOT) -> int:
    """Physical memory, or the control group's limit where that is less."""
    physical = psutil.virtual_memory().total
    return min(physical, cgroup.memory_limit(root) or physical)


def _fingerprint(model: str | None, cores: int, quota: float | None, devices: list[Device]) -> str:
    names = sorted(f"{device.kind} {device.name}" for device in devices)
    facts = json.dumps([model, cores, quota, names])
    return hashlib.sha256(facts.encode()).hexdigest()[:16]
