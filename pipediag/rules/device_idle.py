"""A device that is idle, by what the host did meanwhile.

Waits for input and for Python hold for a CPU too, whose executor's operations stand for a device.
Launches and waits for results are judged on accelerators only: on a CPU an operation is called,
and the executor works while the loop waits for it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from pipediag.facts.devices import (
    NO_ACCELERATOR,
    NO_DEVICE,
    accelerators,
    accelerators_or_cpus,
    cause_percent,
    full_name,
    held_up,
    idle_evidence,
    longest_doing,
    percent_of_span,
    worst,
)
from pipediag.facts.limits import (
    INPUT_FINE_PERCENT,
    INPUT_GAPS,
    PERTURBED,
    Threshold,
)
from pipediag.facts.names import exact_time
from pipediag.facts.pipeline import last_operation
from pipediag.rules.bounds import ceiling
from pipediag.rules.model_edits import (
    NO_MODEL_EDIT,
    PROFILE_ALONE,
    compiled_by_xla,
    several_steps_a_call,
)
from pipediag.rules.relevance import weigh_input
from pipediag.rules.rule import Meta
from pipediag.session.devices import DeviceActivity
from pipediag.session.edits import Edit, Insert
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.vocabulary import Framework, GapCause, Scalar

_OF_SPAN = "% of the device's span"
UNDER_FLOOR = Threshold(
    "idle in short gaps, if most of it", 15.0, _OF_SPAN, "own choice: their cause is unknown"
)
INPUT_IDLE = Threshold(
    "idle for input", INPUT_FINE_PERCENT, _OF_SPAN, "XProf: from 5 % moderately input-bound"
)
LAUNCH_IDLE = Threshold(
    "idle for launches", 15.0, _OF_SPAN, "XProf: kernel launch over 15 % of the step is high"
)
DELAY = Threshold(
    "median time of launch to start", 10.0, "us", "own choice: above it kernels are launched ahead"
)
SHORT = Threshold(
    "kernels shorter than their launch", 50.0, "% of the kernels", "own choice: the queue runs dry"
)
KERNELS_IDLE = Threshold(
    "idle for launches of short kernels", 5.0, _OF_SPAN, "own choice; XProf calls 3 % moderate"
)
FEWEST = Threshold(
    "kernels with a known launch", 100.0, "kernels", "own choice: their share is known to some 10 %"
)
SYNC_IDLE = Threshold(
    "idle after a read-back", 5.0, _OF_SPAN, "XProf calls copies to the host moderate from 5 %"
)
PYTHON_IDLE = Threshold(
    "idle for Python", 15.0, _OF_SPAN, "XProf: other host time over 15 % of the step is high"
)
ONE_PAUSE = Threshold(
    "longest gap", 50.0, "% of the idle time for Python", "own choice: most of it is then one pause"
)
SHORTEST_HOST_GAP_US = 50.0
"""Waits for input, for Python or for a result leave no shorter gaps, so none hides among them."""

INPUT_GAP = Meta(
    id="device-idle",
    name="Input gaps",
    title_failed="Have batches ready before the device needs them",
    title_passed="The device hardly waits for input",
    why="No kernel can run before its batch is there.",
    edit="Speed up the iterator that is named: parallel calls, files read in parallel, a cache.",
    cost="More CPU or more memory for the pipeline.",
    needs=("devices",),
    thresholds=(INPUT_IDLE, UNDER_FLOOR),
    frees=("input_wait",),
    sees_class_only=True,
    tried_when_informing=True,
)
LAUNCH_BOUND = replace(
    INPUT_GAP,
    name="Launch-bound device",
    title_failed="Launch fewer or larger kernels, further ahead of the device",
    title_passed="Kernels are launched ahead of the device",
    why="A launch takes the host some microseconds, whatever the kernel does: a device that ends "
    "kernels sooner than the host launches them runs at the host's pace.",
    edit="`jit_compile=True`, `steps_per_execution=16`, one stacked table in place of many, or a "
    "larger batch.",
    cost="XLA compiles once for each shape and changes the last digits.",
    thresholds=(
        LAUNCH_IDLE,
        DELAY,
        SHORT,
        KERNELS_IDLE,
        FEWEST,
        INPUT_GAPS,
        UNDER_FLOOR,
        PERTURBED,
    ),
    effect_on_results="same up to order or rounding",
    frees=("dispatch",),
)
SYNC_POINT = replace(
    INPUT_GAP,
    name="Synchronisation points",
    title_failed="Read results less often than in every step",
    title_passed="The host's waits for results hardly leave the device idle",
    why="Reading a value waits until the device has computed it, with nothing launched meanwhile.",
    edit="Keep loss and metrics on the device, and read them every hundredth step.",
    cost="Progress and logs show values less often.",
    thresholds=(SYNC_IDLE, INPUT_GAPS, UNDER_FLOOR, PERTURBED),
    frees=("device_wait",),
    tried_when_informing=False,
    untried="It needs the lines that read results changed in your code.",
)
PYTHON_GAP = replace(
    INPUT_GAP,
    name="Python between steps",
    title_failed="Run less Python between steps",
    title_passed="Python between steps hardly holds the device up",
    why="Callbacks, logging and metrics run between two steps, with nothing launched meanwhile.",
    edit="Do it every hundredth step, or in another thread; `steps_per_execution=16`.",
    cost="Logs and callbacks see fewer steps.",
    thresholds=(PYTHON_IDLE, ONE_PAUSE, INPUT_GAPS, UNDER_FLOOR, PERTURBED),
    frees=("python",),
)


def input_first_on(device: DeviceActivity) -> str | None:
    """Return why time saved on the host would be waited away on this device, or None."""
    percent = cause_percent(device, "input")
    if percent < INPUT_GAPS.value:
        return None
    return (
        f"The device is idle for input {percent:.0f} % of its time, and would wait longer for what "
        "is saved elsewhere: deal with the input first."
    )


def without_idle(device: DeviceActivity, saved_ms: float) -> float | None:
    """Return the span over the span without `saved_ms` of it, by Amdahl's law."""
    left = device.span_ms - saved_ms
    return round(max(1.0, device.span_ms / left), 3) if left > 0 else None


UNTRIED = (
    "No pipeline of tf.data feeds a single device here, so that nothing can be copied to it ahead."
)


def prefetched_to(session: Session, device: DeviceActivity, rule: str) -> Edit | None:
    """Return `prefetch_to_device` behind everything else; None without a pipeline.

    None too under a strategy, which copies to its devices by itself: `prefetch_to_device` serves
    one device.
    """
    loop, last = session.diagnosed_loop(), last_operation(session)
    if loop is None or loop.kind == "distributed" or loop.replicas > 1 or last is None:
        return None
    number = re.search(r"\d+$", device.name)
    name = f"/gpu:{number.group() if number else 0}"
    return Edit(
        id=rule,
        label=f"prefetch_to_device({name}) at the end of the pipeline",
        changes=(Insert(last.id, "prefetch_to_device", {"device": name}),),
    )


def _unexplained(device: DeviceActivity, shortest_us: float = 0.0) -> str | None:
    """Return why a cause of gaps from this length on can't be ruled out, or None."""
    percent, floor_us = percent_of_span(device, device.noise_ms), device.gap_floor_us
    mostly = 2 * device.noise_ms >= device.idle_ms
    if percent < UNDER_FLOOR.value or not mostly or floor_us <= shortest_us:
        return None
    floor = f"{floor_us / 1000:g} ms" if floor_us >= 1000 else f"{floor_us:g} us"
    return (
        f"{percent:.3g} % of the time is idle in gaps under {floor}, whose cause was not looked "
        "for; lower `--gap-floor` of `pipediag trace`."
    )


def _of_cause(
    meta: Meta,
    device: DeviceActivity,
    cause: GapCause,
    limit: Threshold,
    advice: str,
    evidence: Mapping[str, Scalar],
    *,
    session: Session | None,
    edit: Edit | None = None,
    shortest_us: float = 0.0,
    informs: str | None = None,
    little: str | None = None,
) -> list[Finding]:
    """Return the finding on a device that is idle for one cause, as far as that matters.

    The profiler lengthens what the host does and hardly what a kernel takes, so it makes gaps:
    where it slowed the steps much, a failure is in doubt. Its edit is tried all the same.

    Args:
        informs: why it only informs, where that is so.
        little: what to say in place of a pass where it is idle for less.
    """
    evidence = {**idle_evidence(device, cause), **evidence}
    perturbed = session.perturbation if session is not None else None
    ratio = (perturbed.ratio if perturbed is not None else None) or 1.0
    if ratio >= PERTURBED.value:
        evidence["profiled_step_ratio"] = ratio
    finding = partial(meta.finding, evidence=evidence, edit=edit)
    percent = cause_percent(device, cause)
    if percent < limit.value:
        why = _unexplained(device, shortest_us)
        if why or not little:
            return [finding("inconclusive" if why else "pass", why or "")]
        return [finding("informative", little)]
    if informs := input_first_on(device) or informs:
        return [finding("informative", informs)]
    if ratio >= PERTURBED.value:
        doubt = (
            f"The profiler made steps {ratio:.1f} times as long: the host may be quicker without."
        )
        return [finding("informative" if edit else "inconclusive", doubt)]
    return [
        finding(
            "fail",
            f"{full_name(device)} is idle {percent:.0f} % of the time {advice}",
            speedup_at_most=without_idle(device, device.causes_ms.get(cause, 0.0)),
            untried=meta.untried or (PROFILE_ALONE if session is None else NO_MODEL_EDIT),
        )
    ]


# Input

_TUNED = "num_parallel_calls=tf.data.AUTOTUNE"
_READ_AT_ONCE = f"Read several files at once: `files.interleave(read, {_TUNED})`."
_BY_PREFIX = {
    "ParallelMap": "The map runs in parallel: make it cheaper, map whole batches, or cache them.",
    # TensorFlow fuses map and batch, also where the map runs a single call at a time.
    "MapAndBatch": "Give the map more parallel calls, map whole batches, or cache its results.",
    "Map": f"Give the map `{_TUNED}`, or cache its results where they never change.",
    "ParallelInterleave": "Files are read in parallel: use fewer, larger records, or cache.",
    "Interleave": f"Give the interleave `{_TUNED}`.",
    "FlatMap": f"Replace the flat_map by an interleave with `{_TUNED}`.",
    "TFRecord": _READ_AT_ONCE,
    "TextLine": _READ_AT_ONCE,
    "FixedLengthRecord": _READ_AT_ONCE,
    "Generator": "Yield whole batches from the generator, or read files that TensorFlow reads.",
    "Shuffle": "Shuffle before the costly maps, so that the buffer fills with cheap elements.",
    "Batch": f"Give the batch `{_TUNED}`, or start from slices that are batches already.",
}
"""Advice by the name of an iterator of tf.data; the first prefix that fits decides."""
_ANY = f"Try `{_TUNED}` on map and interleave, reading files in parallel, and `.cache()`."
_LOADER: Mapping[Framework, str] = {
    "jax": "Make batches in worker processes, several steps ahead (`grain`, or tf.data).",
    "pytorch": "Give the DataLoader `num_workers` (half the cores are a start), "
    "`persistent_workers=True` and a larger `prefetch_factor`; make `__getitem__` cheaper.",
}
_WORKERS = "_MultiProcessingDataLoaderIter"
"""The class of PyTorch that hands over batches made by workers."""
_MORE_WORKERS = (
    "Give the DataLoader more `num_workers` while cores are free, a larger `prefetch_factor` where "
    "batches differ in cost, and make `__getitem__` cheaper."
)
_Behind = tuple[str | None, str | None, int | None, str | None]


def check_input_gap(
    devices: Sequence[DeviceActivity], framework: Framework, session: Session | None
) -> list[Finding]:
    """Return a finding on the device that waits longest for input."""
    device = worst(accelerators_or_cpus(devices), lambda each: cause_percent(each, "input"))
    if device is None:
        return [INPUT_GAP.finding("not-applicable", NO_DEVICE)]
    # The operation that worked longest in the gaps, as far as it is known.
    unknown: _Behind = (None, None, None, None)
    spent: dict[_Behind, float] = defaultdict(float)
    for gap, ms in held_up(device, "input"):
        spent[gap.op_id, gap.file, gap.line, gap.iterator] += ms
    spent.pop(unknown, None)
    (op_id, file, line, iterator), ms = max(
        spent.items(), key=lambda item: item[1], default=(unknown, 0.0)
    )
    percent = cause_percent(device, "input")
    evidence = {
        **idle_evidence(device, "input"),
        "iterator": iterator,
        "iterator_gap_ms": ms if iterator or line else None,
    }
    finding = partial(INPUT_GAP.finding, op_id=op_id, place=(file, line), evidence=evidence)
    if percent < INPUT_IDLE.value:
        why = _unexplained(device, SHORTEST_HOST_GAP_US)
        return [finding("inconclusive" if why else "pass", why or "")]
    where = f" at {file}:{line}" if file and line else ""
    who = f" `{iterator}`{where} works longest meanwhile." if iterator else ""
    advice = (
        f"{_remedy(device, iterator, framework)} {full_name(device)} is idle for input "
        f"{percent:.0f} % of the time.{who}"
    )
    at_most = without_idle(device, device.causes_ms.get("input", 0.0))
    if session is None:
        return [finding("fail", advice, speedup_at_most=at_most, untried=PROFILE_ALONE)]
    untried = "What would help is tried with the findings on the pipeline."
    gpu = bool(accelerators(devices))
    edit = prefetched_to(session, device, f"{INPUT_GAP.id}:prefetch") if gpu else None
    if session.breakdown is None:
        return [finding("fail", advice, speedup_at_most=at_most, edit=edit, untried=untried)]
    # Where steps without the profiler hardly wait for input, it only informs.
    weight, free = weigh_input(session), ceiling(session)
    return [
        finding(
            weight.status,
            advice if weight.status == "fail" else weight.sentence,
            evidence={**evidence, **weight.evidence},
            speedup_at_most=None if free is None or at_most is None else min(at_most, free),
            edit=edit if weight.worth_trying else None,
            untried=untried,
        )
    ]


def _remedy(device: DeviceActivity, iterator: str | None, framework: Framework) -> str:
    """Return the advice for the iterator of tf.data, which may feed any framework, or the loader's.

    An iterator such as `Root::Prefetch::MapV2` is judged by its last part.
    """
    if iterator is None:
        fetching = longest_doing(device, "input")
        workers = fetching is not None and _WORKERS in fetching[0]
        return _MORE_WORKERS if workers else _LOADER.get(framework, _ANY)
    last = iterator.rsplit("::", 1)[-1]
    return next((text for prefix, text in _BY_PREFIX.items() if last.startswith(prefix)), _ANY)


# Launches

_FUSE: Mapping[Framework, str] = {
    "tensorflow": "fuse them with `compile(..., jit_compile=True)`, or `@tf.function("
    "jit_compile=True)` on the step; stack embedding tables of one width",
    "jax": "fuse them with `jax.jit` around the whole step; use `jax.vmap` in place of a loop",
    "pytorch": "fuse them with `torch.compile`, and give the optimiser `fused=True`",
}
_FEWER: Mapping[Framework, str] = {
    "tensorflow": "`compile(..., jit_compile=True)` (or `@tf.function(jit_compile=True)`) leaves "
    "fewer, larger ones; `steps_per_execution=16` saves Python between steps; "
    "`TF_GPU_THREAD_MODE=gpu_private` gives launches threads of their own",
    "jax": "`jax.jit` the whole step, gradients and optimiser included; `jax.lax.scan` over "
    "several steps starts them with one call",
    "pytorch": '`torch.compile(model, mode="reduce-overhead")` leaves fewer, larger ones, and '
    "replays them as CUDA graphs",
}
_RARER: Mapping[Framework, str] = {
    "tensorflow": "`steps_per_execution` in compile makes those rarer",
    "jax": "`jax.lax.scan` over several steps makes those rarer",
    "pytorch": 'CUDA graphs (`torch.compile(mode="reduce-overhead")`) make those shorter',
}


def check_launch_bound(
    devices: Sequence[DeviceActivity], framework: Framework, session: Session | None
) -> list[Finding]:
    """Return a finding on the accelerator that waits longest for launches.

    Where most kernels are shorter than their launch, a little idle time counts, and a finding that
    informs where there is next to none.
    """
    device = worst(accelerators(devices), lambda each: cause_percent(each, "launch"))
    if device is None:
        return [LAUNCH_BOUND.finding("not-applicable", NO_ACCELERATOR)]
    launches, doing = device.launches, longest_doing(device, "launch")
    known = launches is not None and launches.matched >= FEWEST.value
    short = launches.shorter_than_launch_percent if launches is not None and known else None
    mostly_short = short is not None and short >= SHORT.value
    delay, ahead = launches.median_delay_us if launches else None, None
    if delay is not None and delay >= DELAY.value and not mostly_short:
        ahead = (
            f"The median kernel starts {delay:.0f} us after its launch: most are launched ahead, "
            f"and the device waits for some. {_RARER[framework]}."
        )
    advice = f"until the host launches the next kernel: {_FEWER[framework]}."
    if mostly_short:
        advice = (
            f"for launches, and {short:.0f} % of its kernels end sooner than the next could be "
            f"launched: {_FUSE[framework]}."
        )
    edit = None
    if session is not None:
        edit = compiled_by_xla(session, f"{LAUNCH_BOUND.id}:xla")
        edit = edit or several_steps_a_call(session, f"{LAUNCH_BOUND.id}:steps")
    return _of_cause(
        LAUNCH_BOUND,
        device,
        "launch",
        KERNELS_IDLE if mostly_short else LAUNCH_IDLE,
        f"{advice} A larger batch makes each kernel longer.",
        {
            "median_delay_us": delay,
            "median_kernel_us": launches.median_kernel_us if launches else None,
            "median_launch_us": launches.median_launch_us if launches else None,
            "shorter_than_launch_percent": short,
            "kernels_per_s": launches.per_s if launches else None,
            "launching_thread_in": doing[0] if doing else None,
        },
        session=session,
        edit=edit,
        informs=ahead,
        little="Most kernels are shorter than their launch." if mostly_short else None,
    )


# Results that are waited for, and Python

_READ_LESS: Mapping[Framework, str] = {
    "tensorflow": "(`.numpy()`, `float(loss)`, `print`). Update a `keras.metrics.Mean` and call "
    "`.result()` every hundredth step",
    "jax": "(`float(loss)`, `.item()`, `print`, `block_until_ready()`). Let the step add them up, "
    "and read the sums every hundredth step",
    "pytorch": "(`.item()`, `.cpu()`, `if` on a tensor). Add up `loss.detach()` on the device, and "
    "call `.item()` every hundredth step",
}
_RARELY = "log and evaluate metrics every hundredth step, or in another thread"
_LESS_PYTHON: Mapping[Framework, str] = {
    "tensorflow": "let callbacks and logging work every hundredth step or in `on_epoch_end`; "
    "`compile(..., steps_per_execution=16)` calls them, and starts steps, once in 16",
    "jax": f"{_RARELY}; `jax.lax.scan` over several steps leaves Python once for all of them",
    "pytorch": f"{_RARELY}; collate and transform batches in the DataLoader's workers",
}


def check_sync_point(
    devices: Sequence[DeviceActivity], framework: Framework, session: Session | None
) -> list[Finding]:
    """Return a finding on the accelerator that such waits cost most."""
    device = worst(accelerators(devices), lambda each: cause_percent(each, "sync"))
    if device is None:
        return [SYNC_POINT.finding("not-applicable", NO_ACCELERATOR)]
    doing = longest_doing(device, "sync")
    steps = {gap.step for gap, _ in held_up(device, "sync") if gap.step is not None}
    read_back = next((each for each in device.copies if each.direction == "device_to_host"), None)
    return _of_cause(
        SYNC_POINT,
        device,
        "sync",
        SYNC_IDLE,
        f"around waits for its results{_mostly_in(doing)}: don't read the loss or metrics in every "
        f"step {_READ_LESS[framework]}.",
        {
            "steps_with_such_gaps": len(steps),
            "copies_to_host": read_back.count if read_back else None,
            "waiting_thread_in": doing[0] if doing else None,
        },
        session=session,
        shortest_us=SHORTEST_HOST_GAP_US,
    )


def _mostly_in(doing: tuple[str, float] | None) -> str:
    return f", mostly in `{doing[0]}`" if doing else ""


def check_python_gap(
    devices: Sequence[DeviceActivity], framework: Framework, session: Session | None
) -> list[Finding]:
    """Return a finding on the device that Python holds up longest."""
    device = worst(accelerators_or_cpus(devices), lambda each: cause_percent(each, "python"))
    if device is None:
        return [PYTHON_GAP.finding("not-applicable", NO_DEVICE)]
    doing = longest_doing(device, "python")
    return _of_cause(
        PYTHON_GAP,
        device,
        "python",
        PYTHON_IDLE,
        f"while Python runs between steps{_mostly_in(doing)}: {_LESS_PYTHON[framework]}.",
        {
            "training_thread_in": doing[0] if doing else None,
            "there_ms": doing[1] if doing else None,
        },
        session=session,
        edit=several_steps_a_call(session, f"{PYTHON_GAP.id}:steps") if session else None,
        shortest_us=SHORTEST_HOST_GAP_US,
        informs=_one_pause(device),
    )


def _one_pause(device: DeviceActivity) -> str | None:
    """Return that most of it is a single gap, as a sentence, or None."""
    gap, ms = max(held_up(device, "python"), key=lambda part: part[1], default=(None, 0.0))
    if gap is None or 100.0 * ms < ONE_PAUSE.value * device.causes_ms["python"]:
        return None
    where = f" in step {gap.step}" if gap.step is not None else ""
    what = f" (`{gap.doing.removeprefix('$')}`)" if gap.doing else ""
    return (
        f"Most of it is one pause of {exact_time(ms)}{where}{what}. It weighs as often as it "
        "comes, which this profile can't tell."
    )
