"""A plan for a tf.data service in words: workers, CPUs, network and memory for a step."""

from __future__ import annotations

from collections.abc import Iterator

from pipediag.facts.machine import cpus
from pipediag.facts.service import ServicePlan, StepWith, step_with
from pipediag.reporters.words.quantities import byte_count, counted, measured, milliseconds
from pipediag.session.model import Session

_TABLE = (1, 2, 4, 8)
"""Workers of the rows that are always shown."""


def needed(session: Session, plan: ServicePlan) -> str:
    """Return what a step of the target takes, or why no number of workers reaches it."""
    if plan.step is None:
        return (
            f"No number of workers gives a step of {milliseconds(plan.target_ms)}: the rest of the "
            f"step, or sending a batch, takes {milliseconds(plan.least_ms)}."
        )
    network = f", {byte_count(plan.bytes_per_s)}/s to receive" if plan.bytes_per_s else ""
    return (
        f"{counted(plan.step.workers, 'worker')} of {measured(cpus(session))} CPUs for a step of "
        f"{_with_bounds(plan.step)}: {measured(plan.cores)} CPUs busy in all{network}, "
        f"{byte_count(plan.memory_bytes)} of memory"
    )


def table(session: Session, plan: ServicePlan) -> Iterator[str]:
    """Yield a line for each number of workers, with the bounds of the step."""
    counts = {*_TABLE, *([plan.step.workers] if plan.step is not None else [])}
    for workers in sorted(counts):
        found = step_with(session, workers)
        if found is not None:
            yield f"{workers:7}  {_with_bounds(found)}"


def _with_bounds(step: StepWith) -> str:
    low, high = milliseconds(step.least_ms), milliseconds(step.most_ms)
    return f"{milliseconds(step.ms)} [{low}, {high}]"
