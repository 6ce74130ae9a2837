"""Everything that is measured of the diagnosed loop, put together."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

from pipediag.errors import PipediagError
from pipediag.facts.machine import on_accelerator
from pipediag.measures.breakdown import break_down, measure_ceiling
from pipediag.measures.embeddings import StepCompute, describe_embeddings, names_operations
from pipediag.measures.input_wait import contention_of, native_input_wait, settle_input_wait
from pipediag.measures.pipeline import measure_pipeline
from pipediag.measures.profile import describe_devices
from pipediag.measures.recorded_windows import Missing, step_rows
from pipediag.measures.steps import (
    FEWEST_STEPS,
    compiled_for_lengths,
    measure_differential,
    measure_perturbation,
    measure_steps,
    profile_missing,
    steps_missing,
)
from pipediag.session.loops import Ceiling, Share, Steps, TextWork
from pipediag.session.model import Host
from pipediag.session.recorded_loops import RecordedLoop
from pipediag.session.recording import Recording
from pipediag.session.timeline import Timeline
from pipediag.tensorflow_names import SEVERAL_WORKERS
from pipediag.trace.summary import TraceSummary, summarise
from pipediag.vocabulary import StepClass


def trace_of(
    recording: Recording, loop: RecordedLoop, *, by_operation: bool = False
) -> tuple[TraceSummary | None, str | None]:
    """The summary of the loop's last profile, or None and why; a damaged profile is no error.

    One without a step of the loop holds what came after it: an evaluation, and what it compiled.

    Args:
        by_operation: whether to tell which operations the compute was, too.
    """
    of_loop = [
        window
        for window in recording.windows
        if window.loop_id == loop.id
        and window.trace_directory is not None
        and any(block.durations_ns for block in window.blocks)
    ]
    if not of_loop:
        return None, profile_missing(recording, loop)
    try:
        return _summary(Path(of_loop[-1].trace_directory or ""), by_operation), None
    except PipediagError as error:
        return None, str(error)


@lru_cache(maxsize=1)
def _summary(directory: Path, by_operation: bool) -> TraceSummary:
    """Read once: a loop is diagnosed when it waits for trials and again when the script is over."""
    return summarise(directory, by_operation=by_operation)


def measure_text_work(steps: Steps, trace: TraceSummary | None) -> TextWork | None:
    """Return the share of the step, and of which types of operations; zero where there are none."""
    if trace is None or trace.steps is None or trace.text is None:
        return None
    whole_ns = float(trace.steps.durations_ns.sum())
    if not whole_ns:
        return None
    percents = {kind: 100.0 * ns / whole_ns for kind, ns in trace.text.by_type.items()}
    percent = 100.0 * trace.text.total_ns / whole_ns
    return TextWork(
        percent=percent,
        ms=steps.mean_ms * percent / 100.0,
        operations=dict(sorted(percents.items(), key=lambda item: -item[1])),
    )


NO_METHOD = (
    f"Input wait could not be measured: tf.data gave no gap times for {FEWEST_STEPS} steps, the "
    "loop does not call `next` in Python, and there is no profile."
)


BESIDE_TENSORFLOW = (
    "PyTorch computes the model's step, which TensorFlow's profiler does not see: only the input "
    "wait is known."
)


Sections = dict[str, Any]
"""The sections of the session that tell of one loop, by their names, as its fields."""

_STALLED = 4.0
"""Times the median, from which on a profiled step of several workers is not the script's: all
of them wait while the profiler of one starts or stops. Own choice: that took seconds."""

MAY_LACK = ("steps", "breakdown", "perturbation", "ceiling", "pipeline", "host")


def lacking(reason: str) -> Sections:
    """Return all of them missing, for one reason."""
    return _as_fields(dict.fromkeys(MAY_LACK, Missing(reason)))


def _as_fields(sections: Sections) -> Sections:
    """Return fields of the session: what is missing is None, with its reason in another field."""
    missing = {name: one for name, one in sections.items() if isinstance(one, Missing)}
    reasons = {f"{name}_missing": one.reason for name, one in missing.items()}
    return {**sections, **dict.fromkeys(missing), **reasons}


def measure_loop(
    timeline: Timeline, recording: Recording, loop: RecordedLoop, host: Host | Missing
) -> tuple[Sections, list[str]]:
    """Return the sections of the diagnosed loop, and sentences on what went otherwise than planned.

    `host` is the host in its baseline.
    """
    trace, trace_missing = trace_of(recording, loop, by_operation=names_operations(recording, loop))
    split = trace.steps if trace else None
    if split is not None and recording.environment.keras_backend == "torch":
        # The trace may show only that TensorFlow does not compute the step.
        split = split if split.column("device_compute").any() else None
    several = loop.strategy in SEVERAL_WORKERS
    if several and split is not None:
        split = split.up_to(_STALLED)
    steps = measure_steps(recording, loop) or Missing(steps_missing(recording, loop))
    alone = measure_differential(recording, loop)
    perturbation = measure_perturbation(recording, loop)
    pipeline, operation_of = measure_pipeline(recording, loop, trace)
    # The CPU time of the pipeline's Python, on other threads.
    python_ms = sum(op.python_cpu_ms_per_step or 0.0 for op in pipeline.ops)
    python_percent = 0.0 if isinstance(steps, Missing) else 100.0 * python_ms / steps.mean_ms
    # Operations whose time is not known count for nothing.
    known = [op.self_ms_per_step for op in pipeline.ops if op.self_ms_per_step is not None]
    contention = None
    if not isinstance(steps, Missing):
        contention = contention_of(
            None if isinstance(host, Missing) else host,
            steps.mean_ms,
            python_percent=python_percent,
            accelerated=on_accelerator(recording.environment.devices),
            pipeline_ms=sum(known) if known else None,
        )
    # Several workers agree in `next` that each has a batch: who waits there may wait for another.
    agreeing = several and split is not None
    native = None if agreeing else native_input_wait(recording, loop)
    compiled = compiled_for_lengths(timeline, recording, loop, native, alone)
    wait, chosen = settle_input_wait(
        native,
        split,
        alone,
        contention,
        python_percent=python_percent,
        compiled=compiled,
    )
    breakdown: dict[StepClass, Share] | Missing
    ceiling: Ceiling | Missing
    if isinstance(steps, Missing) or steps.count < FEWEST_STEPS:
        few = f"Fewer than {FEWEST_STEPS} steps were measured without a profiler."
        breakdown = ceiling = Missing(few)
    elif chosen is None:
        breakdown = ceiling = Missing(NO_METHOD)
    else:
        breakdown = break_down(steps.mean_ms, chosen, split, compiled)
        ceiling = measure_ceiling(chosen, breakdown)
    times = trace.compute if trace is not None else None
    compute: StepCompute | None = None
    if times is not None and times.total_ns and not isinstance(breakdown, Missing):
        compute = StepCompute(times, breakdown["device_compute"].ms)
    sections = {
        "steps": steps,
        "breakdown": breakdown,
        "perturbation": perturbation or Missing(steps_missing(recording, loop)),
        "differential": alone.differential if alone else None,
        "ceiling": ceiling,
        "pipeline": pipeline,
        "host": host,
        "embeddings": describe_embeddings(recording.variables, loop, compute),
        "vocabulary_ms": compute.ms_of(loop.vocabulary_operations) if compute else None,
        "metrics_ms": compute.ms_of(loop.metric_operations) if compute else None,
        "text_work": None if isinstance(steps, Missing) else measure_text_work(steps, trace),
        "input_wait": wait,
        "devices": describe_devices(trace, pipeline, operation_of) if trace else [],
        "step_rows": step_rows(recording, loop),
    }
    untold = trace_missing or (trace.steps_missing if trace else None)
    if trace is not None and trace.steps is not None and split is None:
        untold = BESIDE_TENSORFLOW
    return _as_fields(sections), [untold] if untold else []
