from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from pipediag.sensors import nvml
from pipediag.sensors.nvml import Nvml
from pipediag.session.host_track import GpuReading


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


@pytest.fixture(autouse=True)
def driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml, "_driver_may_exist", lambda: True)


def test_reads_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", fake_library())
    gpus = Nvml()
    assert gpus.names() == ["NVIDIA Example"]
    assert gpus.driver_version() == "550.1"
    assert gpus.readings() == (GpuReading("NVIDIA Example", 37.0, 10, 80),)
    gpus.close()
    assert gpus.readings() == ()


def test_values_that_the_driver_refuses_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    library = fake_library(nvmlDeviceGetUtilizationRates=fail, nvmlDeviceGetMemoryInfo=fail)
    monkeypatch.setitem(sys.modules, "pynvml", library)
    assert Nvml().readings() == (GpuReading("NVIDIA Example", None, None, None),)


def test_without_a_driver_there_are_no_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", fake_library(nvmlInit=fail))
    gpus = Nvml()
    assert gpus.names() == []
    assert gpus.driver_version() is None
    gpus.close()


def test_without_the_library_there_are_no_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert Nvml().names() == []
