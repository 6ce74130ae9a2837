"""A GPU that is unused or idle, by what the host did meanwhile, copies to it, and tensor cores.

Waits for input and for Python hold for a CPU too, whose executor's operations stand for a device.
Launches and waits for results are judged on accelerators only.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import partial

from pipediag.facts.devices import (
    accelerators,
    cause_percent,
    full_name,
    held_up,
    idle_evidence,
    longest_doing,
    percent_of_span,
)
from pipediag.facts.limits import INPUT_GAPS, INPUT_WAIT, PERTURBED, Threshold
from pipediag.facts.names import exact_time
from pipediag.facts.pipeline import last_operation
from pipediag.facts.step import ceiling
from pipediag.rules.model_edits import (
    NO_MODEL_EDIT,
    OWN_LOOP,
    PROFILE_ALONE,
    STEPS_PER_CALL,
    compiled_by_xla,
    condition_of,
    in_sixteen_bits,
    several_steps_a_call,
)
from pipediag.rules.relevance import weigh_input
from pipediag.rules.rule import Profile, Rule
from pipediag.session.devices import DeviceActivity, DeviceCopies
from pipediag.session.edits import Edit, Insert
from pipediag.session.findings import Finding
from pipediag.session.model import Environment, Session
from pipediag.session.trials import WORTHWHILE
from pipediag.vocabulary import GapCause, SixteenBitPolicy

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


@GPU_UNUSED.found_by
def _check_gpu_unused(session: Session) -> Iterator[Finding]:
    environment = session.environment
    if not environment.gpu_installed or environment.tensorflow is None:
        return
    if not any(device.kind.upper() == "GPU" for device in environment.devices):
        evidence = {"gpu_installed": ", ".join(environment.gpu_installed)}
        yield GPU_UNUSED.finding("fail", _unused_advice(environment), evidence=evidence)


def _unused_advice(environment: Environment) -> str:
    visible = environment.cuda_visible_devices
    if visible is not None and visible.strip() in _HIDING:
        return f"Unset CUDA_VISIBLE_DEVICES, or set it to 0: '{visible}' hides every GPU."
    if environment.keras_backend == "jax":
        return "Install JAX's GPU plugin: `pip install 'jax[cuda12]'`."
    if environment.cuda_build is False:
        return "Install a GPU build (`pip install 'tensorflow[and-cuda]'`): this one is CPU-only."
    return (
        "Run `nvidia-smi`, and install or update the driver if it fails; else install what "
        "TensorFlow's log calls missing with `pip install 'tensorflow[and-cuda]'`. Where it calls "
        "nothing so, look for `tf.config.set_visible_devices([], 'GPU')` in the script."
    )


_OF_SPAN = "% of the device's span"
INPUT_IDLE = Threshold("waiting for input", INPUT_WAIT.value, _OF_SPAN, "XProf: moderate from 5 %")
LAUNCH_IDLE = Threshold("waiting for launches", 15.0, _OF_SPAN, "XProf: over 15 % is high")
SYNC_IDLE = Threshold("idle after a read-back", 5.0, _OF_SPAN, "XProf: moderate from 5 %")
PYTHON_IDLE = Threshold("idle during Python", 15.0, _OF_SPAN, "XProf: over 15 % is high")
ONE_PAUSE = Threshold("longest gap", 50.0, "% of the idle time during Python", "own choice")
_idle_rule = partial(Rule, id="device-idle", needs=("devices",), sees_class_only=True)


def input_first_on(device: DeviceActivity) -> str | None:
    """Return why time saved on the host would be waited away on this device, or None."""
    percent = cause_percent(device, "input")
    if percent < INPUT_GAPS.value:
        return None
    return (
        f"The device waits for input {percent:.0f} % of the time, and time saved elsewhere would "
        "only lengthen that wait. Fix the input first."
    )


def without_idle(device: DeviceActivity, saved_ms: float) -> float | None:
    """Return the span over the span without `saved_ms` of it, by Amdahl's law."""
    left = device.span_ms - saved_ms
    return round(max(1.0, device.span_ms / left), 3) if left > 0 else None


def prefetched_to(session: Session | None, device: DeviceActivity, rule: str) -> Edit | None:
    """Return `prefetch_to_device` after everything else; None without a pipeline.

    None too under a strategy, which copies to each of its devices by itself.
    """
    if session is None:
        return None
    loop, last = session.diagnosed_loop(), last_operation(session)
    if loop is None or loop.kind == "distributed" or loop.replicas > 1 or last is None:
        return None
    gpus = [one.name for one in session.environment.devices if one.kind.upper() == "GPU"]
    # The driver's number may be another one than TensorFlow's.
    number = re.search(r"\d+$", gpus[0] if len(gpus) == 1 else device.name)
    name = f"/gpu:{number.group() if number else 0}"
    label = f"prefetch_to_device({name}) at the end of the pipeline"
    return Edit(rule, label, (Insert(last.id, "prefetch_to_device", {"device": name}),))


def _of_cause(
    rule: Rule,
    profile: Profile,
    cause: GapCause,
    limit: Threshold,
    *,
    advice: str | None = None,
    edit: Edit | None = None,
    informs: str | None = None,
) -> Iterator[Finding]:
    """Yield the finding on the device that is idle longest for one cause, as far as that matters.

    The profiler lengthens what the host does and hardly what a kernel takes, so it makes gaps:
    where it slowed the steps much, a failure is in doubt. Its edit is tried all the same.
    """
    device, session = _idlest(profile, cause), profile.session
    if device is None or cause_percent(device, cause) < limit.value:
        return
    perturbed = session.perturbation if session is not None else None
    ratio = (perturbed.ratio if perturbed is not None else None) or 1.0
    doing, percent = longest_doing(device, cause), cause_percent(device, cause)
    numbers = {**idle_evidence(device, cause), "host_in": doing and doing[0]}
    finding = partial(
        rule.finding, evidence=numbers, edit=edit, condition=condition_of(session, edit)
    )
    if informs := input_first_on(device) or informs:
        yield finding("informative", informs)
    elif ratio >= PERTURBED.value:
        doubt = (
            f"The profiler made steps {ratio:.1f}x as long, so the host may be faster without it."
        )
        yield finding("informative" if edit else "inconclusive", doubt)
    else:
        meanwhile = f" Meanwhile, the host is mostly in `{doing[0]}`." if doing else ""
        yield finding(
            "fail",
            f"{rule.advice_for(profile, advice)} {full_name(device)} is idle "
            f"{percent:.0f} % of the time for this.{meanwhile}",
            speedup_at_most=without_idle(device, device.causes_ms.get(cause, 0.0)),
            untried=rule.untried or (PROFILE_ALONE if session is None else NO_MODEL_EDIT),
        )


def _idlest(profile: Profile, cause: GapCause) -> DeviceActivity | None:
    """Return the device that is idle for most of its time: one finding speaks for all of them."""
    able = accelerators(profile.devices)
    if not able and cause in ("input", "python"):
        # CPUs whose executors stand for a device.
        able = [device for device in profile.devices if device.span_ms > 0]
    return max(able, key=lambda each: cause_percent(each, cause), default=None)


# Input

INPUT_GAP = _idle_rule(
    title="Have batches ready before the device needs them",
    why="A kernel can't run before its batch has arrived.",
    fix="Try `num_parallel_calls=tf.data.AUTOTUNE` on `map` and `interleave`, reading files in "
    "parallel, and `.cache()`.",
    thresholds=(INPUT_IDLE,),
    frees=("input_wait",),
)


@INPUT_GAP.found_on_devices_by
def _check_input_gap(profile: Profile) -> Iterator[Finding]:
    device, session = _idlest(profile, "input"), profile.session
    if device is None or cause_percent(device, "input") < INPUT_IDLE.value:
        return
    # The operation that worked longest in the gaps, as far as it is known.
    spent: dict[tuple[str | None, str | None, int | None], float] = defaultdict(float)
    for gap, ms in held_up(device, "input"):
        if gap.op_id or gap.file:
            spent[gap.op_id, gap.file, gap.line] += ms
    op_id, file, line = max(spent, key=lambda one: spent[one], default=(None, None, None))
    percent = cause_percent(device, "input")
    waits = f"{full_name(device)} waits for input {percent:.0f} % of the time."
    advice = f"{INPUT_GAP.advice_for(profile)} {waits}"
    at_most = without_idle(device, device.causes_ms.get("input", 0.0))
    edit = None
    if accelerators(profile.devices):
        edit = prefetched_to(session, device, f"{INPUT_GAP.id}:prefetch")
    finding = partial(
        INPUT_GAP.finding,
        op_id=op_id,
        place=(file, line),
        evidence=idle_evidence(device, "input"),
        untried="Changes that would help are tried with the findings on the pipeline."
        if session is not None
        else PROFILE_ALONE,
    )
    if session is None or session.breakdown is None:
        yield finding("fail", advice, speedup_at_most=at_most, edit=edit)
        return
    # Where steps without the profiler hardly wait for input, it only informs.
    weight, free = weigh_input(session), ceiling(session)
    yield finding(
        weight.status,
        weight.before(advice),
        weight=weight,
        speedup_at_most=None if free is None or at_most is None else min(at_most, free),
        edit=edit,
    )


# Launches

LAUNCH_BOUND = _idle_rule(
    title="Launch fewer, larger kernels",
    why="A device that finishes kernels faster than the host launches them, which takes it some "
    "microseconds each, runs at the host's pace.",
    fix="Fuse kernels with `compile(..., jit_compile=True)`, or `@tf.function(jit_compile=True)` "
    "on the step, which compiles once for each shape and changes the last digits. A larger batch "
    "makes each kernel longer.",
    thresholds=(LAUNCH_IDLE, INPUT_GAPS, PERTURBED),
    effect="same up to order or rounding",
    frees=("dispatch",),
)


@LAUNCH_BOUND.found_on_devices_by
def _check_launch_bound(profile: Profile) -> Iterator[Finding]:
    edit = compiled_by_xla(profile.session, f"{LAUNCH_BOUND.id}:xla")
    edit = edit or several_steps_a_call(profile.session, f"{LAUNCH_BOUND.id}:steps")
    return _of_cause(LAUNCH_BOUND, profile, "launch", LAUNCH_IDLE, edit=edit)


# Results that are waited for, and Python

SYNC_POINT = _idle_rule(
    title="Read results less often than every step",
    why="Reading a value waits until the device has computed it; nothing is launched meanwhile.",
    fix="Don't read loss or metrics in every step (`.numpy()`, `float(loss)`, `print`): update a "
    "`keras.metrics.Mean`, and call `.result()` every hundredth step.",
    thresholds=(SYNC_IDLE, INPUT_GAPS, PERTURBED),
    frees=("device_wait",),
    untried="The lines that read results have to be changed in your code.",
)


@SYNC_POINT.found_on_devices_by
def _check_sync_point(profile: Profile) -> Iterator[Finding]:
    edit = several_steps_a_call(profile.session, f"{SYNC_POINT.id}:steps")
    each = (
        f"Compile with `steps_per_execution={STEPS_PER_CALL}`: Keras reads results after each call."
    )
    advice = each if edit is not None else None
    return _of_cause(SYNC_POINT, profile, "sync", SYNC_IDLE, advice=advice, edit=edit)


PYTHON_GAP = _idle_rule(
    title="Run less Python between steps",
    why="Callbacks, logging and metrics run between two steps; nothing is launched meanwhile.",
    fix="Log and evaluate metrics every hundredth step, or in another thread; `compile(..., "
    "steps_per_execution=16)` starts steps and calls callbacks once every 16 steps.",
    thresholds=(PYTHON_IDLE, ONE_PAUSE, INPUT_GAPS, PERTURBED),
    frees=("python",),
)


@PYTHON_GAP.found_on_devices_by
def _check_python_gap(profile: Profile) -> Iterator[Finding]:
    edit = several_steps_a_call(profile.session, f"{PYTHON_GAP.id}:steps")
    pause = _one_pause(_idlest(profile, "python"))
    return _of_cause(PYTHON_GAP, profile, "python", PYTHON_IDLE, edit=edit, informs=pause)


def _one_pause(device: DeviceActivity | None) -> str | None:
    parts = held_up(device, "python") if device is not None else []
    gap, ms = max(parts, key=lambda part: part[1], default=(None, 0.0))
    if device is None or gap is None:
        return None
    if 100.0 * ms < ONE_PAUSE.value * device.causes_ms.get("python", 0.0):
        return None
    what = f" (`{gap.doing.removeprefix('$')}`)" if gap.doing else ""
    return (
        f"Most of it is one pause of {exact_time(ms)}{what}. How much it matters depends on how "
        "often it happens, which this profile can't show."
    )


# Copies, and products in 16 bits

EXPOSED = Threshold("copies while no kernel runs", 5.0, "% of the device's span", "XProf: moderate")
EXPOSED_HOST_COPY = Rule(
    id="exposed-host-copy",
    title="Copy batches to the device ahead of the step",
    why="Kernels have to wait for a batch that is copied only when its step begins.",
    fix='End the pipeline with `.apply(tf.data.experimental.prefetch_to_device("/GPU:0"))`, which '
    "takes memory for a batch or two, and copy narrower types (int32 ids, uint8 images).",
    needs=("devices",),
    thresholds=(EXPOSED, INPUT_GAPS),
    frees=("device_copy",),
    untried="No tf.data pipeline feeds a single device: batches can't be copied to it ahead.",
)


@EXPOSED_HOST_COPY.found_on_devices_by
def _check_exposed_host_copy(profile: Profile) -> Iterator[Finding]:
    able, session = accelerators(profile.devices), profile.session
    device = max(able, key=_exposed_percent, default=None)
    copies = _from_host(device) if device is not None else None
    if device is None or copies is None or _exposed_percent(device) < EXPOSED.value:
        return
    hidden_ms = min(copies.exposed_ms, device.span_ms - copies.ms)
    yield EXPOSED_HOST_COPY.finding(
        "fail",
        f"{EXPOSED_HOST_COPY.advice_for(profile)} {full_name(device)} computes nothing for "
        f"{exact_time(copies.exposed_ms)} while batches are copied to it.",
        unless=input_first_on(device),
        evidence={
            "exposed_copies_percent_of_span": _exposed_percent(device),
            "exposed_copies_ms": copies.exposed_ms,
        },
        speedup_at_most=without_idle(device, max(0.0, hidden_ms)),
        edit=prefetched_to(session, device, EXPOSED_HOST_COPY.id),
        untried=PROFILE_ALONE if session is None else None,
    )


def _from_host(device: DeviceActivity) -> DeviceCopies | None:
    return next((each for each in device.copies if each.direction == "host_to_device"), None)


def _exposed_percent(device: DeviceActivity) -> float:
    copies = _from_host(device)
    return percent_of_span(device, copies.exposed_ms if copies else 0.0)


MATMUL = Threshold("matrix products", 20.0, "% of the busy time", "own choice: under 1.25x")
IN_SIXTEEN = Threshold("products in 16 bits", 10.0, "%", "XProf advises 16 bits under 10 %")
MIXED_PRECISION = Rule(
    id="mixed-precision",
    title="Use mixed precision",
    why="Tensor cores are several times as fast on 16-bit matrices as other cores on 32-bit ones, "
    "and twice as fast as on TensorFloat-32 (TF32), the default of Ampere and later GPUs.",
    fix='Use `keras.mixed_precision.set_global_policy("mixed_bfloat16")` from compute capability '
    '8.0 on, otherwise `"mixed_float16"` with loss scaling, and sizes that are multiples of 8. '
    "Every product is rounded, so validate the accuracy.",
    needs=("devices",),
    thresholds=(MATMUL, IN_SIXTEEN, INPUT_GAPS),
    severity="info",
    effect="changes a hyper-parameter",
    untried=OWN_LOOP,
)


@MIXED_PRECISION.found_on_devices_by
def _check_mixed_precision(profile: Profile) -> Iterator[Finding]:
    """Yield a finding on the accelerator with the most time in products that are not in 16 bits.

    It only informs where these are in TF32 on tensor cores. A script that sets a policy for 16 bits
    is given advice on shapes instead.
    """
    gpus, session = accelerators(profile.devices), profile.session
    known = [one for one in gpus if one.matmul_ms is not None and one.tensor_core_ms is not None]
    device = max(known, key=lambda each: _wide_ms(each) / each.span_ms, default=None)
    if device is None:
        return
    products_ms, wide_ms = device.matmul_ms or 0.0, _wide_ms(device)
    plain_ms = max(0.0, wide_ms - (device.tf32_ms or 0.0))
    busy_ms = device.busy_ms or math.inf
    products, plain = 100.0 * products_ms / busy_ms, 100.0 * plain_ms / busy_ms
    in_sixteen = 100.0 * _in_sixteen_ms(device) / products_ms if products_ms else 0.0
    finding = partial(
        MIXED_PRECISION.finding,
        evidence={
            "device": full_name(device),
            "matrix_products_percent_of_busy_time": products,
            "in_16_bits_percent_of_matrix_products": in_sixteen,
        },
    )
    # Tensor cores are up to sixteen times as fast as others; all else has half the bytes at best.
    at_most = without_idle(device, (device.busy_ms + plain_ms) / 2.0)
    matters = products >= MATMUL.value and in_sixteen < IN_SIXTEEN.value
    fitting = sixteen_bit_policy(device.model)
    policy = (session.environment.mixed_precision if session is not None else None) or ""
    gained = without_idle(device, wide_ms)
    worth_it = matters or (session is not None and (gained is None or gained >= WORTHWHILE))
    if not worth_it or fitting is None:
        return
    if policy.startswith("mixed_"):
        shapes = "look for sizes that are not multiples of 8, and for layers kept in float32."
        yield finding("informative", f"The policy is already {policy}: {shapes}")
        return
    waits = input_first_on(device)
    scaled = ", and scale the loss in your own loop" if fitting == "mixed_float16" else ""
    advice = MIXED_PRECISION.advice_for(
        profile,
        f"Try `keras.mixed_precision.set_global_policy('{fitting}')` before the model is built, "
        f'with `dtype="float32"` for the last layer{scaled}.',
    )
    yield finding(
        "informative" if waits or not matters or plain < MATMUL.value else "fail",
        waits or f"{advice} Validate the accuracy: products are rounded to 16 bits.",
        speedup_at_most=at_most,
        edit=in_sixteen_bits(session, MIXED_PRECISION.id, fitting),
        untried=PROFILE_ALONE if session is None else None,
    )


def _in_sixteen_ms(device: DeviceActivity) -> float:
    return (device.tensor_core_ms or 0.0) - (device.tf32_ms or 0.0)


def _wide_ms(device: DeviceActivity) -> float:
    """Return the time in products that are not in 16 bits, at most the busy time."""
    return min(max(0.0, (device.matmul_ms or 0.0) - _in_sixteen_ms(device)), device.busy_ms)


_CAPABILITY = re.compile(r"compute capability (\d+)\.\d+")
_NVIDIA = re.compile(r"NVIDIA|Tesla|Quadro|GeForce|TITAN|RTX", re.IGNORECASE)


def sixteen_bit_policy(model: str | None) -> SixteenBitPolicy | None:
    """Return the Keras policy for the tensor cores; None without any, or where that is not known.

    Tensor cores came with compute capability 7.0, those for bfloat16 with 8.0.
    """
    told = _CAPABILITY.search(model or "")
    if model is None or told is None:
        return None
    major = int(told.group(1))
    # GTX 16 has no tensor cores in spite of its capability of 7.5.
    if major < 7 or "GTX" in model or (major >= 9 and not _NVIDIA.search(model)):
        return None
    return "mixed_bfloat16" if major >= 8 else "mixed_float16"
