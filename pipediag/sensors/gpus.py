"""GPUs that the machine has, whether TensorFlow sees them or not."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from pipediag.sensors.nvml import Nvml

NVIDIA, AMD = "0x10de", "0x1002"
_VENDORS = {NVIDIA: "NVIDIA", AMD: "AMD"}

# PCI classes: VGA controller, 3D controller, other display controller, processing accelerator.
_CLASSES = ("0x0300", "0x0302", "0x0380", "0x1200")


def installed_gpus(root: Path = Path("/")) -> list[str]:
    """Names of the GPUs: from the driver where it answers, else from the PCI bus."""
    nvml = Nvml()
    nvidia = nvml.names()
    nvml.close()
    return [*(nvidia or _driver_gpus(root) or pci_gpus([NVIDIA], root)), *pci_gpus([AMD], root)]


def _driver_gpus(root: Path) -> list[str]:
    """Models by the kernel driver's own list, which needs no library."""
    names = []
    for path in sorted((root / "proc/driver/nvidia/gpus").glob("*/information")):
        for line in _text(path).splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "Model":
                names.append(value.strip())
    return names


def pci_gpus(vendors: Sequence[str], root: Path = Path("/")) -> list[str]:
    """GPUs of these vendors on the PCI bus, with or without a driver."""
    found = []
    for device in sorted((root / "sys/bus/pci/devices").glob("*")):
        vendor = _text(device / "vendor").strip()
        if vendor in vendors and _text(device / "class").startswith(_CLASSES):
            model = _text(device / "device").strip()
            found.append(f"{_VENDORS[vendor]} GPU {model} at PCI {device.name}")
    return found


def _text(path: Path) -> str:
    with suppress(OSError):
        return path.read_text(encoding="utf-8", errors="replace")
    return ""
