"""Accelerators: unused or idle ones, copies to them, and tensor cores."""

from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.devices import (
    EXPOSED_HOST_COPY,
    GPU_UNUSED,
    INPUT_GAP,
    LAUNCH_BOUND,
    MIXED_PRECISION,
    PYTHON_GAP,
    SYNC_POINT,
    sixteen_bit_policy,
)
from pipediag.rules.rule import Rule
from pipediag.session.devices import DeviceActivity
from pipediag.session.edits import Insert, SetModel
from pipediag.session.loops import Perturbation
from pipediag.session.model import Session
from pipediag.session.recording import Device
from tests.factories import make_compute_bound_session, make_keras, make_loop, make_session
from tests.records import make_environment
from tests.rules.sessions import (
    H200,
    LAUNCHES,
    cases,
    changes,
    copies,
    cpu,
    decides,
    gap,
    gpu,
    on_devices,
    only,
    session_on,
    straddles,
    tried,
)


@pytest.mark.parametrize(
    ("model", "policy"),
    [
        ("NVIDIA H100 80GB HBM3, compute capability 9.0", "mixed_bfloat16"),
        ("Tesla V100-SXM2-32GB, compute capability 7.0", "mixed_float16"),
        ("NVIDIA GeForce GTX 1660 Ti, compute capability 7.5", None),
        ("NVIDIA H200", None),
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
        "a CPU build": (
            {**INSTALLED, "cuda_build": False},
            "fail",
            "pip install 'tensorflow[and-cuda]'",
        ),
        "no reason": (CUDA, "fail", "nvidia-smi"),
        "JAX": ({**INSTALLED, "keras_backend": "jax"}, "fail", "jax[cuda12]"),
        "used": ({**INSTALLED, "devices": [Device(name="/GPU:0", kind="GPU")]}, "pass", ""),
        "no GPU": ({"cuda_build": False}, "pass", ""),
    },
    "environment, status, said",
)
def test_a_gpu_that_is_not_used(environment: dict[str, Any], status: str, said: str) -> None:
    finding = only(GPU_UNUSED, make_session(environment=make_environment(**environment)))
    assert finding.status == status
    assert said in finding.advice


AHEAD = (Insert("batch_0", "prefetch_to_device", {"device": "/gpu:0"}),)


def copying(model: str = "NVIDIA H200", idle: float = 0.0, **overrides: Any) -> DeviceActivity:
    return gpu({"input": idle}, model=model, copies=[copies(**overrides)])


@cases(
    {
        "exposed": (copying(exposed_ms=20.0, ms=25.0), "fail", 1.25),
        "input first": (copying(exposed_ms=20.0, idle=40.0), "informative", None),
        "of a CPU": (cpu({"copy": 50.0}), "pass", None),
    },
    "device, status, at_most",
)
def test_copies_from_the_host(device: DeviceActivity, status: str, at_most: float | None) -> None:
    finding = on_devices(EXPOSED_HOST_COPY, device)
    assert (finding.status, finding.speedup_at_most) == (status, at_most)


def test_tries_to_copy_ahead_unless_a_strategy_does_so_by_itself() -> None:
    assert changes(only(EXPOSED_HOST_COPY, session_on(copying()))) == AHEAD
    replicas = session_on(copying(), loops=[make_loop(replicas=2)])
    assert tried(only(EXPOSED_HOST_COPY, replicas)) == ("fail", False)


@pytest.mark.parametrize(
    ("logical", "device"), [([0], "/gpu:0"), ([0, 1], "/gpu:1"), ([], "/gpu:1")]
)
def test_batches_go_to_the_device_by_the_name_that_tensorflow_has_for_it(
    logical: list[int], device: str
) -> None:
    """TensorFlow counts the GPUs that `set_visible_devices` leaves, and the driver all."""
    devices = [Device(name=f"/device:GPU:{number}", kind="GPU") for number in logical]
    session = session_on(copying().but(name="GPU:1"), environment=make_environment(devices=devices))
    expected = (Insert("batch_0", "prefetch_to_device", {"device": device}),)
    assert changes(only(EXPOSED_HOST_COPY, session)) == expected


def multiplying(
    model: str | None = H200, products: float = 60.0, cores: float = 1.0, tf32: float = 0.0
) -> DeviceActivity:
    """90 ms busy, of which 60 ms in products, 1 ms of them on tensor cores."""
    times = {"matmul_ms": products, "tensor_core_ms": cores, "tf32_ms": tf32}
    return gpu({"launch": 10.0}, model=model, **times)


@cases(
    {
        # 59 ms and half of the other 31 ms fall away from 100 ms.
        "products": ([multiplying()], "fail", 100 / 25.5),
        "in TF32": ([multiplying(cores=60.0, tf32=60.0)], "informative", None),
        "partly in TF32": ([multiplying(cores=30.0, tf32=30.0)], "fail", 100 / 40.0),
        "in 16 bits": ([multiplying(cores=60.0)], "pass", None),
        "no tensor cores": ([multiplying("TITAN Xp, compute capability 6.1")], "pass", None),
        "unknown cores": ([multiplying("AMD Instinct MI300X")], "pass", None),
        "unknown": ([gpu()], "pass", None),
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
        "in TF32": (session_on(multiplying(cores=60.0, tf32=60.0)), ("informative", True)),
    },
    "session, expected",
)
def test_matrix_products_in_a_session(session: Session, expected: object) -> None:
    assert tried(only(MIXED_PRECISION, session)) == expected


SLOWED = {"perturbation": Perturbation(baseline_step_ms=10.0, profiled_step_ms=20.0, ratio=2.0)}
SHARED, XLA = (SetModel({"steps_per_execution": 16}),), (SetModel({"jit_compile": True}),)


def late(idle: float = 40.0, **overrides: Any) -> DeviceActivity:
    """A GPU that waits for launches."""
    return gpu({"launch": idle}, **{**LAUNCHES, **overrides})


STEPS = [gap("python", 5.0, step=step, doing="callbacks.py:12 log") for step in range(8)]
LOGGING = gpu({"python": 40.0}, gaps=STEPS)
PAUSE = gap("python", 25.0, step=7, doing="saving.py:80 save")


@cases(
    {
        "input": (INPUT_GAP, [gpu({"input": 30.0})], "fail"),
        "input of a CPU": (INPUT_GAP, [cpu({"input": 30.0})], "fail"),
        "launches": (LAUNCH_BOUND, [late()], "fail"),
        "launches behind input": (
            LAUNCH_BOUND,
            [gpu({"launch": 20.0, "input": 30.0}, **LAUNCHES)],
            "informative",
        ),
        "launches of a CPU": (LAUNCH_BOUND, [cpu({"launch": 60.0})], "pass"),
        "read-backs": (SYNC_POINT, [gpu({"sync": 20.0})], "fail"),
        "read-backs behind input": (
            SYNC_POINT,
            [gpu({"sync": 20.0, "input": 20.0})],
            "informative",
        ),
        "read-backs of a CPU": (SYNC_POINT, [cpu({"sync": 20.0})], "pass"),
        "Python": (PYTHON_GAP, [LOGGING], "fail"),
        "one pause": (PYTHON_GAP, [gpu({"python": 40.0}, gaps=[*STEPS[:3], PAUSE])], "informative"),
    },
    "rule, devices, status",
)
def test_a_profile_s_devices(rule: Rule, devices: list[DeviceActivity], status: str) -> None:
    assert on_devices(rule, *devices).status == status


@pytest.mark.parametrize(
    ("rule", "device", "at_most"),
    [
        (INPUT_GAP, gpu({"input": 50.0}), 2.0),
        (LAUNCH_BOUND, late(), 1.667),
    ],
)
def test_the_bound_is_the_span_without_that_idle_time(
    rule: Rule, device: DeviceActivity, at_most: float | None
) -> None:
    assert on_devices(rule, device).speedup_at_most == at_most


# In a session


WAITS = gpu({"input": 30.0}, gaps=[gap("input", 30.0, op_id="map_0")])


test_a_session_weighs_waits_for_input_by_its_steps = decides(
    INPUT_GAP,
    {
        "input-bound": (make_session(devices=[WAITS]), ("fail", AHEAD)),
        "no breakdown": (make_session(devices=[WAITS], breakdown=None), ("fail", AHEAD)),
        # Steps that do not wait without the profiler are believed.
        "keeps up": (session_on(WAITS), "pass"),
        "straddles": (make_session(devices=[WAITS], **straddles()), ("informative", AHEAD)),
        "no devices": (make_compute_bound_session(devices=[]), "inconclusive"),
        "a CPU": (session_on(cpu({"input": 80.0})), "not-applicable"),
    },
)


def fit(**keras: Any) -> dict[str, Any]:
    return {"loops": [make_loop(keras=make_keras(**keras))]}


OWN = {"loops": [make_loop(kind="eager", keras=None)]}


test_a_session_tries_xla_before_several_steps_a_call = decides(
    LAUNCH_BOUND,
    {
        "launches": (session_on(late()), ("fail", XLA)),
        "under XLA": (session_on(late(), **fit(jit_compile=True)), ("fail", SHARED)),
        "own loop": (session_on(late(), **OWN), "fail"),
        "in doubt": (session_on(late(), **SLOWED), ("informative", XLA)),
    },
)
test_a_session_tries_to_run_less_python_between_steps = decides(
    PYTHON_GAP,
    {
        "Python": (session_on(LOGGING), ("fail", SHARED)),
        "in doubt": (session_on(LOGGING, **SLOWED), ("informative", SHARED)),
    },
)


READS_BACK = gpu({"sync": 20.0})
test_a_session_tries_to_let_keras_read_results_less_often = decides(
    SYNC_POINT,
    {
        "Keras": (session_on(READS_BACK), ("fail", SHARED)),
        "already": (session_on(READS_BACK, **fit(steps_per_execution=8)), "fail"),
        "own loop": (session_on(READS_BACK, **OWN), "fail"),
        "in doubt": (session_on(READS_BACK, **SLOWED), ("informative", SHARED)),
        "own loop in doubt": (session_on(READS_BACK, **OWN, **SLOWED), "inconclusive"),
    },
)
