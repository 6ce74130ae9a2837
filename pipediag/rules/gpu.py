"""Accelerators: unused ones, copies to them, and their tensor cores."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial

from pipediag.facts.devices import accelerators, full_name, percent_of_span, worst
from pipediag.facts.limits import INPUT_GAPS, Threshold
from pipediag.facts.names import exact_time
from pipediag.rules.device_idle import UNTRIED, input_first_on, prefetched_to, without_idle
from pipediag.rules.model_edits import OWN_LOOP, PROFILE_ALONE, in_sixteen_bits
from pipediag.rules.rule import Rule
from pipediag.session.devices import DeviceActivity, DeviceCopies
from pipediag.session.findings import Finding
from pipediag.session.model import Environment, Session
from pipediag.session.trials import WORTHWHILE
from pipediag.vocabulary import Framework, Policy

_CAPABILITY = re.compile(r"compute capability (\d+)\.\d+")
_NVIDIA = re.compile(r"NVIDIA|Tesla|Quadro|GeForce|TITAN|RTX", re.IGNORECASE)


def sixteen_bit_policy(model: str | None) -> Policy | None:
    """Return the Keras policy for the tensor cores, `none` without any, None if not known.

    Tensor cores came with compute capability 7.0, those for bfloat16 with 8.0.
    """
    told = _CAPABILITY.search(model or "")
    if model is None or told is None:
        return None
    major = int(told.group(1))
    if major >= 9 and not _NVIDIA.search(model):
        return None
    # GTX 16 has no tensor cores in spite of its capability of 7.5.
    if major < 7 or "GTX" in model:
        return "none"
    return "mixed_bfloat16" if major >= 8 else "mixed_float16"


GPU_UNUSED = Rule(
    id="gpu-unused",
    title="Let TensorFlow see the GPU",
    why="All measurements describe training on the CPU, so this comes before other advice.",
    fix="Install the GPU build or its libraries, or stop hiding the GPU. Results differ in the "
    "last digits; a very small model may run no faster.",
    needs=(),
    severity="error",
    effect="same up to order or rounding",
    subject="precondition",
    untried="TensorFlow can't add a device while it is running.",
)
_HIDING = {"", "-1", "NoDevFiles", "none", "void"}
_MARKS = (
    *("dlopen", "could not load dynamic library", "cannot open shared object", "libcu"),
    *("cuinit", "could not find cuda drivers", "driver version is insufficient"),
)
"""Parts of TensorFlow's messages on a driver or a library that it can't use."""


@GPU_UNUSED.found_by
def _check_gpu_unused(session: Session) -> Iterator[Finding]:
    environment = session.environment
    if not environment.gpu_installed or environment.tensorflow is None:
        return
    if any(device.kind.upper() == "GPU" for device in environment.devices):
        return
    yield GPU_UNUSED.finding(
        "fail",
        _unused_advice(environment),
        evidence={"gpu_installed": ", ".join(environment.gpu_installed)},
    )


def _unused_advice(environment: Environment) -> str:
    visible = environment.cuda_visible_devices
    if visible is not None and visible.strip() in _HIDING:
        return f"Unset CUDA_VISIBLE_DEVICES, or set it to 0: '{visible}' hides every GPU."
    if environment.keras_backend == "jax":
        return "Install JAX's GPU plugin: `pip install 'jax[cuda12]'`."
    if environment.cuda_build is False:
        return (
            "Install a GPU build: `pip install 'tensorflow[and-cuda]'`. This TensorFlow is "
            "CPU-only."
        )
    logged = (one.strip() for one in environment.framework_messages)
    message = next((one for one in logged if any(mark in one.lower() for mark in _MARKS)), None)
    if message is not None:
        return (
            "Run `nvidia-smi`, and install or update the driver if it fails; else install the "
            "libraries with `pip install 'tensorflow[and-cuda]'`: TensorFlow can't use the GPU (it "
            f"logged: {message})."
        )
    return (
        "Look for `tf.config.set_visible_devices([], 'GPU')` in the script, and run `pipediag "
        "doctor`: TensorFlow was built with CUDA and logged no missing library."
    )


EXPOSED = Threshold("copies while no kernel runs", 5.0, "% of the device's span", "XProf: moderate")
EXPOSED_HOST_COPY = Rule(
    id="exposed-host-copy",
    title="Copy batches to the device ahead of the step",
    why="Kernels have to wait for a batch that is copied only when its step begins.",
    fix='End the pipeline with `.apply(tf.data.experimental.prefetch_to_device("/GPU:0"))`, which '
    "takes device memory for a batch or two. Use narrower types (int32 ids, uint8 images).",
    needs=("devices",),
    thresholds=(EXPOSED, INPUT_GAPS),
    frees=("device_copy",),
)
_AHEAD = (
    'End the pipeline with `.apply(tf.data.experimental.prefetch_to_device("/GPU:0"))`, and copy '
    "narrower types:"
)


@EXPOSED_HOST_COPY.found_on_devices_by
def _check_exposed_host_copy(
    devices: Sequence[DeviceActivity], framework: Framework, session: Session | None
) -> Iterator[Finding]:
    device = worst(accelerators(devices), _exposed_percent)
    copies = _from_host(device) if device is not None else None
    if device is None or copies is None or _exposed_percent(device) < EXPOSED.value:
        return
    hidden_ms = min(copies.exposed_ms, device.span_ms - copies.ms)
    yield EXPOSED_HOST_COPY.finding(
        "fail",
        f"{EXPOSED_HOST_COPY.advice_for(framework, _AHEAD)} {full_name(device)} computes nothing "
        f"for {exact_time(copies.exposed_ms)} while batches are copied to it.",
        unless=input_first_on(device),
        evidence={
            "exposed_copies_percent_of_span": _exposed_percent(device),
            "exposed_copies_ms": copies.exposed_ms,
            "copies_bytes": copies.bytes,
            "copies_gb_per_s": copies.gb_per_s,
        },
        speedup_at_most=without_idle(device, max(0.0, hidden_ms)),
        edit=prefetched_to(session, device, EXPOSED_HOST_COPY.id),
        untried=PROFILE_ALONE if session is None else UNTRIED,
    )


def _from_host(device: DeviceActivity) -> DeviceCopies | None:
    return next((each for each in device.copies if each.direction == "host_to_device"), None)


def _exposed_percent(device: DeviceActivity) -> float:
    copies = _from_host(device)
    return percent_of_span(device, copies.exposed_ms if copies else 0.0)


MATMUL = Threshold("matrix products", 20.0, "% of the busy time", "own choice: under 1.12x")
TENSOR_CORE = Threshold("products on tensor cores", 10.0, "%", "XProf advises 16 bits under 10 %")
MIXED_PRECISION = Rule(
    id="mixed-precision",
    title="Use mixed precision",
    why="Tensor cores are several times as fast on 16-bit matrices as other cores on 32-bit ones.",
    fix='Use `keras.mixed_precision.set_global_policy("mixed_bfloat16")` from compute capability '
    '8.0 on, otherwise `"mixed_float16"`, which needs loss scaling. Choose sizes that are '
    "multiples of 8. Every product is rounded, so validate the accuracy.",
    needs=("devices",),
    thresholds=(MATMUL, TENSOR_CORE, INPUT_GAPS),
    severity="info",
    effect="changes a hyper-parameter",
    untried=OWN_LOOP,
)


@MIXED_PRECISION.found_on_devices_by
def _check_mixed_precision(
    devices: Sequence[DeviceActivity], framework: Framework, session: Session | None
) -> Iterator[Finding]:
    """Yield a finding on the accelerator with the most time in products without tensor cores.

    A script that sets a policy for 16 bits is given advice on shapes instead.
    """
    gpus = accelerators(devices)
    known = [one for one in gpus if one.matmul_ms is not None and one.tensor_core_ms is not None]
    device = worst(known, lambda each: _plain_ms(each) / each.span_ms)
    if device is None:
        if gpus:
            reason = "The profile does not show which kernels are matrix products."
            yield MIXED_PRECISION.finding("inconclusive", reason)
        return
    products_ms, cores_ms = device.matmul_ms or 0.0, device.tensor_core_ms or 0.0
    products = 100.0 * products_ms / device.busy_ms if device.busy_ms else 0.0
    cores = 100.0 * cores_ms / products_ms if products_ms else 0.0
    finding = partial(
        MIXED_PRECISION.finding,
        evidence={
            "device": full_name(device),
            "matrix_products_percent_of_busy_time": products,
            "on_tensor_cores_percent_of_matrix_products": cores,
        },
    )
    # In half the time, as the others.
    at_most = without_idle(device, _plain_ms(device) / 2.0)
    matters = products >= MATMUL.value and cores < TENSOR_CORE.value
    fitting = sixteen_bit_policy(device.model)
    worth_it = matters or (session is not None and (at_most or 0.0) >= WORTHWHILE)
    if not worth_it or fitting == "none":
        return
    if fitting is None:
        unknown = f"It is not known whether {device.model or 'this device'} has tensor cores."
        yield finding("inconclusive", unknown)
        return
    policy = session.environment.mixed_precision if session is not None else None
    if policy is not None and policy.startswith("mixed_"):
        shapes = "look for sizes that are not multiples of 8, and for layers kept in float32."
        yield finding("informative", f"The policy is already {policy}: {shapes}")
        return
    waits = input_first_on(device)
    how = (
        f"Try `keras.mixed_precision.set_global_policy('{fitting}')` before the model is built, "
        'with `dtype="float32"` for the last layer'
    )
    how += ", and scale the loss in your own loop" if fitting == "mixed_float16" else ""
    advice = MIXED_PRECISION.advice_for(framework, f"{how}.")
    yield finding(
        "informative" if waits or not matters else "fail",
        waits
        or f"{advice} Validate the accuracy: products are rounded to 16 bits. Sizes "
        "that are multiples of 8 fit the tensor cores.",
        speedup_at_most=at_most,
        edit=None if session is None else in_sixteen_bits(session, MIXED_PRECISION.id, fitting),
        untried=PROFILE_ALONE if session is None else None,
    )


def _plain_ms(device: DeviceActivity) -> float:
    """Return the time in products without tensor cores, at most the busy time."""
    plain = (device.matmul_ms or 0.0) - (device.tensor_core_ms or 0.0)
    return min(max(0.0, plain), device.busy_ms)
