"""The steady step of a training loop: a call of it in which nothing is built."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

import numpy as np

from pipediag.measures.bootstrap import interval, resampled_means
from pipediag.measures.building import Building
from pipediag.measures.loop.loops import median_step_ms
from pipediag.measures.loop.time import steady_steps_ns
from pipediag.measures.recorded_windows import (
    Floats,
    blocks_of,
    gap_waits_ms,
    next_waits_ms,
    steps_ns,
)
from pipediag.session.record import Interval
from pipediag.session.recorded_loops import RecordedLoop
from pipediag.session.recording import Recording
from pipediag.session.timeline import Span, Timeline

_FEWEST_STEPS = 5
"""For an interval, and on a repeated batch."""


@dataclass(frozen=True)
class SteadyStep:
    """Mean of a step, and its limits, in nanoseconds."""

    ns: float
    limits_ns: Interval | None = None


def steady_step(timeline: Timeline, recording: Recording, loop: RecordedLoop) -> SteadyStep | None:
    """By the baseline's steps that build nothing, if there are any.

    Where each of them has a length of its own, and builds its function for it, a repeated batch
    tells what the built function takes, and the baseline what it waits for its batch: what a first
    call takes beside its tracing is no step, but optimising what was traced. Without that, as where
    a repeated batch builds too, only the tracing is taken off.
    """
    steps = steady_steps_ns(recording, loop)
    if not steps:
        median = median_step_ms(recording, loop)
        return SteadyStep(median * loop.batches_per_call * 1e6) if median else None
    building = Building(timeline)
    free = _free(steps, building)
    if free:
        return _of(np.array(free, dtype=float))
    repeated = _free(steps_ns(recording, loop, "repeat"), building)
    wait_ns = _wait_ns(recording, loop)
    if len(repeated) >= _FEWEST_STEPS and wait_ns is not None:
        return _of(np.array(repeated, dtype=float) + wait_ns)
    mean = sum(steps.values()) / len(steps)
    return SteadyStep(max(0.0, mean - _traced_ns(building.spans, steps)))


def _of(samples_ns: Floats) -> SteadyStep:
    mean = float(samples_ns.mean())
    few = len(samples_ns) < _FEWEST_STEPS
    return SteadyStep(mean, None if few else interval(resampled_means(samples_ns)))


def _free(steps: dict[int, int], building: Building) -> list[int]:
    """Durations of the steps that build nothing."""
    return [ns for start, ns in steps.items() if not building.is_in(start, ns)]


def _wait_ns(recording: Recording, loop: RecordedLoop) -> float | None:
    """Mean wait of a call for its batches; None where nothing tells of it."""
    batches = loop.batches_per_call
    waits = [
        gap_waits_ms(block, batches) if asked is None else asked
        for block in blocks_of(recording, loop, "baseline")
        for asked in [next_waits_ms(block, batches)]
    ]
    known = list(chain.from_iterable(waits))
    return max(0.0, float(np.mean(known))) * batches * 1e6 if known else None


def _traced_ns(built: list[Span], steps: dict[int, int]) -> float:
    """What was traced in a step, on the average."""
    traced = [
        (one.start_ns, one.end_ns)
        for one in built
        if one.kind == "tracing" and one.end_ns is not None
    ]
    within = sum(
        max(0, min(end, start + ns) - max(begun, start))
        for start, ns in steps.items()
        for begun, end in traced
    )
    return within / len(steps)
