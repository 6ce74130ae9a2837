from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from pipediag.sensors import machine
from pipediag.sensors.machine import (
    CpuReading,
    cpu_model,
    describe_machine,
    others_percent,
    read_cpus,
)
from pipediag.session.recording import Device, RecordedEnvironment
from tests.fake_proc import add_cgroup_v2, write


def recorded() -> RecordedEnvironment:
    return RecordedEnvironment(
        python="3.11.9",
        executable="python",
        tensorflow="2.21.0",
        keras="3.15.1",
        keras_backend="tensorflow",
        cuda_build=False,
        devices=[Device("/physical_device:CPU:0", "CPU")],
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


def test_only_the_cpus_that_this_process_may_use_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1})
    monkeypatch.setattr(os, "sysconf", lambda _: 100)
    write(tmp_path, "proc/stat", "cpu1 100 0 50 800 50 0 0 0 70 0\ncpu10 900 0 0 100 0 0 0 0 0 0\n")
    found = read_cpus(tmp_path)
    assert (found.whole_s, found.busy_s) == (10.0, 1.5)
    assert read_cpus(tmp_path / "nothing") is None


def test_what_is_not_ours_is_that_of_others() -> None:
    before, after = CpuReading(100.0, 40.0, 30.0), CpuReading(120.0, 56.0, 36.0)
    assert others_percent(before, after) == 50.0


@pytest.mark.parametrize(
    "readings",
    [(None, CpuReading(1, 1, 1)), (CpuReading(1, 1, 1), None), (CpuReading(1, 1, 1),) * 2],
)
def test_without_two_readings_nothing_is_known(
    readings: tuple[CpuReading | None, CpuReading | None],
) -> None:
    assert others_percent(*readings) is None


BUSY = """
import time
until = time.process_time() + 0.2
while time.process_time() < until:
    pass
print("done", flush=True)
input()
"""


def test_own_time_holds_that_of_children_which_live_and_which_have_ended() -> None:
    before = read_cpus()
    if before is None:
        pytest.skip("the system does not show its CPUs")
    child = subprocess.Popen(
        [sys.executable, "-c", BUSY], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    child.stdout.readline()
    alive = read_cpus()
    child.communicate(b"\n")
    ended = read_cpus()
    assert alive.own_s - before.own_s > 0.15
    assert ended.own_s - before.own_s > 0.15
