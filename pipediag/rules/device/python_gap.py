"""A device that is idle while Python runs between the calls that give it work.

It holds for a CPU too, whose executor's operations stand for a device: the loop's Python leaves the
executor idle in the same way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pipediag.facts.amounts import exact_time
from pipediag.facts.devices import (
    NO_DEVICE,
    accelerators_or_cpus,
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
from pipediag.rules.model_edits import NO_MODEL_EDIT, PROFILE_ALONE, several_steps_a_call
from pipediag.rules.rule import Meta, with_edit
from pipediag.session.devices import DeviceActivity
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.vocabulary import Framework

IDLE = Threshold(
    "idle for Python",
    15.0,
    "% of the device's span",
    "XProf: other host time over 15 % of the step is high, over 3 % moderate",
)
ONE_PAUSE = Threshold(
    "longest gap above which it is one pause and not every step",
    50.0,
    "% of the idle time for Python",
    "own choice: the other gaps together are then less than that one",
)
META = Meta(
    id="python-gap",
    name="Python between steps",
    title_failed="The device is idle while Python runs between steps",
    title_passed="Python between steps hardly holds the device up",
    looks_at="The time in which a device had nothing to do while the training thread was in "
    "Python, outside any call into the framework, and what it ran there. On a machine without an "
    "accelerator the executor stands for the device.",
    why="Callbacks, logging, metrics in NumPy and progress bars run between two steps, and nothing "
    "is launched meanwhile.",
    edit="Do it every hundredth step or in on_epoch_end, or in another thread; "
    "compile(steps_per_execution=16) where callbacks may run less often.",
    cost="Logs and callbacks see fewer steps.",
    bound="Amdahl: the span over the span without these gaps. None for a single pause.",
    needs=("devices",),
    thresholds=(IDLE, ONE_PAUSE, INPUT_GAPS, UNDER_FLOOR, PERTURBED),
    severity="warn",
    effect_on_results="same results",
    frees=("python",),
    sees_class_only=True,
    tried_when_informing=True,
)

ONE_PAUSE_TITLE = "One long pause in Python"

_LESS_PYTHON: Mapping[Framework, str] = {
    "tensorflow": "let callbacks and logging work every hundredth step or in `on_epoch_end`; "
    "`compile(..., steps_per_execution=16)` calls them, and starts steps, once in 16",
    "jax": "log and evaluate metrics every hundredth step, or in another thread; `jax.lax.scan` "
    "over several steps leaves Python once for all of them",
    "pytorch": "log and evaluate metrics every hundredth step, or in another thread; collate and "
    "transform batches in the DataLoader's workers",
}


def check_devices(
    devices: Sequence[DeviceActivity], framework: Framework = "tensorflow"
) -> list[Finding]:
    """One finding on the device that Python holds up longest."""
    device = worst(accelerators_or_cpus(devices), lambda each: cause_percent(each, "python"))
    if device is None:
        return [META.finding("not-applicable", NO_DEVICE)]
    doing = longest_doing(device, "python")
    evidence = {
        **idle_evidence(device, "python"),
        "training_thread_in": doing[0] if doing else None,
        "there_ms": doing[1] if doing else None,
    }
    aside = set_aside(META, device, "python", IDLE, evidence, SHORTEST_HOST_GAP_US)
    if aside is not None:
        return [aside]
    if pause := _one_pause(device):
        return [META.finding("informative", pause, title=ONE_PAUSE_TITLE, evidence=evidence)]
    return [
        META.finding(
            "fail",
            _advice(device, doing[0] if doing else None, framework),
            evidence=evidence,
            speedup_at_most=without_idle(device, device.causes_ms["python"]),
            untried=PROFILE_ALONE,
        )
    ]


def check(session: Session) -> list[Finding]:
    """The same, where the profiler did not slow the steps much."""
    edit = several_steps_a_call(session, META.id)
    found = [with_edit(META, each, edit, NO_MODEL_EDIT) for each in check_devices(session.devices)]
    return unless_perturbed(META, session, found)


def _one_pause(device: DeviceActivity) -> str | None:
    """That most of it is a single gap, as a sentence, or None."""
    gap, ms = max(held_up(device, "python"), key=lambda part: part[1], default=(None, 0.0))
    if gap is None or 100.0 * ms < ONE_PAUSE.value * device.causes_ms["python"]:
        return None
    where = f" in step {gap.step}" if gap.step is not None else ""
    what = f" (`{gap.doing.removeprefix('$')}`)" if gap.doing else ""
    return (
        f"Most of it is one pause of {exact_time(ms)}{where}{what}. It weighs as often as it "
        "comes, which this profile can't tell."
    )


def _advice(device: DeviceActivity, doing: str | None, framework: Framework) -> str:
    where = f", mostly in `{doing}`" if doing else ""
    return (
        f"{full_name(device)} is idle {cause_percent(device, 'python'):.0f} % of the time while "
        f"Python runs between steps{where}: {_LESS_PYTHON[framework]}."
    )
