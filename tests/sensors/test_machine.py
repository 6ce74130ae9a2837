"""The machine, its GPUs, and the limits of its control groups."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from pipediag.sensors import machine
from pipediag.sensors.machine import NVIDIA, Nvml, describe_machine, installed_gpus
from pipediag.session.recording import Device, RecordedEnvironment
from pipediag.session.timeline import GpuReading
from tests.fake_proc import add_cgroup_v2, write

RECORDED = RecordedEnvironment(
    python="3.11.9", tensorflow="2.21.0", devices=[Device("/physical_device:CPU:0", "CPU")]
)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write(tmp_path, "proc/cpuinfo", "processor\t: 0\nmodel name\t: Example CPU\n")
    add_cgroup_v2(tmp_path, "", {"cpu.max": "150000 100000\n", "memory.max": "1000000\n"})
    monkeypatch.setattr(machine, "usable_cores", lambda: 4)
    monkeypatch.setattr(machine, "installed_gpus", lambda root: ["NVIDIA Example"])
    return tmp_path


def test_the_fingerprint_is_of_the_machine_alone(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = describe_machine(RECORDED, root).fingerprint
    other = replace(RECORDED, python="3.12.1", tensorflow="2.22.0")
    assert describe_machine(other, root).fingerprint == base
    monkeypatch.setattr(machine, "usable_cores", lambda: 8)
    assert describe_machine(RECORDED, root).fingerprint != base


@pytest.fixture(autouse=True)
def no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_DRIVER_TRACES", ())


def add_pci(root: Path, slot: str, vendor: str, kind: str) -> None:
    for name, text in (("vendor", vendor), ("class", kind), ("device", "0x2335")):
        write(root, f"sys/bus/pci/devices/{slot}/{name}", f"{text}\n")


def test_the_bus_shows_gpus_without_a_driver(tmp_path: Path) -> None:
    add_pci(tmp_path, "0000:01:00.0", NVIDIA, "0x030200")
    add_pci(tmp_path, "0000:01:00.1", NVIDIA, "0x040300")
    add_pci(tmp_path, "0000:02:00.0", "0x1002", "0x030000")
    add_pci(tmp_path, "0000:03:00.0", "0x1a03", "0x030000")
    assert installed_gpus(tmp_path) == ["NVIDIA GPU 0x2335 at PCI 0000:01:00.0"]


NVML = SimpleNamespace(
    NVMLError=OSError,
    nvmlInit=lambda: None,
    nvmlShutdown=lambda: None,
    nvmlDeviceGetCount=lambda: 1,
    nvmlDeviceGetHandleByIndex=lambda index: index,
    nvmlDeviceGetName=lambda handle: "NVIDIA Example",
    nvmlSystemGetDriverVersion=lambda: "550.1",
    nvmlDeviceGetUtilizationRates=lambda handle: SimpleNamespace(gpu=37),
    nvmlDeviceGetMemoryInfo=lambda handle: SimpleNamespace(used=10, total=80),
)


def test_reads_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_DRIVER_TRACES", ("/",))
    monkeypatch.setitem(sys.modules, "pynvml", NVML)
    found = Nvml()
    assert found.names() == ["NVIDIA Example"]
    assert found.driver_version() == "550.1"
    assert found.readings() == (GpuReading("NVIDIA Example", 37.0, 10, 80),)
    found.close()
    assert found.readings() == ()


def test_quota_of_version_2_is_the_lowest_on_the_way_up(tmp_path: Path) -> None:
    files = {
        "pod/box/cpu.max": "400000 100000\n",
        "pod/cpu.max": "150000 100000\n",
        "cpu.max": "max 100000\n",
    }
    add_cgroup_v2(tmp_path, "pod/box", files)
    assert machine.cpu_quota(tmp_path) == 1.5


def test_memory_limit_and_use(tmp_path: Path) -> None:
    files = {
        "box/memory.max": "1000000\n",
        "memory.max": "max\n",
        "box/memory.current": "600000\n",
        "box/memory.stat": "anon 400000\nfile 200000\n",
    }
    add_cgroup_v2(tmp_path, "box", files)
    assert machine.memory_limit(tmp_path) == 1_000_000
    assert machine.memory_use(tmp_path) == (600_000, 200_000)


def test_nothing_is_known_without_control_groups(tmp_path: Path) -> None:
    assert machine.cpu_quota(tmp_path) is None
    assert machine.memory_limit(tmp_path) is None
    assert machine.memory_use(tmp_path) is None
