"""The time of each place of the run, and the steady step of each training loop."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from pipediag.estimates import Floats, interval, resampled_means
from pipediag.measures.loops import median_step_ms, steady_steps_ns
from pipediag.measures.recorded_windows import (
    Building,
    blocks_of,
    steps_ns,
    waits_ms,
)
from pipediag.measures.run.places import PIPEDIAG, Place, Spent
from pipediag.session.record import Interval
from pipediag.session.recorded_loops import RecordedBoundary, RecordedLoop
from pipediag.session.recording import Recording
from pipediag.session.timeline import Timeline
from pipediag.tensorflow_names import CACHES
from pipediag.vocabulary import SpanKind

_FEWEST_STEPS = 5
"""For an interval, and on a repeated batch."""


@dataclass(frozen=True)
class SteadyStep:
    """Mean of a step, and its limits, in nanoseconds."""

    ns: float
    limits_ns: Interval | None = None


def steady_step(timeline: Timeline, recording: Recording, loop: RecordedLoop) -> SteadyStep | None:
    """Return the step by the baseline's steps that build nothing, if there are any.

    Where each of them builds its function for a length of its own, a repeated batch tells what the
    built function takes, and the baseline what it waits for its batch: what a first call takes
    beside its tracing is no step, but optimising what was traced. Without that, as where a repeated
    batch builds too, only the tracing is taken off.
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
    traced_ns = sum(
        max(0, min(one.end_ns, start + ns) - max(one.start_ns, start))
        for start, ns in steps.items()
        for one in building.spans
        if one.kind == "tracing" and one.end_ns is not None
    )
    return SteadyStep(max(0.0, (sum(steps.values()) - traced_ns) / len(steps)))


def _of(samples_ns: Floats) -> SteadyStep:
    few = len(samples_ns) < _FEWEST_STEPS
    limits = None if few else interval(resampled_means(samples_ns))
    return SteadyStep(float(samples_ns.mean()), limits)


def _free(steps: dict[int, int], building: Building) -> list[int]:
    """Return durations of the steps that build nothing."""
    return [ns for start, ns in steps.items() if not building.is_in(start, ns)]


def _wait_ns(recording: Recording, loop: RecordedLoop) -> float | None:
    """Return the mean wait of a call for its batches; None where nothing tells of it."""
    batches = loop.batches_per_call
    blocks = blocks_of(recording, loop, "baseline")
    known = [wait for block in blocks for wait in waits_ms(block, batches)[0]]
    return max(0.0, float(np.mean(known))) * batches * 1e6 if known else None


_LONG: frozenset[SpanKind] = frozenset({"script", "fit"})
"""Spans of which the rest is no one thing that comes again."""
_OF_A_LOOP = frozenset({"iterator", "first_batch", "steps"})


@dataclass
class Amounts:
    """Nanoseconds by place, and how often what is there came, where that is known."""

    ns: dict[Place, int]
    count: dict[Place, int]
    waits_ns: dict[str, list[int]] = field(default_factory=dict)
    """By loop, where the step itself asks for its first batch: of each epoch but the first, and but
    those in whose first step a function was built."""

    def move(self, ns: int, source: Place, target: Place) -> None:
        """Give time of one place to another, as much as is there."""
        moved = max(0, min(ns, self.ns.get(source, 0)))
        if moved:
            self.ns[source] -= moved
            self.ns[target] = self.ns.get(target, 0) + moved


def amounts_of(
    spent: Sequence[Spent], recording: Recording, step_ns: Mapping[str, float]
) -> Amounts:
    """Return sums by place, with what hooks can't tell apart divided by the loops' steady steps: a
    traced call made a step as well, a step that asks for its first batch waited for it, and steps
    under the profiler are the script's own."""
    amounts = Amounts({}, {})
    times: dict[Place, dict[str | None, set[int | None]]] = {}
    for one in spent:
        amounts.ns[one.place] = amounts.ns.get(one.place, 0) + one.ns
        if one.span is not None and one.span.kind not in _LONG:
            # A loop makes an iterator, waits for its first batch and has steps, which come in
            # several stretches if something interrupts them: what is rarest tells how often it ran.
            kind = one.span.kind if one.span.kind in _OF_A_LOOP else None
            times.setdefault(one.place, {}).setdefault(kind, set()).add(one.time)
    amounts.count.update(
        (place, min(map(len, by_kind.values()))) for place, by_kind in times.items()
    )
    for loop in recording.loops:
        if steps_of(loop) in amounts.count:
            amounts.count[steps_of(loop)] = loop.steps // loop.batches_per_call
        if loop.role == "training" and loop.id in step_ns:
            _settle(amounts, spent, recording, loop, step_ns[loop.id])
    return amounts


def steps_of(loop: RecordedLoop) -> Place:
    """Return the place of a training loop's steps."""
    return Place("steps", None, loop.file, loop.line, loop.id)


def starts_of(loop: RecordedLoop) -> Place:
    """Return the place of its waits for first batches."""
    return Place("epoch_start", None, loop.file, loop.line, loop.id)


@dataclass
class _FirstCall:
    """A call in which a function was built, without the tracing itself."""

    place: Place
    start_ns: int
    end_ns: int
    ns: int

    def holds(self, boundary: RecordedBoundary) -> bool:
        """Return True if an epoch began with it."""
        return self.start_ns <= boundary.asked_ns <= self.end_ns


def _settle(
    amounts: Amounts,
    spent: Iterable[Spent],
    recording: Recording,
    loop: RecordedLoop,
    step_ns: float,
) -> None:
    steps, starts = steps_of(loop), starts_of(loop)
    profiled = sum(len(block.durations_ns) for block in blocks_of(recording, loop, "profile"))
    amounts.move(round(profiled * step_ns), PIPEDIAG, steps)
    built = _built_in(spent, loop)
    if starts not in amounts.ns:
        _settle_waits(amounts, recording, loop, step_ns, built)
    for call in built:
        amounts.move(round(min(call.ns, step_ns)), call.place, steps)
    if recording.environment.keras_backend == "jax" and not built and loop.first_step_ns:
        place = Place("compile", "the step of `fit`", loop.file, loop.line)
        amounts.move(round(loop.first_step_ns - step_ns), steps, place)


def _settle_waits(
    amounts: Amounts,
    recording: Recording,
    loop: RecordedLoop,
    step_ns: float,
    built: Sequence[_FirstCall],
) -> None:
    """Move waits out of steps that ask for an epoch's first batch themselves."""
    steps, starts = steps_of(loop), starts_of(loop)
    waits = [
        max(0, round(boundary.first_step_ns - step_ns))
        for boundary in loop.epoch_boundaries
        if boundary.first_step_ns is not None and not any(call.holds(boundary) for call in built)
    ]
    amounts.waits_ns[loop.id] = waits
    amounts.move(sum(waits), steps, starts)
    usual = round(sum(waits) / len(waits)) if waits else 0
    at_boundaries = [
        call for call in built if any(call.holds(boundary) for boundary in loop.epoch_boundaries)
    ]
    for call in at_boundaries:
        _wait(amounts, usual, call, starts)
    if built:
        _wait(amounts, _first_wait_ns(recording, loop, waits), built[0], starts)
    else:
        amounts.move(loop.fill_ns or 0, steps, starts)
    amounts.count[starts] = len(waits) + len(at_boundaries) + 1


def _first_wait_ns(recording: Recording, loop: RecordedLoop, waits: Sequence[int]) -> int:
    """Return what the call that built the step waited for its batch: no longer than later waits,
    where each epoch starts its pipeline again and none reads what the first one kept."""
    found = loop.fill_ns or 0
    again = loop.iterators > len(loop.epoch_boundaries)
    kept = any(op.kind in CACHES for op in recording.upstream(loop.root_op_id))
    return min(found, max(waits)) if waits and again and not kept else found


def _wait(amounts: Amounts, ns: int, call: _FirstCall, starts: Place) -> None:
    waited = min(ns, call.ns)
    amounts.move(waited, call.place, starts)
    call.ns -= waited


def _built_in(spent: Iterable[Spent], loop: RecordedLoop) -> list[_FirstCall]:
    """Return first calls within the loop's steps, each with the step that it made."""
    calls: dict[int, _FirstCall] = {}
    for one in spent:
        span, within = one.span, one.loop_id == loop.id and one.place.part == "compile"
        if within and span is not None and span.kind == "first_call":
            call = calls.setdefault(span.id, _FirstCall(one.place, span.start_ns, 0, 0))
            call.end_ns = one.end_ns
            call.ns += one.ns
    return list(calls.values())
