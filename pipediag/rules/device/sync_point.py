"""A device that ran dry because the host waited for its result.

It applies to accelerators only: on a CPU the executor works while the loop waits for it, so such a
wait leaves no gap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pipediag.facts.devices import (
    NO_ACCELERATOR,
    accelerators,
    cause_percent,
    full_name,
    held_up,
    idle_evidence,
    longest_doing,
    worst,
)
from pipediag.facts.limits import INPUT_GAPS, PERTURBED, Threshold
from pipediag.rules.device.relevance import (
    SHORTEST_HOST_GAP_US,
    UNDER_FLOOR,
    set_aside,
    unless_perturbed,
    without_idle,
)
from pipediag.rules.rule import Meta
from pipediag.session.devices import DeviceActivity
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.vocabulary import Framework

IDLE = Threshold(
    "idle after a read-back or synchronisation",
    5.0,
    "% of the device's span",
    "XProf calls output, the copies back to the host, moderate from 5 % of the step",
)
META = Meta(
    id="sync-point",
    name="Synchronisation points",
    title_failed="The device is idle around the host's waits for its results",
    title_passed="The host's waits for results hardly leave the device idle",
    looks_at="The time in which an accelerator was idle while the training thread waited for it: "
    "read-backs of values, and calls that synchronise.",
    why="Reading a value on the host waits until the device has computed it. Nothing was launched "
    "meanwhile, so that the device then waits for the host in turn.",
    edit="Keep loss and metrics on the device (keras.metrics) and read them every hundredth step; "
    "no .numpy(), float(), print or `if` on a tensor within the loop.",
    cost="Progress and logs show values less often.",
    bound="Amdahl: the span over the span without these gaps. Cautious, as the launches after "
    "a wait would then be hidden too.",
    needs=("devices",),
    thresholds=(IDLE, INPUT_GAPS, UNDER_FLOOR, PERTURBED),
    severity="warn",
    effect_on_results="same results",
    frees=("device_wait",),
    sees_class_only=True,
    untried="It needs the lines that read results changed in your code.",
)

_READ_LESS: Mapping[Framework, str] = {
    "tensorflow": "(`.numpy()`, `float(loss)`, `print`, callbacks with on_train_batch_end). Update "
    "a `keras.metrics.Mean` and call `.result()` every hundredth step",
    "jax": "(`float(loss)`, `.item()`, `print`, `np.asarray`), nor call `block_until_ready()` "
    "there. Let the step add them up, and read the sums every hundredth step",
    "pytorch": "(`.item()`, `.cpu()`, `print(loss)`, `if` on a tensor). Add up `loss.detach()` on "
    "the device, and call `.item()` every hundredth step",
}


def check_devices(
    devices: Sequence[DeviceActivity], framework: Framework = "tensorflow"
) -> list[Finding]:
    """One finding on the accelerator that such waits cost most."""
    device = worst(accelerators(devices), lambda each: cause_percent(each, "sync"))
    if device is None:
        return [META.finding("not-applicable", NO_ACCELERATOR)]
    doing = longest_doing(device, "sync")
    steps = {gap.step for gap, _ in held_up(device, "sync") if gap.step is not None}
    read_back = next((each for each in device.copies if each.direction == "device_to_host"), None)
    evidence = {
        **idle_evidence(device, "sync"),
        "steps_with_such_gaps": len(steps),
        "copies_to_host": read_back.count if read_back else None,
        "waiting_thread_in": doing[0] if doing else None,
    }
    aside = set_aside(META, device, "sync", IDLE, evidence, SHORTEST_HOST_GAP_US)
    if aside is not None:
        return [aside]
    return [
        META.finding(
            "fail",
            _advice(device, doing[0] if doing else None, framework),
            evidence=evidence,
            speedup_at_most=without_idle(device, device.causes_ms["sync"]),
        )
    ]


def check(session: Session) -> list[Finding]:
    """The same, where the profiler did not slow the steps much."""
    return unless_perturbed(META, session, check_devices(session.devices))


def _advice(device: DeviceActivity, doing: str | None, framework: Framework) -> str:
    where = f", mostly in `{doing}`" if doing else ""
    return (
        f"{full_name(device)} is idle {cause_percent(device, 'sync'):.0f} % of the time around "
        f"waits for its results{where}: don't read the loss or metrics in every step "
        f"{_READ_LESS[framework]}."
    )
