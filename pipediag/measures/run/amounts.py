"""Time of each place of the run, the steady step of a training loop, and values with limits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from pipediag.estimates import Floats, interval, resampled_means
from pipediag.facts.run_gain import ONCE_OFF
from pipediag.measures.loops import median_step_ms
from pipediag.measures.run.places import PIPEDIAG, Place, Spent
from pipediag.measures.steps import FEWEST_STEPS, Building, blocks_of, input_waits, steps_ns
from pipediag.session.record import Interval
from pipediag.session.recorded_loops import RecordedLoop
from pipediag.session.recording import Recording
from pipediag.session.timeline import Timeline
from pipediag.tensorflow_names import CACHES
from pipediag.vocabulary import SpanKind

FEWEST_FOR_INTERVAL = 3
"""Fewest values for an interval. Own choice: a bootstrap over two epochs would show the two."""


@dataclass(frozen=True)
class Projected:
    """Nanoseconds of a place in the whole run, with limits from the scatter of its epochs."""

    ns: float
    count: int | None
    limits_ns: Interval
    projected: bool = True

    @classmethod
    def seen(cls, ns: float, count: int | None) -> Projected:
        """Return a time that was measured, which is certain."""
        return cls(ns, count, (ns, ns), projected=False)

    def plus_ns(self, ns: int) -> Projected:
        """Add earlier time, which is certain; the count is no longer known."""
        if not ns:
            return self
        low, high = self.limits_ns
        return Projected(self.ns + ns, None, (low + ns, high + ns), self.projected)

    def share(self, of_it: float) -> Projected:
        """Return a part of it, or a multiple."""
        low, high = self.limits_ns
        return replace(self, ns=self.ns * of_it, limits_ns=(low * of_it, high * of_it))

    def together(self, other: Projected) -> Projected:
        """Return the sum, as both may be off in the same direction, with the larger one's count."""
        larger = max(self, other, key=lambda one: one.ns)
        (low, high), (others_low, others_high) = self.limits_ns, other.limits_ns
        limits = low + others_low, high + others_high
        projected = self.projected or other.projected
        return Projected(self.ns + other.ns, larger.count, limits, projected)


def in_doubt(ns: float, count: int | None) -> Projected:
    """Return a value from too few times to show scatter, as uncertain as what comes once."""
    return Projected(ns, count, ((1.0 - ONCE_OFF) * ns, (1.0 + ONCE_OFF) * ns))


def as_often(times_ns: Sequence[int], factor: float) -> Projected:
    """Return the sum of these times multiplied by a factor; its count is not known."""
    return replace(projected(times_ns, len(times_ns)).share(factor), count=None)


def projected(times_ns: Sequence[int], count: int) -> Projected:
    """Return `count` times the mean of the times seen, with limits from their scatter; for fewer
    than three times, with the limits of what comes once."""
    if not times_ns or count <= 0:
        return Projected(0.0, count, (0.0, 0.0))
    mean = sum(times_ns) / len(times_ns)
    if len(times_ns) < FEWEST_FOR_INTERVAL:
        low, high = min(times_ns) * (1.0 - ONCE_OFF), max(times_ns) * (1.0 + ONCE_OFF)
    else:
        low, high = interval(resampled_means(times_ns))
    return Projected(mean * count, count, (low * count, high * count))


def steady_step(timeline: Timeline, recording: Recording, loop: RecordedLoop) -> Projected | None:
    """Return the mean of the baseline's steps that build no function, if there are any.

    If each step builds its function for a length of its own, steps on a repeated batch show the
    time of the built function, and the baseline its wait for a batch: beside its tracing, a first
    call optimises what was traced, which is no step. Without such steps, as where a repeated batch
    builds a function too, only the tracing is subtracted.
    """
    first = {boundary.asked_ns for boundary in loop.epoch_boundaries if boundary.handed_ns is None}
    measured = steps_ns(recording, loop, "baseline")
    steps = {start: ns for start, ns in measured.items() if start not in first}
    if not steps:
        median = median_step_ms(recording, loop)
        return in_doubt(median * loop.batches_per_call * 1e6, 1) if median else None
    building = Building(timeline)
    free = _free(steps, building)
    if free:
        return _of(np.array(free, dtype=float))
    repeated = _free(steps_ns(recording, loop, "repeat"), building)
    batches, blocks = loop.batches_per_call, blocks_of(recording, loop, "baseline")
    waits_ms = [wait for block in blocks for wait in input_waits(block, batches)[0]]
    if len(repeated) >= FEWEST_STEPS and waits_ms:
        wait_ns = max(0.0, float(np.mean(waits_ms))) * batches * 1e6
        return _of(np.array(repeated, dtype=float) + wait_ns)
    traced_ns = sum(
        max(0, min(one.end_ns, start + ns) - max(one.start_ns, start))
        for start, ns in steps.items()
        for one in building.spans
        if one.kind == "tracing" and one.end_ns is not None
    )
    return in_doubt(max(0.0, (sum(steps.values()) - traced_ns) / len(steps)), 1)


def _of(samples_ns: Floats) -> Projected:
    mean = float(samples_ns.mean())
    if len(samples_ns) < FEWEST_STEPS:
        return in_doubt(mean, 1)
    return Projected(mean, 1, interval(resampled_means(samples_ns)))


def _free(steps: dict[int, int], building: Building) -> list[int]:
    """Return durations of the steps that build nothing."""
    return [ns for start, ns in steps.items() if not building.is_in(start, ns)]


_LONG: frozenset[SpanKind] = frozenset({"script", "fit"})
"""Kinds of spans whose own time is not one thing that comes again."""
_OF_A_LOOP = frozenset({"iterator", "first_batch", "steps"})


@dataclass
class Amounts:
    """Nanoseconds by place, and how often each place's work came, where that is known."""

    ns: dict[Place, int]
    count: dict[Place, int]
    waits_ns: dict[str, list[int]] = field(default_factory=dict)
    """Waits for first batches by loop, where the step itself asks for them: of each epoch but the
    first, and but those in whose first step a function was built."""
    out_of_first_ns: dict[str, int] = field(default_factory=dict)
    """Time that was moved out of the steps of the first epoch, by loop: a wait, or building."""

    def move(self, ns: int, source: Place, target: Place) -> int:
        """Move time from one place to another, at most as much as is there, and return how much."""
        moved = max(0, min(ns, self.ns.get(source, 0)))
        if moved:
            self.ns[source] -= moved
            self.ns[target] = self.ns.get(target, 0) + moved
        return moved


def amounts_of(
    spent: Sequence[Spent], recording: Recording, step_ns: Mapping[str, float]
) -> Amounts:
    """Return sums by place. Time that hooks can't separate is divided by the loops' steady steps: a
    traced call made a step as well, a step that asks for its first batch waited for it, and steps
    under the profiler are the script's own."""
    amounts = Amounts({}, {})
    stretches: dict[Place, list[Spent]] = {}
    for one in spent:
        amounts.ns[one.place] = amounts.ns.get(one.place, 0) + one.ns
        stretches.setdefault(one.place, []).append(one)
    counts = {place: occurrences(here) for place, here in stretches.items()}
    amounts.count.update((place, count) for place, count in counts.items() if count)
    for loop in recording.loops:
        if steps_of(loop) in amounts.count:
            amounts.count[steps_of(loop)] = loop.steps // loop.batches_per_call
        if loop.role == "training" and loop.id in step_ns:
            _settle(amounts, spent, recording, loop, step_ns[loop.id])
        elif loop.role in ("validation", "evaluate", "predict"):
            _settle_evaluation(amounts, loop)
    return amounts


def occurrences(stretches: Iterable[Spent]) -> int:
    """Return how often the work of a place came; 0 where that is not known."""
    times: dict[str | None, set[int | None]] = {}
    for one in stretches:
        if one.span is not None and one.span.kind not in _LONG:
            # A loop makes an iterator, waits for its first batch and has steps, which come in
            # several stretches if something interrupts them: the rarest of these shows how often it
            # ran.
            kind = one.span.kind if one.span.kind in _OF_A_LOOP else None
            times.setdefault(kind, set()).add(one.time)
    return min(map(len, times.values()), default=0)


def steps_of(loop: RecordedLoop) -> Place:
    """Return the place of a training loop's steps."""
    return Place("steps", None, loop.file, loop.line, loop.id)


def starts_of(loop: RecordedLoop) -> Place:
    """Return the place of a training loop's waits for first batches."""
    return Place("epoch_start", None, loop.file, loop.line, loop.id)


@dataclass
class _FirstCall:
    """A call in which a function was built, without the tracing itself."""

    place: Place
    start_ns: int
    end_ns: int
    ns: int


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
        moved = amounts.move(round(loop.first_step_ns - step_ns), steps, place)
        amounts.out_of_first_ns[loop.id] = amounts.out_of_first_ns.get(loop.id, 0) + moved


def _settle_evaluation(amounts: Amounts, loop: RecordedLoop) -> None:
    """Move the wait for a first batch from the tracing call to the evaluation."""
    here = [place for place in amounts.ns if (place.file, place.line) == (loop.file, loop.line)]
    function = "predict" if loop.role == "predict" else "evaluate"
    built = (place for place in here if place.what == f"the step of `{function}`")
    evaluated = (place for place in here if place.part == "evaluation")
    source, target = next(built, None), next(evaluated, None)
    if source is not None and target is not None:
        amounts.move(loop.fill_ns or 0, source, target)


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
        if boundary.first_step_ns is not None
        and not any(call.start_ns <= boundary.asked_ns <= call.end_ns for call in built)
    ]
    amounts.waits_ns[loop.id] = waits
    amounts.move(sum(waits), steps, starts)
    first_ns = loop.fill_ns or 0
    if built:
        again = loop.iterators > len(loop.epoch_boundaries)
        kept = any(op.kind in CACHES for op in recording.upstream(loop.root_op_id))
        if waits and again and not kept:
            # No longer than later waits: each epoch starts its pipeline again.
            first_ns = min(first_ns, max(waits))
        first_ns = min(first_ns, built[0].ns)
        built[0].ns -= first_ns
    moved = amounts.move(first_ns, built[0].place if built else steps, starts)
    amounts.out_of_first_ns[loop.id] = 0 if built else moved
    amounts.count[starts] = len(waits) + 1


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
