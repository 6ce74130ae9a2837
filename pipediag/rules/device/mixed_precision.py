"""Matrix products on a GPU whose tensor cores stand idle.

It applies to accelerators only, and to models known to have tensor cores: what 16 bits do on a CPU
depends on instructions that a profile does not name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pipediag.facts.devices import NO_ACCELERATOR, accelerators, full_name, percent_of_span, worst
from pipediag.facts.limits import INPUT_GAPS, Threshold
from pipediag.rules.device.gpu_models import sixteen_bit_policy
from pipediag.rules.device.relevance import input_first_on, without_idle
from pipediag.rules.model_edits import OWN_LOOP, PROFILE_ALONE, in_sixteen_bits
from pipediag.rules.rule import Meta
from pipediag.session.devices import DeviceActivity
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.session.trials import WORTHWHILE
from pipediag.vocabulary import Framework, Scalar, SixteenBitPolicy

MATMUL = Threshold(
    "matrix products and convolutions",
    20.0,
    "% of the device's busy time",
    "own choice: under it, products that take half the time gain less than 1.12 times, and the "
    "rule only informs",
)
TENSOR_CORE = Threshold(
    "part of those in kernels that use tensor cores",
    10.0,
    "%",
    "XProf advises mixed precision where under 10 % of compute is in 16 bits",
)
GAIN = Threshold(
    "predicted speed-up",
    1.05,
    "times",
    "own choice: results change, so the gain must be worth a validation",
)
META = Meta(
    id="mixed-precision",
    name="Mixed precision",
    title_failed="Matrix products take much of the time and leave the tensor cores idle",
    title_informative="Matrix products leave the tensor cores idle",
    title_passed="Matrix products use tensor cores, or take little time",
    looks_at="The busy time of an accelerator in matrix products and convolutions, the part of it "
    "in kernels whose names tell of tensor cores, and whether the model has any (NVIDIA, compute "
    "capability 7.0 and up).",
    why="Tensor cores multiply 16-bit matrices several times as fast as the other cores multiply "
    "32-bit ones. TF32 counts as tensor cores too; Ampere and later use it for float32 by default.",
    edit='keras.mixed_precision.set_global_policy("mixed_bfloat16") from compute capability 8.0 '
    'on, "mixed_float16" on V100, T4 and the like; sizes of layers in multiples of 8.',
    cost="Every product is rounded to 16 bits: training may converge differently or not at all. "
    "Validate accuracy; float16 needs loss scaling (Keras' fit does it, a loop of one's own must "
    "use LossScaleOptimizer); keep the last softmax in float32.",
    bound="Amdahl: the products without tensor cores take half their time (own choice; NVIDIA "
    "and Keras speak of up to three times as fast a step), and all else stays.",
    needs=("devices",),
    thresholds=(MATMUL, TENSOR_CORE, GAIN, INPUT_GAPS),
    severity="info",
    effect_on_results="changes a hyper-parameter",
    tried_when_informing=True,
    untried=OWN_LOOP,
    tried_where="In a Keras `fit` the policy of all layers but the last is changed and measured. "
    "Otherwise none.",
)

FACTOR = 2.0


_SIXTEEN_BITS: Mapping[Framework, Mapping[SixteenBitPolicy, str]] = {
    "tensorflow": {
        "mixed_bfloat16": "`keras.mixed_precision.set_global_policy('mixed_bfloat16')` before the "
        'model is built, with `dtype="float32"` for the last layer',
        "mixed_float16": "`keras.mixed_precision.set_global_policy('mixed_float16')` before the "
        'model is built, with `dtype="float32"` for the last layer (a loop of your own needs '
        "LossScaleOptimizer)",
    },
    "jax": {
        "mixed_bfloat16": "computing in `jnp.bfloat16` (`dtype=` of Flax' layers), with parameters "
        "and the last softmax in float32",
        "mixed_float16": "computing in `jnp.float16` (`dtype=` of Flax' layers), with parameters "
        "and the last softmax in float32 and the loss scaled",
    },
    "pytorch": {
        "mixed_bfloat16": '`torch.autocast("cuda", dtype=torch.bfloat16)` around the forward pass',
        "mixed_float16": '`torch.autocast("cuda", dtype=torch.float16)` around the forward pass '
        "with `torch.amp.GradScaler`",
    },
}


def check_devices(
    devices: Sequence[DeviceActivity], framework: Framework = "tensorflow"
) -> list[Finding]:
    """One finding on the accelerator with the most time in products without tensor cores."""
    return _check(devices, framework, session=None)


def check(session: Session) -> list[Finding]:
    """The same; a script that sets a policy for 16 bits is told about shapes instead."""
    return _check(session.devices, "tensorflow", session)


def _check(
    devices: Sequence[DeviceActivity], framework: Framework, session: Session | None
) -> list[Finding]:
    gpus = accelerators(devices)
    if not gpus:
        return [META.finding("not-applicable", NO_ACCELERATOR)]
    told = [each for each in gpus if each.matmul_ms is not None and each.tensor_core_ms is not None]
    device = worst(told, lambda each: _plain_ms(each) / each.span_ms)
    if device is None:
        reason = "The profile does not tell which kernels are matrix products."
        return [META.finding("inconclusive", reason)]
    evidence = {
        "device": full_name(device),
        "model": device.model,
        "matmul_percent_of_busy": _matmul_percent(device),
        "matmul_ms": device.matmul_ms,
        "tensor_core_ms": device.tensor_core_ms,
        "tensor_core_percent_of_matmul": _tensor_core_percent(device),
        "savable_percent_of_span": percent_of_span(device, _savable_ms(device)),
        "idle_percent": device.idle_percent,
        "policy": _policy(session),
    }
    at_most = _at_most(device)
    worth_trying = session is not None and (at_most or 0.0) >= WORTHWHILE
    if not _matters(device) and not worth_trying:
        return [META.finding("pass", "", evidence=evidence)]
    return [_weighed(device, evidence, framework, session)]


def _policy(session: Session | None) -> str | None:
    """What the script set; a profile alone does not say."""
    return session.environment.mixed_precision if session is not None else None


def _weighed(
    device: DeviceActivity,
    evidence: dict[str, Scalar],
    framework: Framework,
    session: Session | None,
) -> Finding:
    """The finding on a device whose products take long and use no tensor cores."""
    fitting = sixteen_bit_policy(device.model)
    if fitting == "none":
        reason = f"{device.model} has no tensor cores."
        return META.finding("not-applicable", reason, evidence=evidence)
    if fitting is None:
        reason = f"Whether {device.model or 'this device'} has tensor cores is not known."
        return META.finding("inconclusive", reason, evidence=evidence)
    at_most, policy = _at_most(device), _policy(session)
    if policy is not None and policy.startswith("mixed_"):
        return META.finding("informative", _of_shapes(policy), evidence=evidence)
    advice = _advice(_SIXTEEN_BITS[framework][fitting])
    edit = None if session is None else in_sixteen_bits(session, META.id, fitting)
    waits, little = input_first_on(device), at_most is not None and at_most < GAIN.value
    if little:
        advice = f"The device is idle {device.idle_percent:.0f} % of the time. {advice}"
    if waits or little or not _matters(device):
        return META.finding("informative", waits or advice, evidence=evidence, edit=edit)
    return META.finding(
        "fail",
        advice,
        evidence=evidence,
        speedup_at_most=at_most,
        edit=edit,
        untried=PROFILE_ALONE if session is None else None,
    )


def _of_shapes(policy: str) -> str:
    return (
        f"The policy is {policy} already. Look for sizes that are no multiple of 8, and for "
        "layers kept in float32: their products can't use the tensor cores."
    )


def _matters(device: DeviceActivity) -> bool:
    return (
        _matmul_percent(device) >= MATMUL.value and _tensor_core_percent(device) < TENSOR_CORE.value
    )


def _matmul_percent(device: DeviceActivity) -> float:
    return 100.0 * (device.matmul_ms or 0.0) / device.busy_ms if device.busy_ms else 0.0


def _tensor_core_percent(device: DeviceActivity) -> float:
    return 100.0 * (device.tensor_core_ms or 0.0) / device.matmul_ms if device.matmul_ms else 0.0


def _plain_ms(device: DeviceActivity) -> float:
    """Time in products without tensor cores; kernels that overlap can't exceed the busy time."""
    plain = (device.matmul_ms or 0.0) - (device.tensor_core_ms or 0.0)
    return min(max(0.0, plain), device.busy_ms)


def _savable_ms(device: DeviceActivity) -> float:
    return _plain_ms(device) * (1 - 1 / FACTOR)


def _at_most(device: DeviceActivity) -> float | None:
    return without_idle(device, _savable_ms(device))


def _advice(how: str) -> str:
    return (
        f"Try {how}, and validate accuracy: products are rounded to 16 bits. Sizes in multiples of "
        "8 fit the tensor cores."
    )
