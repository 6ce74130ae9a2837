from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.gpu import (
    DEVICE_STRAGGLER,
    EXPOSED_HOST_COPY,
    GPU_UNUSED,
    MIXED_PRECISION,
    pcie_gb_per_s,
    sixteen_bit_policy,
)
from pipediag.session.devices import DeviceActivity
from pipediag.session.edits import Edit, Insert
from pipediag.session.recording import Device
from pipediag.vocabulary import GapCause
from tests.factories import make_loop, make_session
from tests.records import make_environment
from tests.rules.devices import copies, cpu, gpu, on_devices, session_on
from tests.rules.sessions import only


@pytest.mark.parametrize(
    ("model", "policy", "gb_per_s"),
    [
        ("NVIDIA H200", "mixed_bfloat16", 50.0),
        ("NVIDIA H100 80GB HBM3, compute capability 9.0", "mixed_bfloat16", 50.0),
        ("NVIDIA GB200", "mixed_bfloat16", 50.0),
        ("NVIDIA Unheard-of, compute capability 12.0", "mixed_bfloat16", 50.0),
        ("NVIDIA A100-PG509-200, compute capability 8.0", "mixed_bfloat16", 24.0),
        ("NVIDIA A10G", "mixed_bfloat16", 24.0),
        ("NVIDIA GeForce RTX 4090", "mixed_bfloat16", 24.0),
        ("NVIDIA RTX 6000 Ada Generation", "mixed_bfloat16", 24.0),
        ("compute capability 8.6", "mixed_bfloat16", 24.0),
        ("Tesla V100-SXM2-32GB, compute capability 7.0", "mixed_float16", 12.0),
        ("compute capability 7.0", "mixed_float16", 12.0),
        ("Tesla T4", "mixed_float16", 12.0),
        ("NVIDIA GeForce RTX 2080 Ti", "mixed_float16", 12.0),
        ("NVIDIA GeForce GTX 1660 Ti, compute capability 7.5", "none", 12.0),
        ("Tesla P100-PCIE-16GB", "none", 12.0),
        ("NVIDIA TITAN Xp", "none", 12.0),
        ("compute capability 6.1", "none", 12.0),
    ],
)
def test_known_models(model: str, policy: str, gb_per_s: float) -> None:
    assert sixteen_bit_policy(model) == policy
    assert pcie_gb_per_s(model) == gb_per_s


@pytest.mark.parametrize(
    "model",
    [None, "", "Unheard-of 1", "AMD Instinct MI300X", "compute capability 9.4"],
)
def test_unknown_models(model: str | None) -> None:
    assert sixteen_bit_policy(model) is None
    assert pcie_gb_per_s(model) is None


def finding_with(**overrides: Any) -> Any:
    return only(GPU_UNUSED, make_session(environment=make_environment(**overrides)))


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ({"cuda_visible_devices": "-1", "cuda_build": True}, "unset it"),
        ({"cuda_visible_devices": "", "cuda_build": True}, "unset it"),
        ({"cuda_build": False}, "CPU-only build"),
        (
            {"cuda_build": True, "framework_messages": ["Cannot dlopen some GPU libraries."]},
            "Install the GPU libraries",
        ),
        (
            {"cuda_build": True, "framework_messages": ["failed call to cuInit: UNKNOWN"]},
            "nvidia-smi",
        ),
        ({"cuda_build": True}, "set_visible_devices"),
        ({"keras_backend": "jax", "cuda_build": False}, "jax[cuda12]"),
    ],
)
def test_names_the_cause(overrides: dict[str, Any], words: str) -> None:
    finding = finding_with(gpu_installed=["NVIDIA H200"], **overrides)
    assert finding.status == "fail"
    assert finding.severity == "error"


def test_passes_where_the_gpu_is_used() -> None:
    gpu = Device(name="/device:GPU:0", kind="GPU")
    assert finding_with(gpu_installed=["NVIDIA H200"], devices=[gpu]).status == "pass"


def test_is_silent_on_a_machine_without_a_gpu() -> None:
    finding = finding_with(cuda_build=False, framework_messages=["Could not find cuda drivers"])
    assert finding.status == "not-applicable"


def test_is_silent_where_tensorflow_was_not_imported() -> None:
    finding = finding_with(gpu_installed=["NVIDIA H200"], tensorflow=None)
    assert finding.status == "not-applicable"


def copying(model: str = "NVIDIA H200", idle: float = 0.0, **overrides: Any) -> DeviceActivity:
    return gpu({"input": idle}, model=model, copies=[copies(**overrides)])


def test_exposed_copies_ask_for_prefetch_to_device() -> None:
    finding = on_devices(EXPOSED_HOST_COPY, copying(exposed_ms=20.0, ms=25.0))
    assert finding.status == "fail"
    assert finding.evidence["exposed_percent_of_span"] == 20.0
    assert finding.evidence["pcie_gb_per_s"] == 50.0
    assert finding.speedup_at_most == 1.25


def test_copies_that_outlast_the_kernels_set_the_pace() -> None:
    finding = on_devices(EXPOSED_HOST_COPY, copying(exposed_ms=60.0, ms=80.0))
    assert finding.speedup_at_most == 1.25


def test_overlapped_copies_pass() -> None:
    assert on_devices(EXPOSED_HOST_COPY, copying(exposed_ms=4.9, ms=60.0)).status == "pass"


def test_only_copies_from_the_host_count() -> None:
    back = gpu(copies=[copies(direction="device_to_host", exposed_ms=40.0)])
    assert on_devices(EXPOSED_HOST_COPY, back).status == "pass"
    assert on_devices(EXPOSED_HOST_COPY, gpu()).status == "pass"


def test_copy_while_input_is_the_bottleneck_it_only_informs() -> None:
    finding = on_devices(EXPOSED_HOST_COPY, copying(exposed_ms=20.0, idle=40.0))
    assert finding.status == "informative"


@pytest.mark.parametrize(
    ("model", "overrides"),
    [("Unheard-of 1", {}), ("NVIDIA H200", {"bytes": None, "gb_per_s": None})],
)
def test_an_unknown_rate_is_not_judged(model: str, overrides: dict[str, Any]) -> None:
    finding = on_devices(EXPOSED_HOST_COPY, copying(model, **overrides))
    assert finding.status == "fail"


def test_a_cpu_has_no_such_copies() -> None:
    assert on_devices(EXPOSED_HOST_COPY, cpu({"copy": 50.0})).status == "not-applicable"


def test_tries_to_copy_ahead() -> None:
    assert only(EXPOSED_HOST_COPY, session_on(copying())).edit == Edit(
        id="exposed-host-copy",
        label="prefetch_to_device(/gpu:0) at the end of the pipeline",
        changes=(Insert("batch_0", "prefetch_to_device", {"device": "/gpu:0"}),),
    )


def test_a_strategy_copies_by_itself() -> None:
    session = session_on(copying(), loops=[make_loop(replicas=2)])
    finding = only(EXPOSED_HOST_COPY, session)
    assert (finding.status, finding.edit) == ("fail", None)
    assert "single device" in str(finding.trial.reason)


def multiplying(model: str | None = "NVIDIA H200", **overrides: Any) -> DeviceActivity:
    """90 ms busy, of which 60 ms in products, 1 ms of them on tensor cores."""
    values = {"matmul_ms": 60.0, "tensor_core_ms": 1.0, **overrides}
    return gpu({"launch": 10.0}, model=model, **values)


def test_products_without_tensor_cores() -> None:
    finding = on_devices(MIXED_PRECISION, multiplying())
    assert (finding.status, finding.severity) == ("fail", "info")
    assert finding.effect_on_results == "changes a hyper-parameter"
    assert finding.evidence["tensor_core_percent_of_matmul"] == pytest.approx(1.667)
    # Half of 59 ms falls away from 100 ms.
    assert finding.speedup_at_most == pytest.approx(100 / 70.5, abs=0.001)


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
    assert on_devices(MIXED_PRECISION, multiplying(model)).status == status


def test_near_misses_pass() -> None:
    assert on_devices(MIXED_PRECISION, multiplying(matmul_ms=17.0)).status == "pass"
    assert on_devices(MIXED_PRECISION, multiplying(tensor_core_ms=6.0)).status == "pass"
    assert on_devices(MIXED_PRECISION, multiplying(matmul_ms=0.0, tensor_core_ms=0.0)).status == (
        "pass"
    )


def test_a_device_that_is_mostly_idle_only_informs() -> None:
    idle = gpu({"launch": 92.0}, matmul_ms=6.0, tensor_core_ms=0.0)
    finding = on_devices(MIXED_PRECISION, idle)
    assert finding.status == "informative"


def test_precision_while_input_is_the_bottleneck_it_only_informs() -> None:
    device = gpu({"input": 30.0}, matmul_ms=60.0, tensor_core_ms=0.0)
    finding = only(MIXED_PRECISION, session_on(device))
    assert (finding.status, finding.edit is not None) == ("informative", True)


def test_in_a_session_few_products_are_tried_as_long_as_a_trial_could_confirm_it() -> None:
    few = only(MIXED_PRECISION, session_on(multiplying(matmul_ms=17.0)))
    assert (few.status, few.edit is not None) == ("informative", True)
    mostly_cores = only(MIXED_PRECISION, session_on(multiplying(tensor_core_ms=30.0)))
    assert mostly_cores.edit is not None
    assert only(MIXED_PRECISION, session_on(multiplying(matmul_ms=3.0))).status == "pass"


def test_products_that_overlap_save_no_more_than_the_busy_time() -> None:
    finding = on_devices(MIXED_PRECISION, multiplying(matmul_ms=300.0, tensor_core_ms=0.0))
    # Half of the 90 ms in which the device was busy.
    assert finding.speedup_at_most == pytest.approx(100 / 55, abs=0.001)


def test_kernels_that_are_not_told_apart_are_inconclusive() -> None:
    assert on_devices(MIXED_PRECISION, gpu()).status == "inconclusive"


def test_a_cpu_is_not_judged() -> None:
    assert on_devices(MIXED_PRECISION, cpu({"launch": 10.0})).status == "not-applicable"


def test_a_session_that_sets_the_policy_is_told_about_shapes() -> None:
    plain = only(MIXED_PRECISION, session_on(multiplying()))
    assert plain.status == "fail"
    environment = make_environment(mixed_precision="mixed_float16")
    finding = only(MIXED_PRECISION, session_on(multiplying(), environment=environment))
    assert finding.status == "informative"


def test_a_device_without_kernels_says_nothing_of_the_others() -> None:
    assert on_devices(MIXED_PRECISION, gpu(), multiplying()).status == "fail"


def member(
    index: int, waits: float, *, own: dict[GapCause, float] | None = None, **overrides: Any
) -> DeviceActivity:
    """A device that waits in gaps for `waits` ms, and is held up by itself as `own` says."""
    causes: dict[GapCause, float] = {"collective": waits, **(own or {})}
    values = {"name": f"GPU:{index}", "collective_ms": 5.0, "exposed_collective_ms": 0.0}
    return gpu(causes, **{**values, **overrides})


def test_one_of_four_computes_longer() -> None:
    devices = [member(0, 30.0), member(1, 31.0), member(2, 29.0), member(3, 0.0)]
    finding = on_devices(DEVICE_STRAGGLER, *devices)
    assert finding.status == "fail"
    assert finding.evidence["device"] == "GPU:3"
    assert finding.evidence["others_wait_percent_of_span"] == 30.0
    # Own times 70, 69, 71, 100: median 70.5, deviations 0.5, 1.5, 0.5, 29.5 with median 1.
    assert finding.evidence["modified_z_score"] == pytest.approx(0.6745 * 29.5, abs=0.01)
    # 100 ms over the others' median of 70 ms.
    assert finding.speedup_at_most == 1.429


def test_waiting_shows_within_the_collective_too() -> None:
    spinning = [member(i, 0.0, collective_ms=30.0, exposed_collective_ms=30.0 + i) for i in (0, 1)]
    finding = on_devices(DEVICE_STRAGGLER, *spinning, member(2, 1.0, exposed_collective_ms=1.0))
    assert (finding.status, finding.evidence["device"]) == ("fail", "GPU:2")


@pytest.mark.parametrize(
    ("own", "words"),
    [
        ({"input": 40.0}, "its own input"),
        ({"copy": 40.0}, "PCIe link"),
        ({"python": 40.0}, "Its host keeps it waiting"),
    ],
)
def test_says_what_the_slow_one_does_longer(own: dict[GapCause, float], words: str) -> None:
    devices = [member(0, 40.0, host="a"), member(0, 0.0, own=own, host="b")]
    finding = on_devices(DEVICE_STRAGGLER, *devices)
    assert finding.evidence["device"] == "b GPU:0"


def test_says_how_late_the_slow_ones_host_begins_its_steps() -> None:
    devices = [member(0, 40.0, host="a", host_late_ms=0.0)]
    slow = member(0, 0.0, own={"python": 40.0}, host="b", host_late_ms=3.5)
    finding = on_devices(DEVICE_STRAGGLER, *devices, slow)
    assert finding.evidence["host_begins_steps_late_ms"] == 3.5


def test_two_devices_are_told_apart_by_their_ratio() -> None:
    finding = on_devices(DEVICE_STRAGGLER, member(0, 30.0), member(1, 5.0))
    # 95 ms of its own over 70 ms.
    assert (finding.status, finding.evidence["modified_z_score"]) == ("fail", None)
    near = on_devices(DEVICE_STRAGGLER, member(0, 30.0), member(1, 18.0))
    assert near.status == "informative"


def test_devices_that_are_otherwise_alike_are_told_apart_by_their_ratio() -> None:
    finding = on_devices(DEVICE_STRAGGLER, member(0, 40.0), member(1, 40.0), member(2, 0.0))
    assert (finding.status, finding.evidence["modified_z_score"]) == ("fail", None)


def test_waiting_alike_is_communication() -> None:
    devices = [member(index, wait) for index, wait in enumerate((30.0, 20.0, 25.0, 18.0))]
    finding = on_devices(DEVICE_STRAGGLER, *devices)
    assert finding.status == "informative"


def test_short_waits_pass() -> None:
    finding = on_devices(DEVICE_STRAGGLER, member(0, 9.0), member(1, 9.0), member(2, 0.0))
    assert finding.status == "pass"


def test_without_collectives_the_devices_take_turns() -> None:
    devices = [member(0, 60.0, collective_ms=None), member(1, 0.0, collective_ms=None)]
    finding = on_devices(DEVICE_STRAGGLER, *devices)
    assert finding.status == "informative"


def test_one_device_or_cpus_have_nobody_to_wait_for() -> None:
    assert on_devices(DEVICE_STRAGGLER, gpu()).status == "not-applicable"
    assert on_devices(DEVICE_STRAGGLER, cpu({"collective": 50.0}), cpu({})).status == (
        "not-applicable"
    )


def test_a_session_says_the_same() -> None:
    assert only(DEVICE_STRAGGLER, session_on(member(0, 30.0), member(1, 5.0))).status == "fail"


def test_others_that_only_wait_leave_no_prediction() -> None:
    finding = on_devices(DEVICE_STRAGGLER, member(0, 100.0), member(1, 0.0))
    assert finding.speedup_at_most is None


def test_one_among_many_that_differ_does_not_stand_out() -> None:
    """It takes 1.4 times what the others do, and each of them another time."""
    devices = [member(i, waits) for i, waits in enumerate((50.0, 30.0, 10.0, 0.0))]
    finding = on_devices(DEVICE_STRAGGLER, *devices)
    assert finding.status == "informative"
