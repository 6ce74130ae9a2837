"""NVIDIA's management library, where there is one: names, utilisation, memory, driver version."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from pipediag.session.host_track import GpuReading


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
        """One reading a GPU; values that the driver does not give are None."""
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
    """Saves importing the library, a tenth of a second of CPU, on machines without a GPU."""
    return sys.platform != "linux" or any(Path(trace).exists() for trace in _DRIVER_TRACES)


def _text(value: str | bytes) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value
