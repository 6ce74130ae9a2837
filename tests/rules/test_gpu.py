"""Accelerators: unused ones, copies to them, their tensor cores, and one that others wait for."""

from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.gpu import (
    DEVICE_STRAGGLER,
    EXPOSED_HOST_COPY,
    GPU_UNUSED,
    MIXED_PRECISION,
    sixteen_bit_policy,
)
from pipediag.session.devices import DeviceActivity
from pipediag.session.edits import Edit, Insert
from pipediag.session.model import Session
from pipediag.session.recording import Device
from pipediag.vocabulary import GapCause
from tests.factories import make_loop, make_session
from tests.records import make_environment
from tests.rules.devices import copies, cpu, gpu, on_devices, session_on
from tests.rules.sessions import cases, only, tried


@pytest.mark.parametrize(
    ("model", "policy"),
    [
        ("NVIDIA H200", "mixed_bfloat16"),
        ("NVIDIA H100 80GB HBM3, compute capability 9.0", "mixed_bfloat16"),
        ("NVIDIA A100-PG509-200, compute capability 8.0", "mixed_bfloat16"),
        ("NVIDIA GeForce RTX 4090", "mixed_bfloat16"),
        ("compute capability 8.6", "mixed_bfloat16"),
        ("Tesla V100-SXM2-32GB, compute capability 7.0", "mixed_float16"),
        ("NVIDIA GeForce RTX 2080 Ti", "mixed_float16"),
        ("NVIDIA GeForce GTX 1660 Ti, compute capability 7.5", "none"),
        ("Tesla P100-PCIE-16GB", "none"),
        (None, None),
        ("AMD Instinct MI300X", None),
        ("compute capability 9.4", None),
    ],
)
def test_models(model: str | None, policy: str | None) -> None:
    assert sixteen_bit_policy(model) == policy


INSTALLED = {"gpu_installed": ["NVIDIA H200"]}
CUDA = {**INSTALLED, "cuda_build": True}


@cases(
    {
        "hidden": ({**CUDA, "cuda_visible_devices": "-1"}, "fail", "Unset"),
        "a CPU build": ({**INSTALLED, "cuda_build": False}, "fail", "CPU-only build"),
        "no libraries": (
            {**CUDA, "framework_messages": ["Cannot dlopen some GPU libraries."]},
            "fail",
            "Install the GPU libraries",
        ),
        "no driver": (
            {**CUDA, "framework_messages": ["failed call to cuInit: UNKNOWN"]},
            "fail",
            "nvidia-smi",
        ),
        "no reason": (CUDA, "fail", "set_visible_devices"),
        "JAX": ({**INSTALLED, "keras_backend": "jax"}, "fail", "jax[cuda12]"),
        "used": ({**INSTALLED, "devices": [Device(name="/GPU:0", kind="GPU")]}, "pass", ""),
        "no GPU": (
            {"cuda_build": False, "framework_messages": ["Could not find cuda drivers"]},
            "pass",
            "",
        ),
        "no TensorFlow": ({**INSTALLED, "tensorflow": None}, "pass", ""),
    },
    "environment, status, said",
)
def test_a_gpu_that_is_not_used(environment: dict[str, Any], status: str, said: str) -> None:
    finding = only(GPU_UNUSED, make_session(environment=make_environment(**environment)))
    assert finding.status == status
    assert said in finding.advice


def copying(model: str = "NVIDIA H200", idle: float = 0.0, **overrides: Any) -> DeviceActivity:
    return gpu({"input": idle}, model=model, copies=[copies(**overrides)])


TO_HOST = gpu(copies=[copies(direction="device_to_host", exposed_ms=40.0)])


@cases(
    {
        "exposed": (copying(exposed_ms=20.0, ms=25.0), "fail", 1.25),
        "to the host": (TO_HOST, "pass", None),
        "input first": (copying(exposed_ms=20.0, idle=40.0), "informative", None),
        "unknown rate": (copying(bytes=None, gb_per_s=None), "fail", 1.111),
        "of a CPU": (cpu({"copy": 50.0}), "pass", None),
    },
    "device, status, at_most",
)
def test_copies_from_the_host(device: DeviceActivity, status: str, at_most: float | None) -> None:
    finding = on_devices(EXPOSED_HOST_COPY, device)
    assert (finding.status, finding.speedup_at_most) == (status, at_most)


def test_tries_to_copy_ahead_unless_a_strategy_does_so_by_itself() -> None:
    assert only(EXPOSED_HOST_COPY, session_on(copying())).edit == Edit(
        id="exposed-host-copy",
        label="prefetch_to_device(/gpu:0) at the end of the pipeline",
        changes=(Insert("batch_0", "prefetch_to_device", {"device": "/gpu:0"}),),
    )
    replicas = session_on(copying(), loops=[make_loop(replicas=2)])
    assert tried(only(EXPOSED_HOST_COPY, replicas)) == ("fail", False)


def multiplying(
    model: str | None = "NVIDIA H200", products: float = 60.0, cores: float = 1.0
) -> DeviceActivity:
    """90 ms busy, of which 60 ms in products, 1 ms of them on tensor cores."""
    return gpu({"launch": 10.0}, model=model, matmul_ms=products, tensor_core_ms=cores)


@cases(
    {
        # Half of 59 ms falls away from 100 ms.
        "products": ([multiplying()], "fail", 100 / 70.5),
        "no tensor cores": ([multiplying("NVIDIA TITAN Xp")], "pass", None),
        "unknown cores": ([multiplying("AMD Instinct MI300X")], "inconclusive", None),
        "unknown model": ([multiplying(None)], "inconclusive", None),
        "unknown": ([gpu()], "inconclusive", None),
        "of a CPU": ([cpu({"launch": 10.0})], "pass", None),
    },
    "devices, status, at_most",
)
def test_matrix_products(devices: list[DeviceActivity], status: str, at_most: float | None) -> None:
    finding = on_devices(MIXED_PRECISION, *devices)
    assert finding.status == status
    assert finding.speedup_at_most == (at_most and pytest.approx(at_most, abs=0.001))


SIXTEEN = {"environment": make_environment(mixed_precision="mixed_float16")}


@cases(
    {
        "products": (session_on(multiplying()), ("fail", True)),
        "in 16 bits": (session_on(multiplying(), **SIXTEEN), ("informative", False)),
        "input first": (
            session_on(gpu({"input": 30.0}, matmul_ms=60.0, tensor_core_ms=0.0)),
            ("informative", True),
        ),
        # Tried as long as a trial could confirm it.
        "few": (session_on(multiplying(products=17.0)), ("informative", True)),
    },
    "session, expected",
)
def test_matrix_products_in_a_session(session: Session, expected: object) -> None:
    assert tried(only(MIXED_PRECISION, session)) == expected


def member(
    index: int, waits: float, *, own: dict[GapCause, float] | None = None, **overrides: Any
) -> DeviceActivity:
    """A device that waits in gaps for `waits` ms, and is held up by itself as `own` says."""
    causes: dict[GapCause, float] = {"collective": waits, **(own or {})}
    values = {"name": f"GPU:{index}", "collective_ms": 5.0, "exposed_collective_ms": 0.0}
    return gpu(causes, **{**values, **overrides})


def members(*waits: float, **overrides: Any) -> list[DeviceActivity]:
    return [member(index, each, **overrides) for index, each in enumerate(waits)]


@cases(
    {
        "one of four": (members(30.0, 31.0, 29.0, 0.0), "fail", "GPU:3"),
        "of two": (members(30.0, 5.0), "fail", "GPU:1"),
        "communication": (members(30.0, 20.0, 25.0, 18.0), "informative", "GPU:3"),
        # It takes 1.4 times what the others do, and each of them another time.
        "all differ": (members(50.0, 30.0, 10.0, 0.0), "fail", "GPU:3"),
        "taking turns": (members(60.0, 0.0, collective_ms=None), "informative", "GPU:1"),
        "one device": ([gpu()], "pass", None),
        "CPUs": ([cpu({"collective": 50.0}), cpu({})], "pass", None),
    },
    "devices, status, named",
)
def test_a_device_that_others_wait_for(
    devices: list[DeviceActivity], status: str, named: str | None
) -> None:
    finding = on_devices(DEVICE_STRAGGLER, *devices)
    assert (finding.status, finding.evidence.get("device")) == (status, named)
    assert only(DEVICE_STRAGGLER, session_on(*members(30.0, 5.0))).status == "fail"
