"""Everything that is measured of the diagnosed loop, put together, with its embedding tables."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from pipediag.errors import PipediagError
from pipediag.facts.machine import on_accelerator
from pipediag.measures.input_wait import contention_of, native_input_wait, settle_input_wait
from pipediag.measures.pipeline import measure_pipeline
from pipediag.measures.profile import describe_devices
from pipediag.measures.steps import (
    FEWEST_STEPS,
    Missing,
    break_down,
    compiled_for_lengths,
    measure_ceiling,
    measure_differential,
    measure_perturbation,
    measure_steps,
    profile_missing,
    step_ms,
    step_rows,
    steps_missing,
)
from pipediag.session.loops import Ceiling, Embedding, Share, Steps, TextWork
from pipediag.session.model import Host
from pipediag.session.recorded_loops import RecordedLoop, RecordedVariable, TableFacts, TableUse
from pipediag.session.recording import Recording
from pipediag.session.timeline import Timeline
from pipediag.tensorflow_names import SEVERAL_WORKERS
from pipediag.trace.operations import ComputeTimes
from pipediag.trace.summary import TraceSummary, summarise
from pipediag.vocabulary import SparseOrDense, StepClass


def trace_of(recording: Recording, loop: RecordedLoop) -> tuple[TraceSummary | None, str | None]:
    """Return the summary of the loop's last profile, or None and why; a damaged one is no error.

    One without a step of the loop holds what came after it: an evaluation, and what it compiled.
    """
    directories = [
        window.trace_directory
        for window in recording.windows
        if window.loop_id == loop.id and any(block.durations_ns for block in window.blocks)
    ]
    directory = next(filter(None, reversed(directories)), None)
    if directory is None:
        return None, profile_missing(recording, loop)
    # A finding may need the time of some operations of the loop's step.
    named = bool(loop.vocabulary_operations or loop.metric_operations) or any(
        one.use is not None and (one.use.pass_operations or one.use.copy_operations)
        for one in recording.variables
        if one.loop_id in (None, loop.id)
    )
    try:
        return _summary(Path(directory), by_operation=named), None
    except PipediagError as error:
        return None, str(error)


_summary = lru_cache(maxsize=1)(summarise)
"""Read once: a loop is diagnosed when it waits for trials and again when the script is over."""


def measure_text_work(steps: Steps, trace: TraceSummary | None) -> TextWork | None:
    """Return the share of the step that works on text; zero where none does."""
    if trace is None or trace.steps is None or trace.text_ns is None:
        return None
    whole_ns = float(trace.steps.durations_ns.sum())
    if not whole_ns:
        return None
    percent = 100.0 * trace.text_ns / whole_ns
    return TextWork(percent=percent, ms=steps.mean_ms * percent / 100.0)


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

MAY_LACK = ("steps", "breakdown", "perturbation", "ceiling", "pipeline", "host")


def lacking(reason: str) -> Sections:
    """Return all of them missing, for one reason."""
    return _as_fields(dict.fromkeys(MAY_LACK, Missing(reason)))


def _as_fields(sections: Sections) -> Sections:
    """Return fields of the session: what is missing is None, with its reason in another field."""
    missing = {name: one for name, one in sections.items() if isinstance(one, Missing)}
    reasons = {f"{name}_missing": one.reason for name, one in missing.items()}
    return {**sections, **dict.fromkeys(missing), **reasons}


_STALLED = 4.0
"""Times the median, from which on a profiled step says nothing of the others, unless the baseline
has such steps. Own choice: several workers wait for seconds while the profiler of one starts or
stops, and a function is traced once more for the last batch of an epoch, of another size."""


def _longest(recording: Recording, loop: RecordedLoop, several: bool) -> float:
    """Return how many times the median a profiled step may take that counts."""
    baseline = step_ms(recording, loop, "baseline")
    if several:
        return _STALLED
    return max(_STALLED, baseline.max() / np.median(baseline)) if len(baseline) else np.inf


def measure_loop(
    timeline: Timeline, recording: Recording, loop: RecordedLoop, host: Host | Missing
) -> tuple[Sections, list[str]]:
    """Return the sections of the diagnosed loop, with the `host` in its baseline, and sentences on
    what went otherwise than planned."""
    trace, trace_missing = trace_of(recording, loop)
    split = trace.steps if trace else None
    if split is not None and recording.environment.keras_backend == "torch":
        # The trace may show only that TensorFlow does not compute the step.
        split = split if split.column("device_compute").any() else None
    several = loop.strategy in SEVERAL_WORKERS
    if split is not None:
        split = split.up_to(_longest(recording, loop, several))
    steps = measure_steps(recording, loop) or Missing(steps_missing(recording, loop))
    alone = measure_differential(recording, loop)
    perturbation = measure_perturbation(recording, loop)
    pipeline, operation_of = measure_pipeline(recording, loop, trace)
    python_percent, contention = 0.0, None
    if not isinstance(steps, Missing):
        # The CPU time of the pipeline's Python, on other threads.
        python_ms = sum(op.python_cpu_ms_per_step or 0.0 for op in pipeline.ops)
        python_percent = 100.0 * python_ms / steps.mean_ms
        # Operations whose time is not known count for nothing.
        known = [op.self_ms_per_step for op in pipeline.ops if op.self_ms_per_step is not None]
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
        native, split, alone, contention, python_percent=python_percent, compiled=compiled
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


_READS = {"Cast"}
"""Operations of a lookup on the whole table, which are no part of its update."""
_NOT_READ = "The step was not analysed: its loop ended first or was not measured."
_NOT_WRITTEN = "The step does not write it."


def describe_embeddings(
    variables: list[RecordedVariable],
    loop: RecordedLoop | None = None,
    compute: StepCompute | None = None,
) -> list[Embedding]:
    """Return one row for each table, the largest first; `compute` is that of the loop's step."""
    rows = [
        _describe(one, compute if loop is not None and one.loop_id in (None, loop.id) else None)
        for one in variables
    ]
    return sorted(rows, key=lambda row: -row.table_bytes)


def _describe(variable: RecordedVariable, compute: StepCompute | None) -> Embedding:
    """Return the row of one table; `compute` is that of the loop which uses it."""
    use, ids = variable.use, variable.ids
    bits = re.search(r"\d+", variable.dtype)  # `float32`, `bfloat16`, `float8_e5m2`
    table = variable.rows * variable.dim * (int(bits[0]) // 8 if bits else 4)
    unseen = None if ids else variable.ids_missing or _NOT_READ
    described = Embedding(
        **{**_of(TableFacts, variable), "ids_missing": unseen},
        table_bytes=table,
        slot_bytes=None,
        gradient=None,
        update=None,
        rows_touched_per_step=None if not ids or ids.incomplete else round(ids.unique_per_step),
    )
    if use is None:
        return replace(described, missing=variable.use_missing or _NOT_READ)
    # Dense, too, where rows alone are written, but are computed from a pass over the table.
    dense = use.writes_whole or bool(use.whole_table_operations.keys() - _READS)
    update: SparseOrDense = "dense" if dense else "sparse"
    return replace(
        described,
        **{**_of(TableUse, use), "variable": variable.variable},
        update=None if use.gradient is None else update,
        missing=_NOT_WRITTEN if use.gradient is None else None,
        copied_bytes_per_step=table * use.copies,
        passes_ms=compute.ms_of(use.pass_operations) if compute else None,
        copy_ms=compute.ms_of(use.copy_operations) if compute else None,
    )


def _of(kind: type[Any], record: Any) -> dict[str, Any]:
    return {one.name: getattr(record, one.name) for one in fields(kind)}


_NOTICED = 0.01
"""The part of the compute from which on what can't be assigned hides the rest. Own choice."""
_IN_A_BODY = re.compile(r"/(body|cond|then|else|branch\d*)/_\d+(?=/)")
"""The part of operation names in a loop or a branch that TensorFlow adds."""


@dataclass(frozen=True)
class StepCompute:
    """The compute of a step, by operation."""

    times: ComputeTimes
    compute_ms: float

    def ms_of(self, operations: Collection[str]) -> float | None:
        """Return the milliseconds of a step in these operations.

        None where the profile has none of them, or XLA computed them together with others, or in
        programs that were not kept.
        """
        times, wanted = self.times, set(operations)

        def among_them(name: str) -> bool:  # given as `scope/name:Type`
            return _IN_A_BODY.sub("", name.rpartition(":")[0]) in wanted

        own = sum(ns for name, ns in times.by_operation.items() if among_them(name))
        unclear = times.compiled_ns + times.unnamed_ns if times.compiled_ns else 0.0
        for work, ns in times.by_instruction.items():
            # What is fused belongs to what its results are of.
            if all(map(among_them, work.ends_in)):
                own += ns
            elif any(map(among_them, work.holds)):
                unclear += ns
        if not own or unclear >= _NOTICED * times.total_ns:
            return None
        return self.compute_ms * own / times.total_ns
