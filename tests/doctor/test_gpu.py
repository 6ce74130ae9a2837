from __future__ import annotations

import pytest

from pipediag.doctor.framework import Imported, Installed
from pipediag.doctor.gpu import gpus

GPU_BUILD = Installed({"tensorflow": "2.21.0"}, ["nvidia-cudnn-cu12"])
CPU_BUILD = Installed({"tensorflow-cpu": "2.21.0"})
SEES_NONE = Imported("2.21.0", True, [])
NVIDIA = ["NVIDIA Example"]


def test_a_machine_without_gpus_is_fine() -> None:
    assert gpus([], None, CPU_BUILD, SEES_NONE, {}).state == "ok"


def test_a_gpu_that_is_seen_is_fine() -> None:
    check = gpus(NVIDIA, "550.1", GPU_BUILD, Imported("2.21.0", True, ["/GPU:0"]), {})
    assert check.state == "ok"
    assert "driver 550.1" in check.found


@pytest.mark.parametrize(
    ("driver", "found", "imported", "environment", "words"),
    [
        ("550.1", GPU_BUILD, SEES_NONE, {"CUDA_VISIBLE_DEVICES": "-1"}, "CUDA_VISIBLE_DEVICES"),
        ("550.1", CPU_BUILD, SEES_NONE, {}, "no GPU support"),
        ("550.1", CPU_BUILD, None, {}, "no GPU support"),
        ("550.1", GPU_BUILD, Imported("2.21.0", False, []), {}, "no GPU support"),
        (None, GPU_BUILD, SEES_NONE, {}, "driver does not answer"),
        ("550.1", Installed({"tensorflow": "2.21.0"}), SEES_NONE, {}, "no CUDA libraries"),
        ("550.1", GPU_BUILD, SEES_NONE, {"CUDA_VISIBLE_DEVICES": "0"}, "no reason is plain"),
    ],
)
def test_why_a_gpu_is_not_seen(
    driver: str | None,
    found: Installed,
    imported: Imported | None,
    environment: dict[str, str],
    words: str,
) -> None:
    check = gpus(NVIDIA, driver, found, imported, environment)
    assert check.state == "problem"
    assert words in check.found
    assert check.do


def test_models_of_older_drivers_are_nvidias_too() -> None:
    check = gpus(["Tesla V100"], None, GPU_BUILD, SEES_NONE, {})
    assert "driver does not answer" in check.found


def test_tensorflow_that_was_not_asked_is_not_blamed() -> None:
    check = gpus(NVIDIA, "550.1", GPU_BUILD, None, {})
    assert check.state == "ok"
    assert "not asked" in check.found


def test_an_amd_gpu_needs_no_cuda_libraries() -> None:
    check = gpus(["AMD GPU 0x74a1"], None, GPU_BUILD, SEES_NONE, {})
    assert "no reason is plain" in check.found
