from __future__ import annotations

import platform
from pathlib import Path

import psutil
import pytest

from pipediag.sensors import machine
from pipediag.sensors.machine import cpu_model, describe_machine, memory_bytes
from pipediag.session.recording import RecordedDevice, RecordedEnvironment
from pipediag.session.run import Device
from tests.fake_proc import add_cgroup_v2, write


def recorded() -> RecordedEnvironment:
    return RecordedEnvironment(
        python="3.11.9",
        executable="python",
        tensorflow="2.21.0",
        keras="3.15.1",
        keras_backend="tensorflow",
        cuda_build=False,
        devices=[RecordedDevice("/physical_device:CPU:0", "CPU")],
        mixed_precision="mixed_float16",
        framework_messages=["Could not find cuda drivers"],
    )


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write(tmp_path, "proc/cpuinfo", "processor\t: 0\nmodel name\t: Example CPU\n")
    add_cgroup_v2(tmp_path, "", {"cpu.max": "150000 100000\n", "memory.max": "1000000\n"})
    monkeypatch.setattr(machine, "usable_cores", lambda: 4)
    monkeypatch.setattr(machine, "installed_gpus", lambda root: ["NVIDIA Example"])
    return tmp_path


def test_the_whole_description(root: Path) -> None:
    found = describe_machine(recorded(), root)
    assert found.cpu_model == "Example CPU"
    assert found.cores == 4
    assert found.cpu_quota == 1.5
    assert found.memory_bytes == 1_000_000
    assert found.gpu_installed == ["NVIDIA Example"]
    assert found.devices == [Device(name="/physical_device:CPU:0", kind="CPU")]
    assert found.python == "3.11.9"
    assert found.tensorflow == "2.21.0"
    assert found.mixed_precision == "mixed_float16"
    assert found.framework_messages == ["Could not find cuda drivers"]


def test_without_a_recording_the_machine_is_still_described(root: Path) -> None:
    found = describe_machine(None, root)
    assert found.python == platform.python_version()
    assert found.tensorflow is None
    assert found.devices == []
    assert found.cores == 4


def test_the_fingerprint_is_of_the_machine_alone(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = describe_machine(recorded(), root).fingerprint
    assert describe_machine(recorded(), root).fingerprint == base

    other_python = recorded()
    other_python.python = "3.12.1"
    assert describe_machine(other_python, root).fingerprint == base

    other_tensorflow = recorded()
    other_tensorflow.tensorflow = "2.22.0"
    assert describe_machine(other_tensorflow, root).fingerprint == base

    monkeypatch.setattr(machine, "usable_cores", lambda: 8)
    assert describe_machine(recorded(), root).fingerprint != base


def test_processor_names_of_other_systems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "processor", lambda: "arm")
    assert cpu_model(tmp_path) == "arm"
    write(tmp_path, "proc/cpuinfo", "processor\t: 0\nBogoMIPS\t: 50\n")
    assert cpu_model(tmp_path) == "arm"


def test_memory_without_a_limit_is_the_machines(tmp_path: Path) -> None:
    assert memory_bytes(tmp_path) == psutil.virtual_memory().total


@pytest.mark.parametrize(
    ("quota", "threads"),
    [("150000", 2), ("800000", 4), ("max", 4), ("30000", 1)],
)
def test_the_cpus_are_tried_with_no_more_threads_than_cores_and_quota_allow(
    root: Path, monkeypatch: pytest.MonkeyPatch, quota: str, threads: int
) -> None:
    asked: list[int] = []
    add_cgroup_v2(root, "", {"cpu.max": f"{quota} 100000\n"})
    monkeypatch.setattr(machine, "cpu_capacity", asked.append)
    describe_machine(recorded(), root)
    assert asked == [threads]
