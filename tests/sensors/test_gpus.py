from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from pipediag.sensors import gpus
from pipediag.sensors.gpus import AMD, NVIDIA, Nvml, installed_gpus, pci_gpus
from pipediag.session.timeline import GpuReading
from tests.fake_proc import write


@pytest.fixture(autouse=True)
def no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpus, "_driver_may_exist", lambda: False)


def use_library(monkeypatch: pytest.MonkeyPatch, library: SimpleNamespace | None) -> None:
    monkeypatch.setattr(gpus, "_driver_may_exist", lambda: True)
    monkeypatch.setitem(sys.modules, "pynvml", library)


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


class FakeNvmlError(Exception):
    pass


def fake_library(**overrides: object) -> SimpleNamespace:
    functions = {
        "NVMLError": FakeNvmlError,
        "nvmlInit": lambda: None,
        "nvmlShutdown": lambda: None,
        "nvmlDeviceGetCount": lambda: 1,
        "nvmlDeviceGetHandleByIndex": lambda index: index,
        "nvmlDeviceGetName": lambda handle: b"NVIDIA Example",
        "nvmlSystemGetDriverVersion": lambda: "550.1",
        "nvmlDeviceGetUtilizationRates": lambda handle: SimpleNamespace(gpu=37),
        "nvmlDeviceGetMemoryInfo": lambda handle: SimpleNamespace(used=10, total=80),
    }
    return SimpleNamespace(**{**functions, **overrides})


def fail(*args: object) -> None:
    raise FakeNvmlError


def test_reads_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    use_library(monkeypatch, fake_library())
    found = Nvml()
    assert found.names() == ["NVIDIA Example"]
    assert found.driver_version() == "550.1"
    assert found.readings() == (GpuReading("NVIDIA Example", 37.0, 10, 80),)
    found.close()
    assert found.readings() == ()


def test_values_that_the_driver_refuses_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    library = fake_library(nvmlDeviceGetUtilizationRates=fail, nvmlDeviceGetMemoryInfo=fail)
    use_library(monkeypatch, library)
    assert Nvml().readings() == (GpuReading("NVIDIA Example", None, None, None),)


def test_without_a_driver_there_are_no_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    use_library(monkeypatch, fake_library(nvmlInit=fail))
    found = Nvml()
    assert found.names() == []
    assert found.driver_version() is None
    found.close()


def test_without_the_library_there_are_no_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    use_library(monkeypatch, None)
    assert Nvml().names() == []
