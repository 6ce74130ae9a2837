"""Kernels that end before the next one could even be launched.

It applies to accelerators only: on a CPU an operation is called, not launched.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pipediag.facts.devices import NO_ACCELERATOR, accelerators, cause_percent, full_name, worst
from pipediag.facts.limits import INPUT_GAPS, PERTURBED, Threshold
from pipediag.rules.device.relevance import (
    UNDER_FLOOR,
    input_first_on,
    unexplained,
    unless_perturbed,
)
from pipediag.rules.model_edits import NO_MODEL_EDIT, PROFILE_ALONE, compiled_by_xla
from pipediag.rules.rule import Meta, with_edit
from pipediag.session.devices import DeviceActivity
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.vocabulary import Framework, Scalar

SHORT = Threshold(
    "kernels that ran for less time than their launch took",
    50.0,
    "% of the kernels with a known launch",
    "own choice: with most kernels shorter than their launch the host can't keep the queue filled",
)
IDLE = Threshold(
    "idle for launches",
    5.0,
    "% of the device's span",
    "own choice, equal to the limit on input wait; XProf calls 3 % moderate and 15 % high",
)
FEWEST = Threshold(
    "kernels with a known launch",
    100.0,
    "kernels",
    "own choice: their share is then known to about ten percent points",
)
META = Meta(
    id="small-kernels",
    name="Small kernels",
    title_failed="Most kernels are shorter than their launch",
    title_passed="Kernels are long enough for their launches",
    looks_at="The share of an accelerator's kernels that ran for less time than the call that "
    "launched them, and whether the device was idle for launches.",
    why="A launch takes the host some microseconds, whatever the kernel does. Under that length "
    "the device waits for the host, however fast it is; optimisers and element-wise layers launch "
    "hundreds of such kernels a step.",
    edit="compile(jit_compile=True) fuses them; one stacked variable or table in place of many "
    "small ones; a larger batch; in PyTorch an optimiser with fused=True or foreach=True.",
    cost="XLA compiles once for each shape and changes the last digits; a larger batch must be "
    "tuned for.",
    bound="None: what fusion leaves can't be told from a profile.",
    needs=("devices",),
    thresholds=(SHORT, IDLE, FEWEST, INPUT_GAPS, UNDER_FLOOR, PERTURBED),
    severity="warn",
    effect_on_results="same up to order or rounding",
    frees=("dispatch",),
    sees_class_only=True,
    tried_when_informing=True,
)

_FUSE: Mapping[Framework, str] = {
    "tensorflow": "fuse them with `compile(..., jit_compile=True)`, or `@tf.function("
    "jit_compile=True)` on the step with its optimiser; look up features of one width in one "
    "stacked embedding table",
    "jax": "fuse them with `jax.jit` around the whole step with its optimiser; use `jax.vmap` in "
    "place of a loop, and one stacked array in place of many small ones",
    "pytorch": "fuse them with `torch.compile`, and give the optimiser `fused=True` or "
    "`foreach=True`; use one stacked tensor in place of many small ones",
}


def check_devices(
    devices: Sequence[DeviceActivity], framework: Framework = "tensorflow"
) -> list[Finding]:
    """One finding on the accelerator with the most short kernels."""
    gpus = accelerators(devices)
    if not gpus:
        return [META.finding("not-applicable", NO_ACCELERATOR)]
    device = worst([each for each in gpus if _enough_launches(each)], _short_percent)
    if device is None or device.launches is None:
        return [META.finding("inconclusive", "Too few kernels could be joined to their launch.")]
    launches, short = device.launches, _short_percent(device)
    evidence: dict[str, Scalar] = {
        "device": full_name(device),
        "shorter_than_launch_percent": short,
        "kernels": launches.kernels,
        "kernels_with_launch": launches.matched,
        "kernels_per_s": launches.per_s,
        "median_kernel_us": launches.median_kernel_us,
        "median_launch_us": launches.median_launch_us,
        "launch_idle_percent_of_span": cause_percent(device, "launch"),
        "most_frequent_kernel": _most_frequent(device),
    }
    if short < SHORT.value:
        return [META.finding("pass", "", evidence=evidence)]
    return [_weighed(device, evidence, framework)]


def check(session: Session) -> list[Finding]:
    """The same, where the profiler did not slow the steps much: it lengthens each launch."""
    edit = compiled_by_xla(session, META.id)
    found = [with_edit(META, each, edit, NO_MODEL_EDIT) for each in check_devices(session.devices)]
    return unless_perturbed(META, session, found)


def _weighed(device: DeviceActivity, evidence: dict[str, Scalar], framework: Framework) -> Finding:
    """The finding on a device most of whose kernels are short."""
    if waits := input_first_on(device):
        return META.finding("informative", waits, evidence=evidence)
    if cause_percent(device, "launch") >= IDLE.value:
        advice = _advice(device, _short_percent(device), framework)
        return META.finding("fail", advice, evidence=evidence, untried=PROFILE_ALONE)
    if why := unexplained(device):
        return META.finding("inconclusive", why, evidence=evidence)
    idle = cause_percent(device, "launch")
    advice = f"Most are, and the device is idle for launches only {idle:.1f} % of the time."
    return META.finding("informative", advice, evidence=evidence)


def _enough_launches(device: DeviceActivity) -> bool:
    launches = device.launches
    if launches is None or launches.shorter_than_launch_percent is None:
        return False
    return launches.matched >= FEWEST.value


def _short_percent(device: DeviceActivity) -> float:
    return (device.launches.shorter_than_launch_percent if device.launches else None) or 0.0


def _most_frequent(device: DeviceActivity) -> str | None:
    top = max(device.kernels, key=lambda kernel: kernel.count, default=None)
    return top.name if top else None


def _advice(device: DeviceActivity, short: float, framework: Framework) -> str:
    return (
        f"{short:.0f} % of the kernels on {full_name(device)} end sooner than the next could be "
        f"launched: {_FUSE[framework]}. A larger batch makes each kernel longer."
    )
