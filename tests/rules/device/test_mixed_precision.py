from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.device import mixed_precision
from pipediag.session.devices import DeviceActivity
from tests.records import make_environment
from tests.rules.devices import cpu, gpu, on_devices, session_on
from tests.rules.sessions import only


def multiplying(model: str | None = "NVIDIA H200", **overrides: Any) -> DeviceActivity:
    """90 ms busy, of which 60 ms in products, 1 ms of them on tensor cores."""
    values = {"matmul_ms": 60.0, "tensor_core_ms": 1.0, **overrides}
    return gpu({"launch": 10.0}, model=model, **values)


def test_products_without_tensor_cores() -> None:
    finding = on_devices(mixed_precision, multiplying())
    assert (finding.status, finding.severity) == ("fail", "info")
    assert finding.effect_on_results == "changes a hyper-parameter"
    assert "validate accuracy" in finding.advice
    assert finding.evidence["tensor_core_percent_of_matmul"] == pytest.approx(1.667)
    # Half of 59 ms falls away from 100 ms.
    assert finding.speedup_at_most == pytest.approx(100 / 70.5, abs=0.001)


@pytest.mark.parametrize(
    ("model", "policy"),
    [
        ("NVIDIA A100-SXM4-40GB", "mixed_bfloat16"),
        ("NVIDIA GeForce RTX 4090", "mixed_bfloat16"),
        ("NVIDIA RTX 6000 Ada Generation", "mixed_bfloat16"),
        ("Tesla V100-SXM2-16GB", "mixed_float16"),
        ("Tesla T4", "mixed_float16"),
        ("NVIDIA GeForce RTX 2080 Ti", "mixed_float16"),
    ],
)
def test_the_policy_suits_the_model(model: str, policy: str) -> None:
    finding = on_devices(mixed_precision, multiplying(model))
    assert f"'{policy}'" in finding.advice
    assert ("LossScaleOptimizer" in finding.advice) == (policy == "mixed_float16")


@pytest.mark.parametrize(
    ("model", "status"),
    [
        ("Tesla P100-PCIE-16GB", "not-applicable"),
        ("NVIDIA GeForce GTX 1660 Ti", "not-applicable"),
        ("NVIDIA TITAN Xp", "not-applicable"),
        ("AMD Instinct MI300X", "inconclusive"),
        (None, "inconclusive"),
    ],
)
def test_models_without_known_tensor_cores(model: str | None, status: str) -> None:
    assert on_devices(mixed_precision, multiplying(model)).status == status


def test_near_misses_pass() -> None:
    assert on_devices(mixed_precision, multiplying(matmul_ms=17.0)).status == "pass"
    assert on_devices(mixed_precision, multiplying(tensor_core_ms=6.0)).status == "pass"
    assert on_devices(mixed_precision, multiplying(matmul_ms=0.0, tensor_core_ms=0.0)).status == (
        "pass"
    )


def test_a_device_that_is_mostly_idle_only_informs() -> None:
    idle = gpu({"launch": 92.0}, matmul_ms=6.0, tensor_core_ms=0.0)
    finding = on_devices(mixed_precision, idle)
    assert finding.status == "informative"
    assert "idle 92 %" in finding.advice


def test_while_input_is_the_bottleneck_it_only_informs() -> None:
    device = gpu({"input": 30.0}, matmul_ms=60.0, tensor_core_ms=0.0)
    finding = only(mixed_precision, session_on(device))
    assert (finding.status, finding.edit is not None) == ("informative", True)
    assert "input first" in finding.advice


def test_in_a_session_few_products_are_tried_as_long_as_a_trial_could_confirm_it() -> None:
    few = only(mixed_precision, session_on(multiplying(matmul_ms=17.0)))
    assert (few.status, few.edit is not None) == ("informative", True)
    mostly_cores = only(mixed_precision, session_on(multiplying(tensor_core_ms=30.0)))
    assert mostly_cores.edit is not None
    assert only(mixed_precision, session_on(multiplying(matmul_ms=3.0))).status == "pass"


def test_products_that_overlap_save_no_more_than_the_busy_time() -> None:
    finding = on_devices(mixed_precision, multiplying(matmul_ms=300.0, tensor_core_ms=0.0))
    # Half of the 90 ms in which the device was busy.
    assert finding.speedup_at_most == pytest.approx(100 / 55, abs=0.001)


def test_kernels_that_are_not_told_apart_are_inconclusive() -> None:
    assert on_devices(mixed_precision, gpu()).status == "inconclusive"


def test_a_cpu_is_not_judged() -> None:
    assert on_devices(mixed_precision, cpu({"launch": 10.0})).status == "not-applicable"


def test_a_session_that_sets_the_policy_is_told_about_shapes() -> None:
    plain = only(mixed_precision, session_on(multiplying()))
    assert plain.status == "fail"
    environment = make_environment(mixed_precision="mixed_float16")
    finding = only(mixed_precision, session_on(multiplying(), environment=environment))
    assert finding.status == "informative"
    assert "multiple of 8" in finding.advice


def test_a_device_without_kernels_says_nothing_of_the_others() -> None:
    assert on_devices(mixed_precision, gpu(), multiplying()).status == "fail"
