from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.device import small_kernels
from pipediag.session.devices import DeviceActivity, DeviceKernel
from pipediag.session.edits import SetModel
from tests.rules.devices import cpu, gpu, launches, on_devices, session_on, under_floor
from tests.rules.sessions import only


def small(idle: float = 40.0, **overrides: Any) -> DeviceActivity:
    values = {"shorter_than_launch_percent": 80.0, "median_kernel_us": 2.0, **overrides}
    kernels = [
        DeviceKernel(name="ampere_sgemm_128x64_nn", count=3, ms=9.0),
        DeviceKernel(name="AddV2_GPU_DT_FLOAT", count=900, ms=1.0),
    ]
    return gpu({"launch": idle}, launches=launches(**values), kernels=kernels)


def test_kernels_shorter_than_their_launch_are_to_be_fused() -> None:
    finding = on_devices(small_kernels, small())
    assert finding.status == "fail"
    assert "jit_compile=True" in finding.advice
    assert finding.evidence["shorter_than_launch_percent"] == 80.0
    assert finding.evidence["most_frequent_kernel"] == "AddV2_GPU_DT_FLOAT"
    assert finding.effect_on_results == "same up to order or rounding"
    assert finding.speedup_at_most is None


def test_a_device_that_is_kept_busy_only_informs() -> None:
    assert on_devices(small_kernels, small(4.0)).status == "informative"


def test_while_input_is_the_bottleneck_it_only_informs() -> None:
    device = small().model_copy(update={"causes_ms": {"launch": 20.0, "input": 30.0}})
    assert "input first" in on_devices(small_kernels, device).advice


def test_near_misses_pass() -> None:
    assert on_devices(small_kernels, small(shorter_than_launch_percent=49.0)).status == "pass"


@pytest.mark.parametrize(
    "device",
    [small(matched=99), small(shorter_than_launch_percent=None), gpu({"launch": 40.0})],
)
def test_too_few_launches_are_inconclusive(device: DeviceActivity) -> None:
    assert on_devices(small_kernels, device).status == "inconclusive"


def test_a_cpu_launches_nothing() -> None:
    assert on_devices(small_kernels, cpu({"launch": 40.0})).status == "not-applicable"


def test_a_session_says_the_same() -> None:
    assert only(small_kernels, session_on(small())).status == "fail"


def test_a_device_without_kernels_does_not_stand_for_the_others() -> None:
    finding = on_devices(small_kernels, gpu(name="GPU:1"), small(shorter_than_launch_percent=0.0))
    assert (finding.status, finding.evidence["device"]) == ("pass", "GPU:0")


def test_gaps_that_were_not_looked_into_leave_it_open() -> None:
    short = launches(shorter_than_launch_percent=80.0)
    finding = on_devices(small_kernels, under_floor(launches=short))
    assert finding.status == "inconclusive"
    assert "82.5 % of the time is idle in gaps under 1 ms" in finding.advice


def test_each_framework_has_its_own_way_to_fuse() -> None:
    assert "fused=True" in on_devices(small_kernels, small(), framework="pytorch").advice
    assert "jax.jit" in on_devices(small_kernels, small(), framework="jax").advice


def test_tries_xla() -> None:
    device = gpu({"launch": 20.0}, launches=launches(shorter_than_launch_percent=80.0))
    edit = only(small_kernels, session_on(device)).edit
    assert edit is not None
    assert (edit.id, edit.changes) == ("small-kernels", (SetModel({"jit_compile": True}),))
    assert "A profile alone" in str(on_devices(small_kernels, device).trial.reason)
