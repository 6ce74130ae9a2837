"""A device that is idle, by what the host did meanwhile.

Waits for input and for Python hold for a CPU too, whose executor's operations stand for a device.
Launches and waits for results are judged on accelerators only: on a CPU an operation is called,
and the executor works while the loop waits for it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
    INPUT_BOUND_PERCENT,
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
from pipediag.rules.rule import Meta, with_edit
from pipediag.session.devices import DeviceActivity
from pipediag.session.edits import Edit, Insert
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.vocabulary import Framework, GapCause, Scalar

_OF_SPAN = "% of the device's span"
UNDER_FLOOR = Threshold(
    "idle in gaps too short to be looked into, where they are most of the idle time, above which "
    "their cause counts as unknown",
    15.0,
    _OF_SPAN,
    "own choice, equal to the limit on idle time for launches",
)
INPUT_IDLE = Threshold(
    "idle for input",
    INPUT_FINE_PERCENT,
    _OF_SPAN,
    "XProf's input-pipeline analysis: from 5 % moderately input-bound",
)
HIGHLY = Threshold(
    "idle for input that is called the bottleneck",
    INPUT_BOUND_PERCENT,
    _OF_SPAN,
    "XProf's input-pipeline analysis: from 20 % highly input-bound",
)
LAUNCH_IDLE = Threshold(
    "idle for launches",
    15.0,
    _OF_SPAN,
    "XProf: kernel launch over 15 % of the step is high, over 3 % moderate",
)
DELAY = Threshold(
    "median time from a launch to its kernel's start",
    10.0,
    "us",
    "own choice: from it on it only informs, as kernels had been launched ahead",
)
SHORT = Threshold(
    "kernels that ran for less time than their launch took",
    50.0,
    "% of the kernels with a known launch",
    "own choice: with most kernels shorter than their launch the host can't keep the queue filled",
)
KERNELS_IDLE = Threshold(
    "idle for launches of short kernels",
    5.0,
    _OF_SPAN,
    "own choice, equal to the limit on input wait; XProf calls 3 % moderate and 15 % high",
)
FEWEST = Threshold(
    "kernels with a known launch",
    100.0,
    "kernels",
    "own choice: their share is then known to about ten percent points",
)
SYNC_IDLE = Threshold(
    "idle after a read-back or synchronisation",
    5.0,
    _OF_SPAN,
    "XProf calls output, the copies back to the host, moderate from 5 % of the step",
)
PYTHON_IDLE = Threshold(
    "idle for Python",
    15.0,
    _OF_SPAN,
    "XProf: other host time over 15 % of the step is high, over 3 % moderate",
)
ONE_PAUSE = Threshold(
    "longest gap above which it is one pause and not every step",
    50.0,
    "% of the idle time for Python",
    "own choice: the other gaps together are then less than that one",
)
SHORTEST_HOST_GAP_US = 50.0
"""Waits for input, for Python or for a result leave no shorter gaps, so none hides among them."""

INPUT_GAP = Meta(
    id="device-idle",
    name="Input gaps",
    title_failed="Have batches ready before the device needs them",
    title_passed="The device hardly waits for input",
    why="No kernel can run before its batch is there.",
    edit="Speed up the iterator that is named: parallel calls, reading files in parallel, a cache.",
    cost="More CPU or more memory for the pipeline.",
    needs=("devices",),
    thresholds=(INPUT_IDLE, HIGHLY, UNDER_FLOOR),
    severity="warn",
    effect_on_results="same results",
    frees=("input_wait",),
    sees_class_only=True,
    tried_when_informing=True,
)
SMALL_KERNELS = replace(
    INPUT_GAP,
    name="Small kernels",
    title_failed="Fuse kernels that are shorter than their launch",
    title_passed="Kernels are long enough for their launches",
    why="A launch takes the host some microseconds, whatever the kernel does. Optimisers and "
    "element-wise layers launch hundreds of short kernels a step.",
    edit="`jit_compile=True` fuses them; one stacked variable or table in place of many; a larger "
    "batch.",
    cost="XLA compiles once for each shape and changes the last digits.",
    thresholds=(SHORT, KERNELS_IDLE, FEWEST, INPUT_GAPS, UNDER_FLOOR, PERTURBED),
    effect_on_results="same up to order or rounding",
    frees=("dispatch",),
)
LAUNCH_BOUND = replace(
    SMALL_KERNELS,
    name="Launch-bound device",
    title_failed="Launch fewer or larger kernels, further ahead of the device",
    title_passed="Kernels are launched ahead of the device",
    why="Where the host takes longer to start an operation than the device to finish one, the "
    "device's queue is empty and it runs at the host's pace.",
    edit="`jit_compile=True`, `steps_per_execution=16`, TF_GPU_THREAD_MODE=gpu_private, or a "
    "larger batch.",
    thresholds=(LAUNCH_IDLE, DELAY, INPUT_GAPS, UNDER_FLOOR, PERTURBED),
)
SYNC_POINT = replace(
    INPUT_GAP,
    name="Synchronisation points",
    title_failed="Read results less often than in every step",
    title_passed="The host's waits for results hardly leave the device idle",
    why="Reading a value on the host waits until the device has computed it. Nothing was launched "
    "meanwhile, so the device then waits for the host in turn.",
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
    why="Callbacks, logging, metrics in NumPy and progress bars run between two steps, and nothing "
    "is launched meanwhile.",
    edit="Do it every hundredth step, in `on_epoch_end` or in another thread; "
    "`steps_per_execution=16` where callbacks may run less often.",
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
    shortest_us: float = 0.0,
    informs: str | None = None,
) -> list[Finding]:
    """Return the finding on a device that is idle for one cause, as far as that matters.

    Args:
        informs: why it only informs, where that is so.
    """
    evidence = {**idle_evidence(device, cause), **evidence}
    finding = partial(meta.finding, evidence=evidence)
    percent = cause_percent(device, cause)
    if percent < limit.value:
        why = _unexplained(device, shortest_us)
        return [finding("inconclusive" if why else "pass", why or "")]
    if informs := input_first_on(device) or informs:
        return [finding("informative", informs)]
    return [
        finding(
            "fail",
            f"{full_name(device)} is idle {percent:.0f} % of the time {advice}",
            speedup_at_most=without_idle(device, device.causes_ms.get(cause, 0.0)),
            untried=meta.untried or PROFILE_ALONE,
        )
    ]


def _tried(
    meta: Meta, session: Session, found: Sequence[Finding], edit: Edit | None
) -> list[Finding]:
    """Return the findings with the edit; in doubt where the profiler slowed the steps much.

    The profiler lengthens what the host does and hardly what a kernel takes, so it makes gaps. An
    edit is tried all the same, which needs no profiler.
    """
    found = [with_edit(meta, each, edit, meta.untried or NO_MODEL_EDIT) for each in found]
    ratio = session.perturbation.ratio if session.perturbation else None
    if ratio is None or ratio < PERTURBED.value:
        return found
    return [
        finding
        if finding.status != "fail"
        else meta.finding(
            "inconclusive" if finding.edit is None else "informative",
            f"The profiler made steps {ratio:.1f} times as long, so the host may hold the device "
            "up less without it.",
            evidence={**finding.evidence, "profiled_step_ratio": ratio},
            edit=finding.edit,
        )
        for finding in found
    ]


# Input

_READ_IN_PARALLEL = (
    "Read several files at once: `files.interleave(read, num_parallel_calls=tf.data.AUTOTUNE)`."
)
_BY_PREFIX = {
    "ParallelMap": "The map runs in parallel already: make its function cheaper, map whole "
    "batches, or cache its results.",
    # TensorFlow fuses map and batch, also where the map runs a single call at a time.
    "MapAndBatch": "Give the map more parallel calls if it calls Python or keeps state, make its "
    "function cheaper, map whole batches, or cache its results.",
    "Map": "Give the map `num_parallel_calls=tf.data.AUTOTUNE`, or cache its results where they "
    "never change.",
    "ParallelInterleave": "Files are read in parallel already: use fewer, larger records, or "
    "cache.",
    "Interleave": "Give the interleave `num_parallel_calls=tf.data.AUTOTUNE`.",
    "FlatMap": "Replace the flat_map by an interleave with `num_parallel_calls=tf.data.AUTOTUNE`.",
    "TFRecord": _READ_IN_PARALLEL,
    "TextLine": _READ_IN_PARALLEL,
    "FixedLengthRecord": _READ_IN_PARALLEL,
    "Generator": "Yield whole batches from the Python generator, or replace it by files that "
    "TensorFlow reads.",
    "Shuffle": "Shuffle before the costly maps, so that the buffer fills with cheap elements.",
    "Batch": "Batching copies single elements: `.batch(..., num_parallel_calls=tf.data.AUTOTUNE)`, "
    "or start from slices that are batches already.",
}
"""Advice by the name of an iterator of tf.data; the first prefix that fits decides."""
_ANY = (
    "Try the common remedies: `num_parallel_calls=tf.data.AUTOTUNE` on map and interleave, reading "
    "files in parallel, and `.cache()`."
)
_LOADER: Mapping[Framework, str] = {
    "jax": "Load and transform batches in worker processes, several steps ahead (`grain`, or "
    "tf.data with `num_parallel_calls` and `.prefetch`).",
    "pytorch": "Give the DataLoader `num_workers` (half the cores are a start), "
    "`persistent_workers=True` and a larger `prefetch_factor`; make `__getitem__` cheaper.",
}
_WORKERS = "_MultiProcessingDataLoaderIter"
"""The class of PyTorch that hands over batches made by workers."""
_MORE_WORKERS = (
    "The DataLoader has workers already: give it more `num_workers` while cores are free, a larger "
    "`prefetch_factor` where batches differ in cost, and make `__getitem__` cheaper."
)


@dataclass(frozen=True)
class _Behind:
    """The operation that worked longest in the gaps, as far as it is known."""

    op_id: str | None = None
    file: str | None = None
    line: int | None = None
    iterator: str | None = None


def devices_input_gap(
    devices: Sequence[DeviceActivity], framework: Framework = "tensorflow"
) -> list[Finding]:
    """Return a finding on the device that waits longest for input."""
    device = worst(accelerators_or_cpus(devices), lambda each: cause_percent(each, "input"))
    if device is None:
        return [INPUT_GAP.finding("not-applicable", NO_DEVICE)]
    spent: dict[_Behind, float] = defaultdict(float)
    for gap, ms in held_up(device, "input"):
        spent[_Behind(gap.op_id, gap.file, gap.line, gap.iterator)] += ms
    spent.pop(_Behind(), None)
    behind, ms = max(spent.items(), key=lambda item: item[1], default=(_Behind(), 0.0))
    buffered, percent = _buffered(device), cause_percent(device, "input")
    evidence = {
        **idle_evidence(device, "input"),
        "iterator": behind.iterator,
        "iterator_gap_ms": ms if behind.iterator or behind.line else None,
        "buffered_elements": buffered,
    }
    finding = partial(INPUT_GAP.finding, op_id=behind.op_id, place=(behind.file, behind.line))
    if percent < INPUT_IDLE.value:
        why = _unexplained(device, SHORTEST_HOST_GAP_US)
        return [finding("inconclusive" if why else "pass", why or "", evidence=evidence)]
    degree = "is what limits it" if percent >= HIGHLY.value else "costs it time"
    where = f" at {behind.file}:{behind.line}" if behind.file and behind.line else ""
    who = f" `{behind.iterator}`{where} works longest meanwhile." if behind.iterator else ""
    held = f" The prefetch buffer held {buffered or 0.0:.1f} elements as the gaps began."
    return [
        finding(
            "fail",
            f"{_remedy(device, behind.iterator, framework)} {full_name(device)} is idle for input "
            f"{percent:.0f} % of the time: input {degree}.{who}{'' if buffered is None else held}",
            evidence=evidence,
            speedup_at_most=without_idle(device, device.causes_ms.get("input", 0.0)),
            untried=PROFILE_ALONE,
        )
    ]


def check_input_gap(session: Session) -> list[Finding]:
    """Return the same; where steps without the profiler hardly wait for input, it only informs."""
    (finding,) = devices_input_gap(session.devices)
    if finding.status != "fail":
        return [finding]
    untried = (
        "It says that input is late, not what would help: that is tried with the findings on the "
        "pipeline."
    )
    device = worst(accelerators(session.devices), lambda each: cause_percent(each, "input"))
    edit = prefetched_to(session, device, f"{INPUT_GAP.id}:prefetch") if device else None
    if session.breakdown is None:
        return [with_edit(INPUT_GAP, finding, edit, untried)]
    weight, at_most, free = weigh_input(session), finding.speedup_at_most, ceiling(session)
    return [
        INPUT_GAP.finding(
            weight.status,
            finding.advice if weight.status == "fail" else weight.sentence,
            op_id=finding.op_id,
            place=(finding.file, finding.line),
            evidence={**finding.evidence, **weight.evidence},
            speedup_at_most=None if free is None or at_most is None else min(at_most, free),
            edit=edit if weight.worth_trying else None,
            untried=untried,
        )
    ]


def _buffered(device: DeviceActivity) -> float | None:
    """Return the elements in the buffer as a gap began, each gap counted by its length.

    None where it was read for less than half of them: the few would speak for the rest.
    """
    held = [(gap.buffered_elements, ms) for gap, ms in held_up(device, "input")]
    known = [(elements, ms) for elements, ms in held if elements is not None]
    total = sum(ms for _, ms in known)
    if not total or 2 * total < sum(ms for _, ms in held):
        return None
    return sum(elements * ms for elements, ms in known) / total


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
    "jit_compile=True)` on the step with its optimiser; look up features of one width in one "
    "stacked embedding table",
    "jax": "fuse them with `jax.jit` around the whole step with its optimiser; use `jax.vmap` in "
    "place of a loop, and one stacked array in place of many small ones",
    "pytorch": "fuse them with `torch.compile`, and give the optimiser `fused=True` or "
    "`foreach=True`; use one stacked tensor in place of many small ones",
}
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


def devices_small_kernels(
    devices: Sequence[DeviceActivity], framework: Framework = "tensorflow"
) -> list[Finding]:
    """Return a finding on the accelerator with the most short kernels."""
    gpus = accelerators(devices)
    if not gpus:
        return [SMALL_KERNELS.finding("not-applicable", NO_ACCELERATOR)]
    device = worst([each for each in gpus if _short_percent(each) is not None], _percent_or_none)
    if device is None or device.launches is None:
        reason = "Too few kernels could be joined to their launch."
        return [SMALL_KERNELS.finding("inconclusive", reason)]
    launches, short = device.launches, _percent_or_none(device)
    idle = cause_percent(device, "launch")
    top = max(device.kernels, key=lambda kernel: kernel.count, default=None)
    finding = partial(
        SMALL_KERNELS.finding,
        evidence={
            "device": full_name(device),
            "shorter_than_launch_percent": short,
            "kernels": launches.kernels,
            "kernels_with_launch": launches.matched,
            "kernels_per_s": launches.per_s,
            "median_kernel_us": launches.median_kernel_us,
            "median_launch_us": launches.median_launch_us,
            "launch_idle_percent_of_span": idle,
            "most_frequent_kernel": top.name if top else None,
        },
    )
    if short < SHORT.value:
        return [finding("pass")]
    if waits := input_first_on(device):
        return [finding("informative", waits)]
    if idle < KERNELS_IDLE.value:
        why = _unexplained(device)
        little = f"Most are, and the device is idle for launches only {idle:.1f} % of the time."
        return [finding("inconclusive" if why else "informative", why or little)]
    advice = (
        f"{short:.0f} % of the kernels on {full_name(device)} end sooner than the next could be "
        f"launched: {_FUSE[framework]}. A larger batch makes each kernel longer."
    )
    return [finding("fail", advice, untried=PROFILE_ALONE)]


def _short_percent(device: DeviceActivity) -> float | None:
    """Return the share of kernels shorter than their launch, where enough launches are known."""
    launches = device.launches
    known = launches is not None and launches.matched >= FEWEST.value
    return launches.shorter_than_launch_percent if launches is not None and known else None


def _percent_or_none(device: DeviceActivity) -> float:
    return _short_percent(device) or 0.0


def check_small_kernels(session: Session) -> list[Finding]:
    """Return the same, where the profiler did not slow the steps much: it lengthens launches."""
    edit = compiled_by_xla(session, f"{SMALL_KERNELS.id}:xla")
    return _tried(SMALL_KERNELS, session, devices_small_kernels(session.devices), edit)


def devices_launch_bound(
    devices: Sequence[DeviceActivity], framework: Framework = "tensorflow"
) -> list[Finding]:
    """Return a finding on the accelerator that waits longest for launches."""
    device = worst(accelerators(devices), lambda each: cause_percent(each, "launch"))
    if device is None:
        return [LAUNCH_BOUND.finding("not-applicable", NO_ACCELERATOR)]
    launches, doing = device.launches, longest_doing(device, "launch")
    delay, ahead = launches.median_delay_us if launches else None, None
    if delay is not None and delay >= DELAY.value:
        ahead = (
            f"The median kernel starts {delay:.0f} us after its launch: most are launched ahead, "
            f"and the device waits for some. {_RARER[framework]}."
        )
    return _of_cause(
        LAUNCH_BOUND,
        device,
        "launch",
        LAUNCH_IDLE,
        f"until the host launches the next kernel: {_FEWER[framework]}. A larger batch makes each "
        "kernel longer.",
        {
            "median_delay_us": delay,
            "median_kernel_us": launches.median_kernel_us if launches else None,
            "median_launch_us": launches.median_launch_us if launches else None,
            "kernels_per_s": launches.per_s if launches else None,
            "launching_thread_in": doing[0] if doing else None,
        },
        informs=ahead,
    )


def check_launch_bound(session: Session) -> list[Finding]:
    """Return the same, where the profiler did not slow the steps much."""
    edit = compiled_by_xla(session, f"{LAUNCH_BOUND.id}:xla")
    edit = edit or several_steps_a_call(session, f"{LAUNCH_BOUND.id}:steps")
    return _tried(LAUNCH_BOUND, session, devices_launch_bound(session.devices), edit)


# Results that are waited for, and Python

_READ_LESS: Mapping[Framework, str] = {
    "tensorflow": "(`.numpy()`, `float(loss)`, `print`, callbacks with on_train_batch_end). Update "
    "a `keras.metrics.Mean` and call `.result()` every hundredth step",
    "jax": "(`float(loss)`, `.item()`, `print`, `np.asarray`), nor call `block_until_ready()` "
    "there. Let the step add them up, and read the sums every hundredth step",
    "pytorch": "(`.item()`, `.cpu()`, `print(loss)`, `if` on a tensor). Add up `loss.detach()` on "
    "the device, and call `.item()` every hundredth step",
}
_LESS_PYTHON: Mapping[Framework, str] = {
    "tensorflow": "let callbacks and logging work every hundredth step or in `on_epoch_end`; "
    "`compile(..., steps_per_execution=16)` calls them, and starts steps, once in 16",
    "jax": "log and evaluate metrics every hundredth step, or in another thread; `jax.lax.scan` "
    "over several steps leaves Python once for all of them",
    "pytorch": "log and evaluate metrics every hundredth step, or in another thread; collate and "
    "transform batches in the DataLoader's workers",
}


def devices_sync_point(
    devices: Sequence[DeviceActivity], framework: Framework = "tensorflow"
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
        shortest_us=SHORTEST_HOST_GAP_US,
    )


def check_sync_point(session: Session) -> list[Finding]:
    """Return the same, where the profiler did not slow the steps much."""
    return _tried(SYNC_POINT, session, devices_sync_point(session.devices), None)


def _mostly_in(doing: tuple[str, float] | None) -> str:
    return f", mostly in `{doing[0]}`" if doing else ""


def devices_python_gap(
    devices: Sequence[DeviceActivity], framework: Framework = "tensorflow"
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
        shortest_us=SHORTEST_HOST_GAP_US,
        informs=_one_pause(device),
    )


def check_python_gap(session: Session) -> list[Finding]:
    """Return the same, where the profiler did not slow the steps much."""
    edit = several_steps_a_call(session, f"{PYTHON_GAP.id}:steps")
    return _tried(PYTHON_GAP, session, devices_python_gap(session.devices), edit)


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
