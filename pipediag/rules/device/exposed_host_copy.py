"""Copies from the host that the device computes nothing beside.

It applies to accelerators only: a CPU computes where its batches already lie.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pipediag.facts.amounts import exact_time
from pipediag.facts.devices import NO_ACCELERATOR, accelerators, full_name, percent_of_span, worst
from pipediag.facts.limits import INPUT_GAPS, Threshold
from pipediag.rules.device.gpu_models import pcie_gb_per_s
from pipediag.rules.device.prefetch import UNTRIED, prefetched_to
from pipediag.rules.device.relevance import input_first_on, without_idle
from pipediag.rules.model_edits import PROFILE_ALONE
from pipediag.rules.rule import Meta, with_edit
from pipediag.session.devices import DeviceActivity, DeviceCopies
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.vocabulary import Framework, Scalar

EXPOSED = Threshold(
    "copies from the host while no kernel runs",
    5.0,
    "% of the device's span",
    "XProf counts them as input, and calls 5 % of the step moderate",
)
FULL_RATE = Threshold(
    "part of the bus's rate under which pinned memory is named",
    0.5,
    "of PCIe's usable rate",
    "own choice; usable is about 80 % of the nominal rate of 16 lanes: 12 GB/s for PCIe 3, 24 for "
    "4, 50 for 5",
)
SMALL_COPY = Threshold(
    "mean size under which a copy can't reach the bus's rate",
    1.0,
    "MiB",
    "own choice, near where NVIDIA's bandwidthTest flattens: 3 GB/s at 64 KiB, 6 at 1 MiB, 11 at "
    "8 MiB on PCIe 3",
)
META = Meta(
    id="exposed-host-copy",
    name="Exposed copies from the host",
    title_failed="The device waits while batches are copied to it",
    title_passed="Copies to the device hide behind compute, or are short",
    looks_at="The time in which copies from the host ran on an accelerator and no kernel did, "
    "their size, and their rate against what PCIe gives.",
    why="A batch that is copied when its step begins makes the kernels wait; copied a step ahead "
    "it costs nothing. From pageable memory the driver copies twice and the host waits.",
    edit='End the pipeline with `.apply(tf.data.experimental.prefetch_to_device("/GPU:0"))`; '
    "smaller dtypes (int32 ids in place of int64, uint8 images cast on the device); batches in "
    "pinned memory.",
    cost="A batch or two of device memory. Narrower types must hold every value: int32 ids up to "
    "2^31. prefetch_to_device must come last and serves one device.",
    bound="The device's span without the exposed part, where its kernels last long enough to "
    "hide the copies; else the copies set the pace.",
    needs=("devices",),
    thresholds=(EXPOSED, FULL_RATE, SMALL_COPY, INPUT_GAPS),
    severity="warn",
    effect_on_results="same results",
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
_PINNED: Mapping[Framework, str] = {
    "tensorflow": ": a parallel map right before the batch runs as MapAndBatch, which fills pinned "
    "memory; a generator does not",
    "jax": "",
    "pytorch": ", which `pin_memory=True` makes",
}


def check_devices(
    devices: Sequence[DeviceActivity], framework: Framework = "tensorflow"
) -> list[Finding]:
    """One finding on the accelerator that waits longest for copies from the host."""
    return _check(devices, element_spec=None, framework=framework)


def check(session: Session) -> list[Finding]:
    """The same, naming int64 where the loop's batches hold it."""
    loop = session.diagnosed_loop()
    spec = loop.element_spec if loop else None
    found = _check(session.devices, element_spec=spec, framework="tensorflow")
    device = worst(accelerators(session.devices), _exposed_percent)
    edit = prefetched_to(session, device, META.id) if device else None
    return [with_edit(META, each, edit, UNTRIED) for each in found]


def _check(
    devices: Sequence[DeviceActivity], element_spec: str | None, framework: Framework
) -> list[Finding]:
    device = worst(accelerators(devices), _exposed_percent)
    if device is None:
        return [META.finding("not-applicable", NO_ACCELERATOR)]
    copies = _from_host(device)
    if copies is None:
        return [META.finding("pass", "", evidence={"device": full_name(device)})]
    evidence: dict[str, Scalar] = {
        "device": full_name(device),
        "exposed_percent_of_span": _exposed_percent(device),
        "exposed_ms": copies.exposed_ms,
        "copy_ms": copies.ms,
        "copies": copies.count,
        "bytes": copies.bytes,
        "gb_per_s": copies.gb_per_s,
        "pcie_gb_per_s": pcie_gb_per_s(device.model),
        "blocked_in_copy_ms": device.causes_ms.get("copy", 0.0),
    }
    if _exposed_percent(device) < EXPOSED.value:
        return [META.finding("pass", "", evidence=evidence)]
    if waits := input_first_on(device):
        return [META.finding("informative", waits, evidence=evidence)]
    return [
        META.finding(
            "fail",
            _advice(device, copies, element_spec, framework),
            evidence=evidence,
            speedup_at_most=_at_most(device, copies),
            untried=PROFILE_ALONE,
        )
    ]


def _from_host(device: DeviceActivity) -> DeviceCopies | None:
    return next((each for each in device.copies if each.direction == "host_to_device"), None)


def _exposed_percent(device: DeviceActivity) -> float:
    copies = _from_host(device)
    return percent_of_span(device, copies.exposed_ms if copies else 0.0)


def _advice(
    device: DeviceActivity, copies: DeviceCopies, element_spec: str | None, framework: Framework
) -> str:
    ahead = (
        f"{full_name(device)} computes nothing for {exact_time(copies.exposed_ms)} while batches "
        f"are copied to it: {_AHEAD[framework]}, so that they are copied during the step before."
    )
    return f"{ahead} {_narrower(element_spec)}{_rate_sentence(device, copies, framework)}"


def _narrower(element_spec: str | None) -> str:
    if element_spec is not None and "int64" in element_spec:
        return "The batches hold int64: ids under 2^31 fit `tf.int32`, half the bytes."
    return "Copy narrower types: `int32` ids, `uint8` images that the model casts."


def _rate_sentence(device: DeviceActivity, copies: DeviceCopies, framework: Framework) -> str:
    rate, usual = copies.gb_per_s, pcie_gb_per_s(device.model)
    if rate is None or usual is None or copies.bytes is None or not copies.count:
        return ""
    if rate >= FULL_RATE.value * usual:
        return f" The copies run at {rate:.3g} GB/s, about what PCIe gives: copy fewer bytes."
    mean_mib = copies.bytes / copies.count / 2**20
    if mean_mib < SMALL_COPY.value:
        return (
            f" A copy holds {mean_mib:.2g} MiB on average, too little for PCIe's rate: pack "
            "features into fewer, larger tensors."
        )
    return (
        f" The copies run at {rate:.3g} GB/s, PCIe gives {usual:.0f}. Copies from pinned memory "
        f"come nearer to that{_PINNED[framework]}."
    )


def _at_most(device: DeviceActivity, copies: DeviceCopies) -> float | None:
    hidden = min(copies.exposed_ms, device.span_ms - copies.ms)
    return without_idle(device, max(0.0, hidden))
