"""GPUs that the machine has, seen by TensorFlow or not, and readings of NVIDIA's driver."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from pipediag.sensors.cgroup import text_of
from pipediag.session.timeline import GpuReading

NVIDIA, AMD = "0x10de", "0x1002"
_VENDORS = {NVIDIA: "NVIDIA", AMD: "AMD"}

# PCI classes: VGA controller, 3D controller, other display controller, processing accelerator.
_CLASSES = ("0x0300", "0x0302", "0x0380", "0x1200")


def installed_gpus(root: Path = Path("/")) -> list[str]:
    """Return the names of the GPUs: from the driver where it answers, else from the PCI bus."""
    nvml = Nvml()
    nvidia = nvml.names()
    nvml.close()
    return [*(nvidia or pci_gpus([NVIDIA], root)), *pci_gpus([AMD], root)]


def pci_gpus(vendors: Sequence[str], root: Path = Path("/")) -> list[str]:
    """Return the GPUs of these vendors on the PCI bus, with or without a driver."""
    found = []
    for device in sorted((root / "sys/bus/pci/devices").glob("*")):
        vendor = text_of(device / "vendor").strip()
        if vendor in vendors and text_of(device / "class").startswith(_CLASSES):
            model = text_of(device / "device").strip()
            found.append(f"{_VENDORS[vendor]} GPU {model} at PCI {device.name}")
    return found


class Nvml:
    """A connection to the driver. Without the library or a driver it simply has no GPUs.

    Opening it can take a second on a machine whose GPUs sleep.
    """

    def __init__(self) -> None:
        self._library: Any = None
        self._gpus: list[tuple[str, Any]] = []
        if not _driver_may_exist():
            return
        with suppress(ImportError):
            import pynvml

            self._connect(pynvml)

    def _connect(self, library: Any) -> None:
        with suppress(library.NVMLError):
            library.nvmlInit()
            self._library = library
            for index in range(library.nvmlDeviceGetCount()):
                handle = library.nvmlDeviceGetHandleByIndex(index)
                self._gpus.append((_text(library.nvmlDeviceGetName(handle)), handle))

    def names(self) -> list[str]:
        return [name for name, _ in self._gpus]

    def driver_version(self) -> str | None:
        if self._library is None:
            return None
        with suppress(self._library.NVMLError):
            return _text(self._library.nvmlSystemGetDriverVersion())
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


# What the driver leaves on Linux, and under Windows' Linux subsystem.
_DRIVER_TRACES = ("/proc/driver/nvidia", "/dev/nvidiactl", "/dev/dxg")


def _driver_may_exist() -> bool:
    """Return False on machines without a GPU, where importing the library would cost 0.1 s."""
    return sys.platform != "linux" or any(Path(trace).exists() for trace in _DRIVER_TRACES)


def _text(value: str | bytes) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value
