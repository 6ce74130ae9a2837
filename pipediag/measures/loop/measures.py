"""Everything that is measured of one loop, put together."""

from __future__ import annotations

from dataclasses import dataclass

from pipediag.facts.machine import on_accelerator
from pipediag.measures.host.of_loop import stacks_of
from pipediag.measures.loop.time import time_of
from pipediag.measures.pipeline.operations import measure_pipeline
from pipediag.measures.pipeline.written import plan_of
from pipediag.measures.profile.devices import describe_devices
from pipediag.measures.profile.traces import trace_of
from pipediag.measures.step.breakdown import break_down
from pipediag.measures.step.ceiling import measure_ceiling
from pipediag.measures.step.differential import (
    FEWEST_STEPS,
    differential_missing,
    measure_differential,
)
from pipediag.measures.step.input_wait import (
    SettledInputWait,
    contention_of,
    native_input_wait,
    settle_input_wait,
)
from pipediag.measures.step.perturbation import measure_perturbation
from pipediag.measures.step.steps import measure_steps, steps_missing
from pipediag.session.devices import DeviceActivity
from pipediag.session.host import Host
from pipediag.session.pipeline import Pipeline
from pipediag.session.recording import RecordedLoop, Recording
from pipediag.session.steps import Ceiling, Differential, InputWait, Perturbation, Share, Steps
from pipediag.trace.steps.splitting import StepSplit
from pipediag.trace.summary import TraceSummary
from pipediag.vocabulary import Contention, StepClass

NO_METHOD = (
    "Input wait could not be measured: tf.data's gap times were not to be had, the loop does not "
    "call `next` in Python, and there is no profile."
)


@dataclass(frozen=True)
class LoopMeasures:
    """Sections of the session, each None with its reason beside it."""

    steps: Steps | None
    steps_missing: str | None
    breakdown: dict[StepClass, Share] | None
    breakdown_missing: str | None
    input_wait: InputWait
    perturbation: Perturbation | None
    differential: Differential | None
    differential_missing: str | None
    ceiling: Ceiling | None
    pipeline: Pipeline
    devices: list[DeviceActivity]
    trace_missing: str | None


def measure_loop(recording: Recording, loop: RecordedLoop, host: Host | None) -> LoopMeasures:
    """Measures the diagnosed loop; `host` is the host in its baseline."""
    trace, trace_missing = trace_of(recording, loop)
    split = trace.steps if trace else None
    steps = measure_steps(recording, loop)
    alone = measure_differential(recording, loop)
    perturbation = measure_perturbation(recording, loop)
    contention = _contention(recording, loop, host, steps)
    wait = settle_input_wait(
        native_input_wait(recording, loop), split, alone, contention, perturbation
    )
    breakdown, breakdown_missing = _breakdown(steps, wait, split)
    measured = measure_pipeline(recording, loop, trace)
    return LoopMeasures(
        steps=steps,
        steps_missing=None if steps else steps_missing(recording, loop),
        breakdown=breakdown,
        breakdown_missing=breakdown_missing,
        input_wait=wait.summary,
        perturbation=perturbation,
        differential=alone.differential if alone else None,
        differential_missing=None if alone else differential_missing(recording, loop),
        ceiling=measure_ceiling(wait.chosen, breakdown, time_of(recording, loop))
        if breakdown and wait.chosen
        else None,
        pipeline=measured.pipeline,
        devices=_devices(trace, measured.pipeline, measured.operation_of),
        trace_missing=trace_missing or (trace.missing.get("steps") if trace else None),
    )


def _contention(
    recording: Recording, loop: RecordedLoop, host: Host | None, steps: Steps | None
) -> Contention | None:
    if steps is None:
        return None
    environment = recording.environment
    plan = plan_of(recording.operations, loop.root_op_id)
    calls_python = any(operation.calls_python for operation in plan) if plan else None
    return contention_of(
        host,
        stacks_of(recording, loop),
        steps.mean_ms,
        calls_python=calls_python,
        accelerated=environment is not None and on_accelerator(environment.devices),
    )


def _breakdown(
    steps: Steps | None, wait: SettledInputWait, split: StepSplit | None
) -> tuple[dict[StepClass, Share] | None, str | None]:
    if steps is None or steps.count < FEWEST_STEPS:
        return None, f"Fewer than {FEWEST_STEPS} steps were measured without a profiler."
    if wait.chosen is None:
        return None, NO_METHOD
    return break_down(steps.mean_ms, wait.chosen, split), None


def _devices(
    trace: TraceSummary | None,
    pipeline: Pipeline,
    operation_of: dict[tuple[str, tuple[str, ...]], str],
) -> list[DeviceActivity]:
    return describe_devices(trace, pipeline, operation_of) if trace else []
