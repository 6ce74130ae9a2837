"""Accelerators: unused ones, copies to them, their tensor cores, and one that others wait for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from statistics import fmean, median

from pipediag.facts.devices import NO_ACCELERATOR, accelerators, full_name, percent_of_span, worst
from pipediag.facts.limits import INPUT_GAPS, Threshold
from pipediag.facts.names import exact_time
from pipediag.rules.device_idle import UNTRIED, input_first_on, prefetched_to, without_idle
from pipediag.rules.model_edits import OWN_LOOP, PROFILE_ALONE, in_sixteen_bits
from pipediag.rules.rule import Meta
from pipediag.session.devices import DeviceActivity, DeviceCopies
from pipediag.session.findings import Finding
from pipediag.session.model import Environment, Session
from pipediag.session.trials import WORTHWHILE
from pipediag.vocabulary import Framework, Policy

_CAPABILITY = re.compile(r"compute capability (\d+)\.\d+")
_NVIDIA = re.compile(r"NVIDIA|Tesla|Quadro|GeForce|TITAN|RTX", re.IGNORECASE)
_AMD = re.compile(r"AMD|Radeon|Instinct", re.IGNORECASE)
_NO_TENSOR_CORES = re.compile(r"\b[KMP]\d{1,4}\b|GTX|\bMX\d|TITAN X", re.IGNORECASE)
"""GTX 16 has none in spite of its capability of 7.5."""
_GENERATIONS = (
    (re.compile(r"\b(H[12]00|H800|H20|GH200|G?B[123]00)\b|RTX (50|PRO)"), 9),
    (re.compile(r"\b(A2|A1[06]G?|A30|A40|A[18]00|L4|L40S?|L20)\b|RTX ([34]0|A\d)|Ada\b"), 8),
    (re.compile(r"\b(V100|GV100|T4G?|TITAN (V|RTX))\b|RTX 20|Quadro RTX", re.IGNORECASE), 7),
    (_NO_TENSOR_CORES, 6),
)
"""Major compute capability by name, 9 for all later ones too."""


def sixteen_bit_policy(model: str | None) -> Policy | None:
    """Return the Keras policy for the tensor cores; `none` without any, None if not known.

    Tensor cores from compute capability 7.0 on, as Keras' own check has it; bfloat16 from 8.0 on.
    """
    major = _major(model)
    if major is None:
        return None
    if major < 7 or _NO_TENSOR_CORES.search(model or ""):
        return "none"
    return "mixed_bfloat16" if major >= 8 else "mixed_float16"


def _major(model: str | None) -> int | None:
    if model is None or _AMD.search(model):
        return None
    named = next((major for pattern, major in _GENERATIONS if pattern.search(model)), None)
    told = _CAPABILITY.search(model)
    if named is not None or told is None:
        return named
    major = int(told.group(1))
    return major if major < 9 or _NVIDIA.search(model) else None


GPU_UNUSED = Meta(
    id="gpu-unused",
    name="Unused GPU",
    title_failed="Let TensorFlow see the GPU",
    title_passed="TensorFlow sees the GPU",
    why="All that is measured describes training on the CPU, so this comes before other advice.",
    edit="Install the GPU build or its libraries, or stop hiding the GPU.",
    cost="Results differ in the last digits; a very small model may run no faster.",
    needs=(),
    severity="error",
    effect_on_results="same up to order or rounding",
    subject="precondition",
    untried="TensorFlow can't gain a device while it runs.",
)
_HIDING = {"", "-1", "NoDevFiles", "none", "void"}
_LIBRARY_MARKS = ("dlopen", "could not load dynamic library", "cannot open shared object", "libcu")
_DRIVER_MARKS = ("cuinit", "could not find cuda drivers", "driver version is insufficient")


def check_gpu_unused(session: Session) -> list[Finding]:
    """Return a finding on the machine as a whole."""
    environment = session.environment
    if not environment.gpu_installed:
        return [GPU_UNUSED.finding("not-applicable", "No GPU is installed in this machine.")]
    if environment.tensorflow is None:
        return [GPU_UNUSED.finding("not-applicable", "The script did not import TensorFlow.")]
    if any(device.kind.upper() == "GPU" for device in environment.devices):
        return []
    return [
        GPU_UNUSED.finding(
            "fail",
            _unused_advice(environment),
            evidence={
                "gpu_installed": ", ".join(environment.gpu_installed),
                "cuda_build": environment.cuda_build,
                "cuda_visible_devices": environment.cuda_visible_devices,
                "framework_message": _message(environment, _LIBRARY_MARKS + _DRIVER_MARKS),
            },
        )
    ]


def _unused_advice(environment: Environment) -> str:
    visible = environment.cuda_visible_devices
    if visible is not None and visible.strip() in _HIDING:
        return (
            f"CUDA_VISIBLE_DEVICES is '{visible}', which hides each GPU: unset it, or set it to 0."
        )
    if environment.keras_backend == "jax":
        return "JAX runs without its GPU plugin: `pip install 'jax[cuda12]'`."
    if environment.cuda_build is False:
        return "This TensorFlow is a CPU-only build: `pip install 'tensorflow[and-cuda]'`."
    if driver := _message(environment, _DRIVER_MARKS):
        return (
            "Run `nvidia-smi`, and install or update the driver if it fails: TensorFlow can't "
            f"reach it (it logged: {driver})."
        )
    if library := _message(environment, _LIBRARY_MARKS):
        return (
            "Install the GPU libraries, `pip install 'tensorflow[and-cuda]'`: TensorFlow can't "
            f"load them (it logged: {library})."
        )
    return (
        "TensorFlow was built with CUDA and logged no missing library: look for "
        "`tf.config.set_visible_devices([], 'GPU')` in the script, and run `pipediag doctor`."
    )


def _message(environment: Environment, marks: tuple[str, ...]) -> str | None:
    messages = environment.framework_messages
    marked = (one.strip() for one in messages if any(mark in one.lower() for mark in marks))
    return next(marked, None)


EXPOSED = Threshold(
    "copies while no kernel runs", 5.0, "% of the device's span", "XProf calls 5 % moderate"
)
EXPOSED_HOST_COPY = Meta(
    id="exposed-host-copy",
    name="Exposed copies from the host",
    title_failed="Copy batches to the device ahead of the step",
    title_passed="Copies to the device hide behind compute, or are short",
    why="A batch that is copied when its step begins makes the kernels wait.",
    edit='End the pipeline with `.apply(tf.data.experimental.prefetch_to_device("/GPU:0"))`; '
    "narrower types (int32 ids, uint8 images cast on the device).",
    cost="A batch or two of device memory. prefetch_to_device comes last and serves one device.",
    needs=("devices",),
    thresholds=(EXPOSED, INPUT_GAPS),
    frees=("device_copy",),
    tried_when_informing=True,
)
_AHEAD: Mapping[Framework, str] = {
    "tensorflow": "end the pipeline with `.apply(tf.data.experimental.prefetch_to_device("
    '"/GPU:0"))`',
    "jax": "call `jax.device_put` on the next batch before the step is waited for, or let "
    "`flax.jax_utils.prefetch_to_device` do it",
    "pytorch": "give the DataLoader `pin_memory=True` and copy the next batch with "
    "`.to(device, non_blocking=True)` on a stream of its own",
}


def check_exposed_host_copy(
    devices: Sequence[DeviceActivity], framework: Framework, session: Session | None
) -> list[Finding]:
    """Return a finding on the accelerator that waits longest for copies from the host."""
    device = worst(accelerators(devices), _exposed_percent)
    if device is None:
        return [EXPOSED_HOST_COPY.finding("not-applicable", NO_ACCELERATOR)]
    copies, percent, waits = _from_host(device), _exposed_percent(device), input_first_on(device)
    if copies is None:
        return [EXPOSED_HOST_COPY.finding("pass", evidence={"device": full_name(device)})]
    finding = partial(
        EXPOSED_HOST_COPY.finding,
        evidence={
            "device": full_name(device),
            "exposed_percent_of_span": percent,
            "exposed_ms": copies.exposed_ms,
            "copy_ms": copies.ms,
            "bytes": copies.bytes,
            "gb_per_s": copies.gb_per_s,
        },
    )
    if percent < EXPOSED.value:
        return [finding("pass")]
    edit = None if session is None else prefetched_to(session, device, EXPOSED_HOST_COPY.id)
    if waits:
        return [finding("informative", waits, edit=edit)]
    hidden_ms = min(copies.exposed_ms, device.span_ms - copies.ms)
    return [
        finding(
            "fail",
            f"{full_name(device)} computes nothing for {exact_time(copies.exposed_ms)} while "
            f"batches are copied to it: {_AHEAD[framework]}, so that they are copied during the "
            "step before. Copy narrower types: `int32` ids, `uint8` images that the model casts.",
            speedup_at_most=without_idle(device, max(0.0, hidden_ms)),
            edit=edit,
            untried=PROFILE_ALONE if session is None else UNTRIED,
        )
    ]


def _from_host(device: DeviceActivity) -> DeviceCopies | None:
    return next((each for each in device.copies if each.direction == "host_to_device"), None)


def _exposed_percent(device: DeviceActivity) -> float:
    copies = _from_host(device)
    return percent_of_span(device, copies.exposed_ms if copies else 0.0)


MATMUL = Threshold(
    "matrix products", 20.0, "% of the busy time", "own choice: less gains under 1.12 times"
)
TENSOR_CORE = Threshold(
    "those on tensor cores", 10.0, "% of the products", "XProf advises 16 bits under 10 %"
)
GAIN = Threshold(
    "upper bound of products in half the time", 1.05, "times", "own choice: worth a validation"
)
MIXED_PRECISION = Meta(
    id="mixed-precision",
    name="Mixed precision",
    title_failed="Compute matrix products in 16 bits",
    title_passed="Matrix products use tensor cores, or take little time",
    why="Tensor cores multiply 16-bit matrices several times as fast as other cores 32-bit ones.",
    edit='keras.mixed_precision.set_global_policy("mixed_bfloat16") from compute capability 8.0 '
    'on, else "mixed_float16"; sizes of layers in multiples of 8.',
    cost="Every product is rounded to 16 bits: validate accuracy. float16 needs loss scaling, and "
    "the last softmax stays in float32.",
    needs=("devices",),
    thresholds=(MATMUL, TENSOR_CORE, GAIN, INPUT_GAPS),
    severity="info",
    effect_on_results="changes a hyper-parameter",
    tried_when_informing=True,
    untried=OWN_LOOP,
)
FACTOR = 2.0
_SIXTEEN_BITS: Mapping[Framework, str] = {
    "tensorflow": "`keras.mixed_precision.set_global_policy('{policy}')` before the model is "
    'built, with `dtype="float32"` for the last layer{scaled}',
    "jax": "computing in `jnp.{dtype}` (`dtype=` of Flax' layers), with parameters and the last "
    "softmax in float32{scaled}",
    "pytorch": '`torch.autocast("cuda", dtype=torch.{dtype})` around the forward pass{scaled}',
}
_SCALED: Mapping[Framework, str] = {
    "tensorflow": " (a loop of your own needs LossScaleOptimizer)",
    "jax": " and the loss scaled",
    "pytorch": " with `torch.amp.GradScaler`",
}


def check_mixed_precision(
    devices: Sequence[DeviceActivity], framework: Framework, session: Session | None
) -> list[Finding]:
    """Return a finding on the accelerator with the most time in products without tensor cores.

    A script that sets a policy for 16 bits is told about shapes instead.
    """
    gpus = accelerators(devices)
    if not gpus:
        return [MIXED_PRECISION.finding("not-applicable", NO_ACCELERATOR)]
    told = [each for each in gpus if each.matmul_ms is not None and each.tensor_core_ms is not None]
    device = worst(told, lambda each: _plain_ms(each) / each.span_ms)
    if device is None:
        reason = "The profile does not tell which kernels are matrix products."
        return [MIXED_PRECISION.finding("inconclusive", reason)]
    products_ms, cores_ms = device.matmul_ms or 0.0, device.tensor_core_ms or 0.0
    products = 100.0 * products_ms / device.busy_ms if device.busy_ms else 0.0
    cores = 100.0 * cores_ms / products_ms if products_ms else 0.0
    savable_ms = _plain_ms(device) * (1 - 1 / FACTOR)
    policy = session.environment.mixed_precision if session is not None else None
    finding = partial(
        MIXED_PRECISION.finding,
        evidence={
            "device": full_name(device),
            "model": device.model,
            "matmul_percent_of_busy": products,
            "matmul_ms": device.matmul_ms,
            "tensor_core_ms": device.tensor_core_ms,
            "tensor_core_percent_of_matmul": cores,
            "idle_percent": device.idle_percent,
            "policy": policy,
        },
    )
    at_most = without_idle(device, savable_ms)
    matters = products >= MATMUL.value and cores < TENSOR_CORE.value
    if not matters and (session is None or (at_most or 0.0) < WORTHWHILE):
        return [finding("pass")]
    fitting = sixteen_bit_policy(device.model)
    if fitting is None or fitting == "none":
        unknown = f"Whether {device.model or 'this device'} has tensor cores is not known."
        none = f"{device.model} has no tensor cores."
        return [finding("not-applicable", none) if fitting else finding("inconclusive", unknown)]
    if policy is not None and policy.startswith("mixed_"):
        shapes = "look for sizes that are no multiple of 8, and for layers kept in float32."
        return [finding("informative", f"The policy is {policy} already: {shapes}")]
    edit = None if session is None else in_sixteen_bits(session, MIXED_PRECISION.id, fitting)
    waits, little = input_first_on(device), at_most is not None and at_most < GAIN.value
    idle = f"The device is idle {device.idle_percent:.0f} % of the time. " if little else ""
    informs = waits or little or not matters
    how = _SIXTEEN_BITS[framework].format(
        policy=fitting,
        dtype=fitting.removeprefix("mixed_"),
        scaled=_SCALED[framework] if fitting == "mixed_float16" else "",
    )
    return [
        finding(
            "informative" if informs else "fail",
            waits
            or f"{idle}Try {how}, and validate accuracy: products are rounded "
            "to 16 bits. Sizes in multiples of 8 fit the tensor cores.",
            speedup_at_most=at_most,
            edit=edit,
            untried=PROFILE_ALONE if session is None else None,
        )
    ]


def _plain_ms(device: DeviceActivity) -> float:
    """Return the time in products without tensor cores, at most the busy time."""
    plain = (device.matmul_ms or 0.0) - (device.tensor_core_ms or 0.0)
    return min(max(0.0, plain), device.busy_ms)


WAITING = Threshold(
    "time in which the others wait", 10.0, "% of the span", "XProf's rule on barriers"
)
Z_SCORE = Threshold(
    "modified z-score of its own time", 3.5, "times", "XProf's rule, after Iglewicz and Hoaglin"
)
RATIO = Threshold(
    "its own time over the others' median", 1.2, "times", "own choice, for two or equal others"
)
DEVICE_STRAGGLER = Meta(
    id="device-straggler",
    name="Straggling device",
    title_failed="Even out what the devices do, as all wait for the slowest",
    title_passed="No device keeps the others waiting",
    why="A collective ends when the last device joins it: the slowest one sets the pace of all.",
    edit="Even out what the devices get (shards, lengths of sequences, placement of tables), or "
    "repair what slows the one.",
    cost="Other shards mean another order of the data.",
    needs=("devices",),
    thresholds=(WAITING, Z_SCORE, RATIO),
    effect_on_results="same up to order or rounding",
    frees=("collective",),
    untried="A trial in this process can't change what each device gets.",
)
_REMEDIES = {
    "compute": "It computes longer: give each replica equal batches and lengths, and look for a "
    "throttled or shared GPU (`nvidia-smi -q -d PERFORMANCE`).",
    "input": "It waits longer for its own input: give every worker as many examples and CPUs.",
    "copy": "Its copies take longer: look at its PCIe link (`nvidia-smi topo -m`).",
}
_HOST_REMEDY = "Its host keeps it waiting: compare CPU load, CPU affinity and callbacks of workers."
_ALL_TRAIN: Mapping[Framework, str] = {
    "tensorflow": "`tf.distribute.MirroredStrategy`",
    "jax": "A batch split over them (`jax.sharding.NamedSharding`)",
    "pytorch": "`DistributedDataParallel`",
}


def check_device_straggler(
    devices: Sequence[DeviceActivity], framework: Framework, _: Session | None
) -> list[Finding]:
    """Return a finding on the accelerator that waits least for the others."""
    gpus = accelerators(devices)
    if len(gpus) < 2:
        reason = "Only one accelerator took part." if gpus else NO_ACCELERATOR
        return [DEVICE_STRAGGLER.finding("not-applicable", reason)]
    slow = min(gpus, key=_waiting_percent)
    others = [device for device in gpus if device is not slow]
    waiting = fmean(_waiting_percent(device) for device in others)
    excess = median(_own_percent(slow) - _own_percent(device) for device in others)
    score = _modified_z(slow, gpus)
    late = {} if slow.host_late_ms is None else {"host_begins_steps_late_ms": slow.host_late_ms}
    finding = partial(
        DEVICE_STRAGGLER.finding,
        evidence={
            "device": full_name(slow),
            "devices": len(gpus),
            "others_wait_percent_of_span": waiting,
            "device_waits_percent_of_span": _waiting_percent(slow),
            "modified_z_score": score,
            "works_longer_percent_of_span": excess,
            **late,
        },
    )
    if waiting < WAITING.value:
        return [finding("pass")]
    who = full_name(others[0]) if len(others) == 1 else "The others"
    s = "s" if len(others) == 1 else ""
    if not any(device.collective_ms for device in gpus):
        turns = (
            f"{who} pause{s} while {full_name(slow)} works, and no collective ran: parts of one "
            f"model that take turns, or devices that are not used. {_ALL_TRAIN[framework]} lets "
            "all of them train."
        )
        return [finding("informative", turns)]
    usual = median(_own_percent(device) for device in others)
    by_ratio = _own_percent(slow) >= RATIO.value * usual
    if not (by_ratio if score is None else score > Z_SCORE.value):
        advice = "They wait for each other alike: it is communication, and no single device."
        return [finding("informative", advice)]
    return [
        finding(
            "fail",
            f"{who} wait{s} {waiting:.0f} % of the time for {full_name(slow)}. "
            f"{_remedy(slow, others)}",
            speedup_at_most=round(100.0 / (100.0 - excess), 3) if excess < 100.0 else None,
        )
    ]


def _waiting_percent(device: DeviceActivity) -> float:
    gaps = device.causes_ms.get("collective", 0.0)
    return percent_of_span(device, gaps + (device.exposed_collective_ms or 0.0))


def _own_percent(device: DeviceActivity) -> float:
    return 100.0 - _waiting_percent(device)


def _modified_z(slow: DeviceActivity, gpus: Sequence[DeviceActivity]) -> float | None:
    """Return the score; None with two devices, or where more than half are exactly alike."""
    own = [_own_percent(device) for device in gpus]
    middle = median(own)
    spread = median(abs(each - middle) for each in own)
    if len(gpus) < 3 or spread == 0:
        return None
    return 0.6745 * (_own_percent(slow) - middle) / spread


def _parts(device: DeviceActivity) -> dict[str, float]:
    """Return the percent of the span by what the device did while it did not wait for others."""
    parts = {cause: percent_of_span(device, ms) for cause, ms in device.causes_ms.items()}
    parts.pop("collective", None)
    copies = percent_of_span(device, device.exposed_copy_ms)
    parts["copy"] = parts.get("copy", 0.0) + copies
    waiting = percent_of_span(device, device.exposed_collective_ms)
    return {**parts, "compute": device.busy_percent - waiting - copies}


def _remedy(slow: DeviceActivity, others: Sequence[DeviceActivity]) -> str:
    usual = [_parts(device) for device in others]
    longer = {
        part: percent - median(each.get(part, 0.0) for each in usual)
        for part, percent in _parts(slow).items()
    }
    return _REMEDIES.get(max(longer, key=lambda part: longer[part]), _HOST_REMEDY)
