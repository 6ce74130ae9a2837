"""The machine: processor, memory, GPUs, and the limits of the control group and their effects.

Control groups, of version 2, are read from the process's own one up to the topmost one that is
visible, as a limit on any of them holds for all below.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipediag.session.recording import RecordedEnvironment
from pipediag.session.timeline import GpuReading
from pipediag.session.worker import worker_of

if TYPE_CHECKING:
    from pipediag.session.model import Environment

ROOT = Path("/")


def describe_machine(recorded: RecordedEnvironment | None, root: Path = ROOT) -> Environment:
    """Return the environment section of the session, with TensorFlow's part as the child saw it,
    from system files below `root`."""
    # Whoever samples the machine needs no records.
    from pipediag.session.model import Environment

    known = recorded or RecordedEnvironment(python=platform.python_version())
    model, cores, quota = cpu_model(root), usable_cores(), cpu_quota(root)
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
    for line in text_of(root / "proc/cpuinfo").splitlines():
        key, _, value = line.partition(":")
        if key.strip() in ("model name", "Model", "cpu"):
            return value.strip()
    return platform.processor() or platform.machine() or None


def usable_cores() -> int:
    """Return the number of CPUs that the scheduler may put this process on."""
    return len(os.sched_getaffinity(0))


def memory_bytes(root: Path = ROOT) -> int:
    """Return the physical memory, or the control group's limit where that is less."""
    import psutil

    physical = psutil.virtual_memory().total
    return min(physical, memory_limit(root) or physical)


def cpu_quota(root: Path = ROOT) -> float | None:
    """Return the CPUs that the control groups allow, or None where there is no limit."""
    quotas = []
    for group in _groups(root):
        quota, _, period = text_of(group / "cpu.max").partition(" ")
        if quota.isdigit() and period:  # else it is `max`
            quotas.append(int(quota) / int(period))
    return min(quotas, default=None)


def memory_limit(root: Path = ROOT) -> int | None:
    """Return the bytes that the control groups allow, or None where there is no limit."""
    limits = (_integer(group / "memory.max") for group in _groups(root))
    return min((limit for limit in limits if limit is not None), default=None)


def memory_use(root: Path = ROOT) -> tuple[int, int] | None:
    """Return the bytes in use by the process's own group, and those of them that are page cache."""
    for group in _groups(root):
        used = _integer(group / "memory.current")
        if used is not None:
            return used, _table(group / "memory.stat").get("file", 0)
    return None


def _groups(root: Path) -> list[Path]:
    """Return the directories of the process's control group and of those around it, innermost
    first. In a container those outside of it are not there, and its own is the topmost."""
    lines = text_of(root / "proc/self/cgroup").splitlines()
    paths = [Path(line.removeprefix("0::/")) for line in lines if line.startswith("0::/")]
    inner_first = (group for path in paths for group in (path, *path.parents))
    directories = (root / "sys/fs/cgroup" / group for group in inner_first)
    return [directory for directory in directories if directory.is_dir()]


def _table(path: Path) -> dict[str, int]:
    rows = (line.split() for line in text_of(path).splitlines())
    return {row[0]: int(row[1]) for row in rows if len(row) == 2 and row[1].isdigit()}


def _integer(path: Path) -> int | None:
    try:
        return int(text_of(path))
    except ValueError:
        return None


def text_of(path: Path) -> str:
    """Return the text of a file, empty where it can't be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


NVIDIA = "0x10de"
# PCI classes: VGA controller, 3D controller, other display controller, processing accelerator.
_CLASSES = ("0x0300", "0x0302", "0x0380", "0x1200")


def installed_gpus(root: Path = ROOT) -> list[str]:
    """Return the names of NVIDIA's GPUs: from the driver where it answers, else from the PCI bus.

    TensorFlow's own builds run on no other vendor's.
    """
    nvml = Nvml()
    names = nvml.names()
    nvml.close()
    return names or [
        f"NVIDIA GPU {text_of(device / 'device').strip()} at PCI {device.name}"
        for device in sorted((root / "sys/bus/pci/devices").glob("*"))
        if text_of(device / "vendor").strip() == NVIDIA
        and text_of(device / "class").startswith(_CLASSES)
    ]


# What the driver leaves on Linux, and under Windows' Linux subsystem.
_DRIVER_TRACES = ("/proc/driver/nvidia", "/dev/nvidiactl", "/dev/dxg")


class Nvml:
    """A connection to the driver. Without the library or a driver it simply has no GPUs.

    Opening it can take a second on a machine whose GPUs sleep.
    """

    def __init__(self) -> None:
        self._library: Any = None
        self._gpus: list[tuple[str, Any]] = []
        # On machines without a GPU, importing the library would cost 0.1 s.
        if not any(Path(trace).exists() for trace in _DRIVER_TRACES):
            return
        try:
            import pynvml
        except ImportError:
            return
        with suppress(pynvml.NVMLError):
            pynvml.nvmlInit()
            self._library = pynvml
            for index in range(pynvml.nvmlDeviceGetCount()):
                handle = pynvml.nvmlDeviceGetHandleByIndex(index)
                self._gpus.append((pynvml.nvmlDeviceGetName(handle), handle))

    def names(self) -> list[str]:
        return [name for name, _ in self._gpus]

    def driver_version(self) -> str | None:
        if self._library is None:
            return None
        with suppress(self._library.NVMLError):
            return str(self._library.nvmlSystemGetDriverVersion())
        return None

    def readings(self) -> tuple[GpuReading, ...]:
        """Return one reading of each GPU; values that the driver does not give are None."""
        return tuple(self._reading(name, handle) for name, handle in self._gpus)

    def _reading(self, name: str, handle: Any) -> GpuReading:
        utilisation = used = total = None
        with suppress(self._library.NVMLError):
            utilisation = float(self._library.nvmlDeviceGetUtilizationRates(handle).gpu)
        with suppress(self._library.NVMLError):
            memory = self._library.nvmlDeviceGetMemoryInfo(handle)
            used, total = int(memory.used), int(memory.total)
        return GpuReading(name, utilisation, used, total)

    def close(self) -> None:
        if self._library is not None:
            with suppress(self._library.NVMLError):
                self._library.nvmlShutdown()
        self._library, self._gpus = None, []
