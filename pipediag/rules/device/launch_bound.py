"""A device that waits for each kernel to be launched.

It applies to accelerators only: on a CPU nothing is queued ahead, and starting an operation is part
of running it, which host-overhead and small-batch weigh.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pipediag.facts.devices import (
    NO_ACCELERATOR,
    accelerators,
    cause_percent,
    full_name,
    idle_evidence,
    longest_doing,
    worst,
)
from pipediag.facts.limits import INPUT_GAPS, PERTURBED, Threshold
from pipediag.rules.device.relevance import (
    UNDER_FLOOR,
    set_aside,
    unless_perturbed,
    without_idle,
)
from pipediag.rules.model_edits import (
    NO_MODEL_EDIT,
    PROFILE_ALONE,
    compiled_by_xla,
    several_steps_a_call,
)
from pipediag.rules.rule import Meta, with_edit
from pipediag.session.devices import DeviceActivity
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.vocabulary import Framework

IDLE = Threshold(
    "idle for launches",
    15.0,
    "% of the device's span",
    "XProf: kernel launch over 15 % of the step is high, over 3 % moderate",
)
DELAY = Threshold(
    "median time from a launch to its kernel's start",
    10.0,
    "us",
    "own choice: from it on it only informs, as kernels had been launched ahead",
)
META = Meta(
    id="launch-bound",
    name="Launch-bound device",
    title_failed="The device is idle until the host launches the next kernel",
    title_informative="The device is idle at times until the host launches the next kernel",
    title_passed="Kernels are launched ahead of the device",
    looks_at="The time in which an accelerator was idle while the host dispatched operations, and "
    "how long after its launch the median kernel started.",
    why="The host should run ahead and fill the device's queue. Where it takes longer to start an "
    "operation than the device to finish one, the queue is empty and the device runs at the "
    "host's pace.",
    edit="compile(jit_compile=True), which launches fused kernels, as a CUDA graph where XLA can; "
    "compile(steps_per_execution=16); TF_GPU_THREAD_MODE=gpu_private; a larger batch.",
    cost="XLA compiles once for each shape and changes the last digits; a larger batch changes how "
    "the model learns, and its learning rate must be tuned again.",
    bound="Amdahl: the span over the span without these gaps.",
    needs=("devices",),
    thresholds=(IDLE, DELAY, INPUT_GAPS, UNDER_FLOOR, PERTURBED),
    severity="warn",
    effect_on_results="same up to order or rounding",
    frees=("dispatch",),
    sees_class_only=True,
    tried_when_informing=True,
)

_FEWER: Mapping[Framework, str] = {
    "tensorflow": "`compile(..., jit_compile=True)` (or `@tf.function(jit_compile=True)`) leaves "
    "fewer, larger ones and lets XLA replay them as a CUDA graph; `steps_per_execution=16` saves "
    "Python between steps; `TF_GPU_THREAD_MODE=gpu_private` gives launches threads of their own",
    "jax": "`jax.jit` the whole step, gradients and optimiser included, with its state donated "
    "(`donate_argnums`); `jax.lax.scan` over several steps starts them with one call",
    "pytorch": '`torch.compile(model, mode="reduce-overhead")` leaves fewer, larger ones and '
    "replays them as CUDA graphs; a step of fixed shapes can be recorded whole with "
    "`torch.cuda.graph`",
}
_RARER: Mapping[Framework, str] = {
    "tensorflow": "`steps_per_execution` in compile makes those rarer",
    "jax": "`jax.lax.scan` over several steps makes those rarer",
    "pytorch": 'CUDA graphs (`torch.compile(mode="reduce-overhead")`) make those shorter',
}


def check_devices(
    devices: Sequence[DeviceActivity], framework: Framework = "tensorflow"
) -> list[Finding]:
    """One finding on the accelerator that waits longest for launches."""
    device = worst(accelerators(devices), lambda each: cause_percent(each, "launch"))
    if device is None:
        return [META.finding("not-applicable", NO_ACCELERATOR)]
    launches = device.launches
    delay = launches.median_delay_us if launches else None
    doing = longest_doing(device, "launch")
    evidence = {
        **idle_evidence(device, "launch"),
        "median_delay_us": delay,
        "median_kernel_us": launches.median_kernel_us if launches else None,
        "median_launch_us": launches.median_launch_us if launches else None,
        "kernels_per_s": launches.per_s if launches else None,
        "launching_thread_in": doing[0] if doing else None,
    }
    aside = set_aside(META, device, "launch", IDLE, evidence)
    if aside is not None:
        return [aside]
    if delay is not None and delay >= DELAY.value:
        return [META.finding("informative", _in_bursts(delay, framework), evidence=evidence)]
    advice = _advice(device, framework)
    at_most = without_idle(device, device.causes_ms.get("launch", 0.0))
    return [
        META.finding(
            "fail", advice, evidence=evidence, speedup_at_most=at_most, untried=PROFILE_ALONE
        )
    ]


def check(session: Session) -> list[Finding]:
    """The same, where the profiler did not slow the steps much."""
    edit = compiled_by_xla(session, META.id) or several_steps_a_call(session, META.id)
    found = [with_edit(META, each, edit, NO_MODEL_EDIT) for each in check_devices(session.devices)]
    return unless_perturbed(META, session, found)


def _in_bursts(delay: float, framework: Framework) -> str:
    return (
        f"The median kernel starts {delay:.0f} us after its launch: most are launched ahead, and "
        f"the device waits for some. {_RARER[framework]}."
    )


def _advice(device: DeviceActivity, framework: Framework) -> str:
    return (
        f"{full_name(device)} is idle {cause_percent(device, 'launch'):.0f} % of the time until "
        f"the host launches the next kernel: {_FEWER[framework]}. A larger batch makes each kernel "
        "longer."
    )
