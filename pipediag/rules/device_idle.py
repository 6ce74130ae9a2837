"""A device that is idle, by what the host did meanwhile.

Waits for input and for Python hold for a CPU too, whose executor's operations stand for a device.
Launches and waits for results are judged on accelerators only: on a CPU an operation is called,
and the executor works while the loop waits for it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from pipediag.facts.devices import (
    accelerators,
    cause_percent,
    full_name,
    held_up,
    idle_evidence,
    longest_doing,
    percent_of_span,
    worst,
)
from pipediag.facts.limits import INPUT_GAPS, INPUT_WAIT, PERTURBED, Threshold
from pipediag.facts.names import exact_time
from pipediag.facts.pipeline import last_operation
from pipediag.facts.step import ceiling
from pipediag.rules.model_edits import (
    NO_MODEL_EDIT,
    PROFILE_ALONE,
    compiled_by_xla,
    several_steps_a_call,
)
from pipediag.rules.relevance import weigh_input
from pipediag.rules.rule import Rule
from pipediag.session.devices import DeviceActivity
from pipediag.session.edits import Edit, Insert
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.vocabulary import Framework, GapCause, Scalar

_OF_SPAN = "% of the device's span"
UNDER_FLOOR = Threshold("idle time, if mostly short gaps", 15.0, _OF_SPAN, "own choice")
INPUT_IDLE = Threshold("waiting for input", INPUT_WAIT.value, _OF_SPAN, "XProf: moderate from 5 %")
LAUNCH_IDLE = Threshold("waiting for launches", 15.0, _OF_SPAN, "XProf: over 15 % is high")
DELAY = Threshold("median time from launch to start", 10.0, "us", "own choice: launched ahead")
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


UNTRIED = (
    "No tf.data pipeline feeds a single device, so batches can't be copied to it ahead of time."
)


def prefetched_to(session: Session | None, device: DeviceActivity, rule: str) -> Edit | None:
    """Return `prefetch_to_device` after everything else; None without a pipeline.

    None too under a strategy, which copies to its devices by itself: `prefetch_to_device` serves
    one device.
    """
    loop = session.diagnosed_loop() if session is not None else None
    last = last_operation(session) if session is not None else None
    if loop is None or loop.kind == "distributed" or loop.replicas > 1 or last is None:
        return None
    number = re.search(r"\d+$", device.name)
    name = f"/gpu:{number.group() if number else 0}"
    return Edit(
        id=rule,
        label=f"prefetch_to_device({name}) at the end of the pipeline",
        changes=(Insert(last.id, "prefetch_to_device", {"device": name}),),
    )


def _unexplained(device: DeviceActivity) -> str | None:
    """Return why launches can't be ruled out, or None: other causes leave no gaps so short."""
    percent, floor = percent_of_span(device, device.noise_ms), device.gap_floor_us / 1000
    if percent < UNDER_FLOOR.value or 2 * device.noise_ms < device.idle_ms:
        return None
    short = f"gaps shorter than {exact_time(floor)}, which are not analysed."
    return f"{percent:.3g} % of the time is idle in {short}"


def _of_cause(
    rule: Rule,
    devices: Sequence[DeviceActivity],
    cause: GapCause,
    advice: str,
    session: Session | None,
    *,
    limit: Threshold,
    evidence: Mapping[str, Scalar] | None = None,
    edit: Edit | None = None,
    informs: str | None = None,
) -> Iterator[Finding]:
    """Yield the finding on the device that is idle longest for one cause, as far as that matters.

    The profiler lengthens what the host does and hardly what a kernel takes, so it makes gaps:
    where it slowed the steps much, a failure is in doubt. Its edit is tried all the same.
    """
    device = _idlest(devices, cause)
    if device is None:
        return
    perturbed = session.perturbation if session is not None else None
    ratio = (perturbed.ratio if perturbed is not None else None) or 1.0
    doing, percent = longest_doing(device, cause), cause_percent(device, cause)
    numbers = {**idle_evidence(device, cause), **(evidence or {}), "host_in": doing and doing[0]}
    finding = partial(rule.finding, evidence=numbers, edit=edit)
    if percent < limit.value:
        if cause == "launch" and (why := _unexplained(device)):
            yield finding("inconclusive", why)
    elif informs := input_first_on(device) or informs:
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
            f"{advice} {full_name(device)} is idle {percent:.0f} % of the time for "
            f"this.{meanwhile}",
            speedup_at_most=without_idle(device, device.causes_ms.get(cause, 0.0)),
            untried=rule.untried or (PROFILE_ALONE if session is None else NO_MODEL_EDIT),
        )


def _idlest(devices: Sequence[DeviceActivity], cause: GapCause) -> DeviceActivity | None:
    able = accelerators(devices)
    if not able and cause in ("input", "python"):
        # CPUs whose executors stand for a device.
        able = [device for device in devices if device.span_ms > 0]
    return worst(able, lambda each: cause_percent(each, cause))


# Input

INPUT_GAP = _idle_rule(
    title="Have batches ready before the device needs them",
    why="A kernel can't run before its batch has arrived.",
    fix="Speed up the iterator that is named, by parallel calls, parallel reads or a cache.",
    thresholds=(INPUT_IDLE,),
    frees=("input_wait",),
)
_TUNE = (
    "Try `num_parallel_calls=tf.data.AUTOTUNE` on `map` and `interleave`, reading files in "
    "parallel, and `.cache()`."
)
_Behind = tuple[str | None, str | None, int | None, str | None]


@INPUT_GAP.found_on_devices_by
def _check_input_gap(
    devices: Sequence[DeviceActivity], framework: Framework, session: Session | None
) -> Iterator[Finding]:
    device = _idlest(devices, "input")
    if device is None:
        return
    # The operation that worked longest in the gaps, as far as it is known.
    unknown: _Behind = (None, None, None, None)
    spent: dict[_Behind, float] = defaultdict(float)
    for gap, ms in held_up(device, "input"):
        spent[gap.op_id, gap.file, gap.line, gap.iterator] += ms
    spent.pop(unknown, None)
    op_id, file, line, iterator = max(spent, key=lambda one: spent[one], default=unknown)
    percent = cause_percent(device, "input")
    evidence = {**idle_evidence(device, "input"), "iterator": iterator}
    finding = partial(INPUT_GAP.finding, op_id=op_id, place=(file, line), evidence=evidence)
    if percent < INPUT_IDLE.value:
        return
    where = f" at {file}:{line}" if file and line else ""
    who = f" Meanwhile, `{iterator}`{where} works longest." if iterator else ""
    waits = f"{full_name(device)} waits for input {percent:.0f} % of the time.{who}"
    advice = f"{INPUT_GAP.advice_for(framework, _TUNE)} {waits}"
    at_most = without_idle(device, device.causes_ms.get("input", 0.0))
    if session is None:
        yield finding("fail", advice, speedup_at_most=at_most, untried=PROFILE_ALONE)
        return
    edit = prefetched_to(session, device, f"{INPUT_GAP.id}:prefetch")
    finding = partial(
        finding, untried="Changes that would help are tried with the findings on the pipeline."
    )
    edit = edit if accelerators(devices) else None
    if session.breakdown is None:
        yield finding("fail", advice, speedup_at_most=at_most, edit=edit)
        return
    # Where steps without the profiler hardly wait for input, it only informs.
    weight, free = weigh_input(session), ceiling(session)
    yield finding(
        weight.status,
        weight.before(advice),
        weight=weight,
        speedup_at_most=None if free is None or at_most is None else min(at_most, free),
        edit=edit if weight.worth_trying else None,
    )


# Launches

LAUNCH_BOUND = _idle_rule(
    title="Launch fewer, larger kernels",
    why="A launch takes the host some microseconds, whatever the kernel does. A device that "
    "finishes kernels faster than the host launches them runs at the host's pace.",
    fix="Use `jit_compile=True`, `steps_per_execution=16`, one stacked table instead of many, or "
    "a larger batch. XLA compiles once for each shape and changes the last digits.",
    thresholds=(LAUNCH_IDLE, DELAY, INPUT_GAPS, UNDER_FLOOR, PERTURBED),
    effect="same up to order or rounding",
    frees=("dispatch",),
)
_FEWER = (
    "Fuse kernels with `compile(..., jit_compile=True)`, or `@tf.function(jit_compile=True)` on "
    "the step; `steps_per_execution=16` saves Python between steps."
)


@LAUNCH_BOUND.found_on_devices_by
def _check_launch_bound(
    devices: Sequence[DeviceActivity], framework: Framework, session: Session | None
) -> Iterator[Finding]:
    device = _idlest(devices, "launch")
    launches = device.launches if device is not None else None
    fewer = LAUNCH_BOUND.advice_for(framework, _FEWER)
    delay, ahead = launches.median_delay_us if launches else None, None
    if delay is not None and delay >= DELAY.value:
        ahead = (
            f"The median kernel starts {delay:.0f} us after its launch: most kernels are launched "
            f"ahead of time, and the device waits only for some. {fewer}"
        )
    edit = None
    if session is not None:
        edit = compiled_by_xla(session, f"{LAUNCH_BOUND.id}:xla")
        edit = edit or several_steps_a_call(session, f"{LAUNCH_BOUND.id}:steps")
    return _of_cause(
        LAUNCH_BOUND,
        devices,
        "launch",
        f"{fewer} A larger batch makes each kernel longer.",
        session,
        limit=LAUNCH_IDLE,
        evidence={
            "median_delay_us": delay,
            "median_kernel_us": launches.median_kernel_us if launches else None,
        },
        edit=edit,
        informs=ahead,
    )


# Results that are waited for, and Python

SYNC_POINT = _idle_rule(
    title="Read results less often than every step",
    why="Reading a value waits until the device has computed it; nothing is launched meanwhile.",
    fix="Keep loss and metrics on the device, and read them every hundredth step. Progress bars "
    "and logs then update less often.",
    thresholds=(SYNC_IDLE, INPUT_GAPS, PERTURBED),
    frees=("device_wait",),
    untried="The lines that read results have to be changed in your code.",
)
_READ_LESS = (
    "Don't read the loss or metrics in every step (`.numpy()`, `float(loss)`, `print`): update a "
    "`keras.metrics.Mean`, and call `.result()` every hundredth step."
)


@SYNC_POINT.found_on_devices_by
def _check_sync_point(
    devices: Sequence[DeviceActivity], framework: Framework, session: Session | None
) -> Iterator[Finding]:
    advice = SYNC_POINT.advice_for(framework, _READ_LESS)
    return _of_cause(SYNC_POINT, devices, "sync", advice, session, limit=SYNC_IDLE)


PYTHON_GAP = _idle_rule(
    title="Run less Python between steps",
    why="Callbacks, logging and metrics run between two steps; nothing is launched meanwhile.",
    fix="Do this work every hundredth step or in another thread, or use `steps_per_execution=16`. "
    "Logs and callbacks then see fewer steps.",
    thresholds=(PYTHON_IDLE, ONE_PAUSE, INPUT_GAPS, PERTURBED),
    frees=("python",),
)
_LESS_PYTHON = (
    "Log and evaluate metrics every hundredth step, or in another thread; `compile(..., "
    "steps_per_execution=16)` starts steps and calls callbacks once every 16 steps."
)


@PYTHON_GAP.found_on_devices_by
def _check_python_gap(
    devices: Sequence[DeviceActivity], framework: Framework, session: Session | None
) -> Iterator[Finding]:
    device = _idlest(devices, "python")
    return _of_cause(
        PYTHON_GAP,
        devices,
        "python",
        PYTHON_GAP.advice_for(framework, _LESS_PYTHON),
        session,
        limit=PYTHON_IDLE,
        edit=several_steps_a_call(session, f"{PYTHON_GAP.id}:steps") if session else None,
        informs=_one_pause(device) if device is not None else None,
    )


def _one_pause(device: DeviceActivity) -> str | None:
    gap, ms = max(held_up(device, "python"), key=lambda part: part[1], default=(None, 0.0))
    if gap is None or 100.0 * ms < ONE_PAUSE.value * device.causes_ms.get("python", 0.0):
        return None
    what = f" (`{gap.doing.removeprefix('$')}`)" if gap.doing else ""
    return (
        f"Most of it is one pause of {exact_time(ms)}{what}. How much it matters depends on how "
        "often it happens, which this profile can't show."
    )
