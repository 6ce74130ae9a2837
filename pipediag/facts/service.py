"""The workers that a tf.data service needs, from measured service times."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pipediag.facts.limits import MOST_FREED
from pipediag.facts.step import consumer_ms
from pipediag.session.model import Session
from pipediag.session.pipeline import InputService

KEPT = 1.05
"""Times the target that a step may take and still reach it: blocks of one and the same pipeline
agree within 2 to 5 %."""
MOST_WORKERS = 64
"""Beyond that a dispatcher and one consumer are no setup of which this was measured. Own choice."""


@dataclass(frozen=True)
class StepWith:
    """Step with so many workers, in milliseconds: expected, and the bounds."""

    workers: int
    ms: float
    least_ms: float
    """If the service costs nothing."""
    most_ms: float
    """If sending and unpacking overlaps with nothing."""


@dataclass(frozen=True)
class ServicePlan:
    """Workers, CPUs, network and memory of a tf.data service for a target step."""

    target_ms: float
    least_ms: float
    """The shortest step that any number of workers can give."""
    step: StepWith | None
    """With as many workers as are needed; None where no number reaches the target."""
    cores: float
    """CPUs that all workers keep busy at that pace."""
    bytes_per_s: float | None
    """That the training's host receives, before compression; None if the size is not known."""
    memory_bytes: int
    """Memory of all workers together."""


def step_of(service: InputService, rest_ms: float, workers: int) -> StepWith:
    """Return the step with so many workers, each on CPUs such as the training has.

    Making a batch, sending it and the rest of the step overlap: the slowest sets the pace. One
    worker was measured; where its batches take longer than without a service, they do for each.
    """
    sent_ms, by_one_ms = service.send_ms, max(service.pipeline_ms, service.served_ms)
    return StepWith(
        workers,
        max(rest_ms, by_one_ms / workers, sent_ms),
        max(rest_ms, service.pipeline_ms / workers),
        max(rest_ms + sent_ms, (by_one_ms + sent_ms) / workers),
    )


def plan_service(session: Session, target_ms: float | None = None) -> ServicePlan | None:
    """Return the workers, CPUs, network and memory for a step of `target_ms`, by default that of
    free input; None where no service was measured."""
    service, rest_ms = session.service, consumer_ms(session)
    if service is None or rest_ms is None:
        return None
    least_ms = max(rest_ms, service.send_ms)
    wanted_ms = least_ms if target_ms is None else target_ms
    kept_ms, by_one_ms = KEPT * wanted_ms, step_of(service, rest_ms, 1).ms
    found = None
    if 0 < least_ms <= kept_ms and by_one_ms / kept_ms <= MOST_WORKERS:
        found = step_of(service, rest_ms, math.ceil(by_one_ms / kept_ms))
    pace_ms = found.ms if found is not None else least_ms
    # The CPU time of a batch.
    busy_ms = service.cores_busy * service.served_ms
    op = session.operation(service.after)
    size = (op.bytes_per_element or op.element_bytes) if op is not None else None
    return ServicePlan(
        target_ms=wanted_ms,
        least_ms=least_ms,
        step=found,
        cores=busy_ms / pace_ms,
        bytes_per_s=size / (pace_ms / 1e3) if size else None,
        memory_bytes=service.worker_memory_bytes * (found.workers if found else 1),
    )


def most_of_a_service(session: Session) -> float | None:
    """Return how many times as fast steps get at most with any number of workers."""
    plan, steps = plan_service(session), session.steps
    if plan is None or steps is None:
        return None
    return min(steps.mean_ms / plan.least_ms, 1.0 / (1.0 - MOST_FREED))
