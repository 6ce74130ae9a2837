from __future__ import annotations

from pathlib import Path

import pytest

from pipediag.sensors import gpus, nvml
from pipediag.sensors.gpus import AMD, NVIDIA, installed_gpus, pci_gpus
from tests.fake_proc import write


@pytest.fixture(autouse=True)
def no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml, "_driver_may_exist", lambda: False)


def add_pci(root: Path, slot: str, vendor: str, kind: str) -> None:
    for name, text in (("vendor", vendor), ("class", kind), ("device", "0x2335")):
        write(root, f"sys/bus/pci/devices/{slot}/{name}", f"{text}\n")


def test_the_bus_shows_gpus_without_a_driver(tmp_path: Path) -> None:
    add_pci(tmp_path, "0000:01:00.0", NVIDIA, "0x030200")
    add_pci(tmp_path, "0000:01:00.1", NVIDIA, "0x040300")
    add_pci(tmp_path, "0000:02:00.0", AMD, "0x030000")
    add_pci(tmp_path, "0000:03:00.0", "0x1a03", "0x030000")
    assert pci_gpus([NVIDIA], tmp_path) == ["NVIDIA GPU 0x2335 at PCI 0000:01:00.0"]
    assert installed_gpus(tmp_path) == [
        "NVIDIA GPU 0x2335 at PCI 0000:01:00.0",
        "AMD GPU 0x2335 at PCI 0000:02:00.0",
    ]


def test_the_kernel_driver_names_the_model(tmp_path: Path) -> None:
    add_pci(tmp_path, "0000:01:00.0", NVIDIA, "0x030200")
    write(
        tmp_path,
        "proc/driver/nvidia/gpus/0000:01:00.0/information",
        "Model: \t\t NVIDIA Example\nIRQ: 10\n",
    )
    assert installed_gpus(tmp_path) == ["NVIDIA Example"]


def test_the_management_library_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_pci(tmp_path, "0000:01:00.0", NVIDIA, "0x030200")
    monkeypatch.setattr(gpus.Nvml, "names", lambda self: ["NVIDIA Example 80GB"])
    assert installed_gpus(tmp_path) == ["NVIDIA Example 80GB"]


def test_no_gpu(tmp_path: Path) -> None:
    assert installed_gpus(tmp_path) == []
