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
"""Number beyond which nothing was measured of a dispatcher and one consumer. Own choice."""
LINK_GBIT_PER_S = 10.0
"""Assumed of the training's host, which receives all batches; its link is not measured."""


@dataclass(frozen=True)
class StepWith:
    """Step with so many workers, in milliseconds: expected, and the bounds."""

    workers: int
    ms: float
    least_ms: float
    """Time if all overlaps, and the service itself costs nothing."""
    most_ms: float
    """Time if making and sending take turns, and asking the dispatcher takes twice as long."""


@dataclass(frozen=True)
class ServicePlan:
    """Workers, CPUs, network and memory of a tf.data service for a target step."""

    target_ms: float
    least_ms: float
    """The shortest step that any number of workers can give over the link."""
    step: StepWith | None
    """Step with as many workers as are needed; None where no number reaches the target."""
    cores: float
    """CPUs that all workers keep busy at that pace."""
    bytes_per_s: float | None
    """Bytes that the training's host receives, uncompressed; None if the size is not known."""
    memory_bytes: int
    """Memory of all workers together."""


def step_of(service: InputService, rest_ms: float, workers: int, link_ms: float) -> StepWith:
    """Return the step with so many workers, each on CPUs such as the training has, where a step's
    bytes take the link `link_ms`.

    A worker makes a batch while it sends the one before, so the slowest part sets the pace. But
    where it asks for its shares over the link that its batches fill, it makes none meanwhile, and
    a dispatcher on another host is taken to answer in twice the time that it took here.
    """
    sent_ms, by_one_ms = service.send_ms, max(service.pipeline_ms, service.served_ms)
    asking_ms = by_one_ms - service.pipeline_ms
    return StepWith(
        workers,
        max(rest_ms, by_one_ms / workers, sent_ms, link_ms),
        max(rest_ms, service.pipeline_ms / workers, link_ms),
        max(rest_ms + sent_ms, (by_one_ms + asking_ms + sent_ms) / workers) + link_ms,
    )


def plan_service(session: Session, target_ms: float | None = None) -> ServicePlan | None:
    """Return the workers, CPUs, network and memory for a step of `target_ms`, by default that of
    free input; None where no service was measured."""
    service, rest_ms = session.service, consumer_ms(session)
    if service is None or rest_ms is None:
        return None
    op = session.operation(service.after)
    size = 0.0
    if op is not None:
        size = (op.bytes_per_element or op.element_bytes or 0) * (op.elements or 1.0)
    link_ms = size * 8 / (LINK_GBIT_PER_S * 1e6)
    least_ms = max(rest_ms, service.send_ms, link_ms)
    wanted_ms = least_ms if target_ms is None else target_ms
    kept_ms, by_one_ms = KEPT * wanted_ms, step_of(service, rest_ms, 1, link_ms).ms
    found = None
    if 0 < least_ms <= kept_ms and by_one_ms / kept_ms <= MOST_WORKERS:
        found = step_of(service, rest_ms, math.ceil(by_one_ms / kept_ms), link_ms)
    pace_ms = found.ms if found is not None else least_ms
    return ServicePlan(
        target_ms=wanted_ms,
        least_ms=least_ms,
        step=found,
        cores=service.cores_busy * service.served_ms / pace_ms,
        bytes_per_s=size / (pace_ms / 1e3) if size else None,
        memory_bytes=service.worker_memory_bytes * (found.workers if found else 1),
    )


def most_of_a_service(session: Session) -> float | None:
    """Return how many times as fast steps get at most with any number of workers and any link."""
    service, rest_ms, steps = session.service, consumer_ms(session), session.steps
    if service is None or rest_ms is None or steps is None:
        return None
    return min(steps.mean_ms / max(rest_ms, service.send_ms), 1.0 / (1.0 - MOST_FREED))
