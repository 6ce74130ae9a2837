"""The loops of the script, where their time goes, and which of them is diagnosed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from itertools import takewhile
from pathlib import PurePath
from statistics import fmean
from typing import Any

import numpy as np

from pipediag.measures.pipeline import written_pipeline
from pipediag.measures.pipeline_iterators import reads_a_cache
from pipediag.measures.recorded_windows import Floats, blocks_of, step_ms, steps_ns
from pipediag.measures.steps import FEWEST_STEPS
from pipediag.session.loops import Evaluation, Loop, LoopTime, NestedCall
from pipediag.session.messages import WantedLoop
from pipediag.session.recorded_loops import (
    KerasUse,
    LoopFacts,
    RecordedBoundary,
    RecordedEvaluation,
    RecordedLoop,
)
from pipediag.session.recording import RecordedOperation, Recording
from pipediag.vocabulary import EVALUATING, WindowKind

_SLOW_NS = 100_000_000
"""Own choice: from here on a time that was seen alone is slow. To destroy an iterator, TensorFlow
waits for the thread that tunes it: 1.7 to 2.0 s at 7 of 24 epoch boundaries of one `fit`, 5 to 27
ms at the others (own measurement, TensorFlow 2.21)."""
_PAUSE_FACTOR = 3
"""Own choice: a time so many times as long as the next longest is an outlier; two are a rate."""

PAUSE_SEEN_ONCE = "pauses as an epoch's iterator is destroyed, of which one was seen"


def pause_among(times_ns: Sequence[int], first_ns: int = 0) -> int | None:
    """Return the index of the one time that is an outlier, or is slow and the only one.

    `first_ns`: what the first iterator took to create, where that is known.
    """
    if not times_ns:
        return None
    *others, longest = sorted(times_ns)
    others = sorted([*others, first_ns] if first_ns else others)
    if longest < _SLOW_NS or (others and longest < _PAUSE_FACTOR * others[-1]):
        return None
    return list(times_ns).index(longest)


def cache_filled_meanwhile(recording: Recording, loop: RecordedLoop) -> RecordedOperation | None:
    """Return the cache that measured steps filled, and that any later epoch reads, or None.

    It is none where an epoch had ended before they were over, or tf.data's model shows it full. A
    `snapshot` is none: another run may have written it. Behind a `repeat` no epoch is seen to end.
    """
    blocks = blocks_of(recording, loop, "baseline")
    if loop.role != "training" or not blocks or _epochs(loop) == 1:
        return None
    ended_ns = min((boundary.start_ns for boundary in loop.epoch_boundaries), default=None)
    if loop.boundaries and (ended_ns is None or ended_ns < blocks[-1].starts_ns[-1]):
        return None
    snapshots = [one for one in recording.snapshots if one.loop_id == loop.id]
    if any(map(reads_a_cache, snapshots)):
        return None
    above = recording.upstream(loop.root_op_id)
    unrepeated = takewhile(lambda op: op.kind != "repeat", above)
    return next((op for op in unrepeated if op.kind == "cache"), None)


def _epochs(loop: RecordedLoop) -> int | None:
    """Return the planned epochs, where they are known; Keras trains for one by default."""
    if loop.keras is None:
        return loop.planned_rounds
    return (loop.keras.epochs or 1) * (loop.planned_rounds or 1)


IN_GRAPH = "The loop runs inside a tf.function, where no clock sees what lies between its epochs."
TOO_SHORT = "No step followed the first one, or none was measured without a profiler."

_DISTURBED: tuple[WindowKind, ...] = ("profile", "repeat")


def time_of(recording: Recording, loop: RecordedLoop) -> LoopTime | None:
    """Return where the loop's time went as far as it was seen; None where nothing can be said.

    Steps count with the baseline's mean, in which no first batch is waited for: where a call asks
    for its batch itself, what the first call takes longer is that wait. The parts add up to the
    whole; steps that would be more than is left are cut.
    """
    step_ms = steady_step_ms(recording, loop)
    if step_ms is None or loop.warm_ns is None or loop.last_ns is None:
        return None
    disturbed = steps_ns(recording, loop, *_DISTURBED)
    each_wait = [
        wait
        for boundary in loop.epoch_boundaries
        if boundary.asked_ns not in disturbed and (wait := _wait_ms(boundary, step_ms)) is not None
    ]
    # From the last step to the request for the next batch.
    ahead = [max(0, boundary.asked_ns - boundary.start_ns) for boundary in loop.epoch_boundaries]
    made = [
        min(boundary.making_ns, ns)
        for boundary, ns in zip(loop.epoch_boundaries, ahead, strict=True)
    ]
    between = (sum(ahead) - sum(made)) / 1e6
    number = pause_among(made)
    pause_ns = made.pop(number) if number is not None else 0
    total_ns = loop.last_ns - loop.warm_ns - loop.set_aside_ns - sum(disturbed.values()) - pause_ns
    count = _undisturbed(loop, disturbed)
    if count <= 0 or total_ns <= 0:
        return None
    total = total_ns / 1e6
    waits = min(sum(each_wait), total)
    making = min(sum(made) / 1e6, total - waits)
    between = min(between, total - waits - making)
    steps = min(count * step_ms, total - waits - making - between)
    rest = max(0.0, round(total - steps - waits - making - between, 6))
    return LoopTime(
        total_s=total / 1000.0,
        steps_s=steps / 1000.0,
        step_ms=step_ms,
        first_batches_s=waits / 1000.0,
        making_s=making / 1000.0,
        between_epochs_s=between / 1000.0,
        unexplained_s=rest / 1000.0,
        epoch_ends_seen=len(ahead),
        first_batch_ms=(fmean(each_wait) if each_wait else 0.0) if ahead else None,
    )


def _undisturbed(loop: RecordedLoop, disturbed: Mapping[int, int]) -> int:
    """Return the batches after the first step, without those of steps that pipediag disturbed."""
    return loop.warm_steps - len(disturbed) * loop.batches_per_call


def _wait_ms(boundary: RecordedBoundary, step_ms: float) -> float | None:
    if boundary.handed_ns is not None:
        return (boundary.handed_ns - boundary.asked_ns) / 1e6
    if boundary.first_step_ns is None:
        return None
    return max(0.0, boundary.first_step_ns / 1e6 - step_ms)


def time_missing(loop: RecordedLoop) -> str:
    """Return why a training loop's time is not known."""
    return IN_GRAPH if loop.kind == "in_graph" else TOO_SHORT


def seen_s(loop: RecordedLoop) -> float:
    """Return the seconds from the first request to the last batch, without pipediag's own work."""
    if loop.asked_ns is None or loop.last_ns is None:
        return loop.elapsed_ns / 1e9
    return max(loop.elapsed_ns, loop.last_ns - loop.asked_ns - loop.set_aside_ns) / 1e9


def steady_step_ms(recording: Recording, loop: RecordedLoop) -> float | None:
    """Return the mean per batch in the baseline, without steps that wait for a first batch."""
    steady: Floats = np.array(list(steady_steps_ns(recording, loop).values()), dtype=float)
    return float(steady.mean()) / 1e6 / loop.batches_per_call if len(steady) else None


def steady_steps_ns(recording: Recording, loop: RecordedLoop) -> dict[int, int]:
    """Return the nanoseconds of these steps by their start; one may be several batches."""
    first = {boundary.asked_ns for boundary in loop.epoch_boundaries if boundary.handed_ns is None}
    measured = steps_ns(recording, loop, "baseline")
    return {start: ns for start, ns in measured.items() if start not in first}


def diagnosed_loop(
    recording: Recording, among: Iterable[RecordedLoop] | None = None
) -> RecordedLoop | None:
    """Return the training loop that costs most, of all or `among` some; None where nothing trained.
    One with a baseline goes before one without, which has nothing to diagnose."""
    loops = recording.loops if among is None else among
    training = [loop for loop in loops if loop.role == "training"]

    def rank(loop: RecordedLoop) -> tuple[bool, float]:
        measured = len(step_ms(recording, loop, "baseline")) >= FEWEST_STEPS
        return measured, cost_s(recording, loop)

    return max(training, key=rank, default=None)


def cost_s(recording: Recording, loop: RecordedLoop) -> float:
    """Return the seconds of the whole loop: as projected, or as far as it was seen.

    One of the script's own that goes on, or was cut off, is as long as the source and the length of
    its data tell, if they do.
    """
    projected = projected_s(recording, loop)
    if projected is not None:
        return projected
    lasts = [one.last_ns or 0 for one in recording.loops if one.role == "training"]
    in_it = recording.outcome in ("running", "stopped")
    cut_off = in_it and loop.last_ns == max(lasts, default=None)
    median = median_step_ms(recording, loop)
    if not cut_off or median is None or not loop.data_steps or not loop.planned_rounds:
        return seen_s(loop)
    return max(seen_s(loop), median * loop.data_steps * loop.planned_rounds / 1000.0)


def projected_s(recording: Recording, loop: RecordedLoop) -> float | None:
    """Return what the planned steps take at the pace of those seen, with all between them, and no
    less than was seen. None without a plan, and where an epoch was seen that is unlike others."""
    if loop.planned_steps is None or cache_filled_meanwhile(recording, loop) is not None:
        return None
    time = time_of(recording, loop)
    if time is not None and loop.asked_ns is not None and loop.warm_ns is not None:
        seen = _undisturbed(loop, steps_ns(recording, loop, *_DISTURBED))
        planned = max(0, loop.planned_steps - loop.batches_per_call)
        start_s = (loop.warm_ns - loop.asked_ns) / 1e9
        return max(seen_s(loop), start_s + time.total_s * planned / seen)
    median = median_step_ms(recording, loop)
    if median is None:
        return None
    return max(seen_s(loop), median * loop.planned_steps / 1000.0)


def median_step_ms(recording: Recording, loop: RecordedLoop) -> float | None:
    """Per batch, from the baseline, or else from the warm-up, or else from the elapsed time.

    The last two include the first step.
    """
    for kind in ("baseline", "warmup"):
        samples = step_ms(recording, loop, kind)
        if len(samples):
            return float(np.median(samples))
    return loop.elapsed_ns / 1e6 / loop.steps if loop.steps else None


def loop_rows(recording: Recording, diagnosed: RecordedLoop | None) -> list[Loop]:
    """Every loop of the script, in the order in which they began."""
    return [_row(recording, loop, loop is diagnosed) for loop in recording.loops]


def _keras(recording: Recording, loop: RecordedLoop) -> KerasUse | None:
    if loop.keras is None:
        return None
    clocked = [one for one in recording.stacks if one.loop_id == loop.id and one.steps_ns > 0]
    steps_ns = sum(one.steps_ns for one in clocked)
    if not clocked:
        return loop.keras

    def percent(name: str) -> float:
        return 100.0 * sum(one.callbacks_ns.get(name, 0) for one in clocked) / steps_ns

    callbacks = [replace(one, step_percent=percent(one.name)) for one in loop.keras.callbacks]
    return replace(loop.keras, callbacks=callbacks)


def _row(recording: Recording, loop: RecordedLoop, diagnosed: bool) -> Loop:
    time = time_of(recording, loop) if loop.role == "training" else None
    filled = cache_filled_meanwhile(recording, loop)
    own: dict[str, Any] = {
        "diagnosed": diagnosed,
        "elapsed_s": seen_s(loop),
        "median_step_ms": median_step_ms(recording, loop),
        "projected_s": projected_s(recording, loop),
        "time": time,
        "time_missing": time_missing(loop) if time is None and loop.role == "training" else None,
        "keras": _keras(recording, loop),
        "nested": _nested(loop),
        "filled_cache_op_id": filled.id if filled is not None else None,
        "pipeline": written_pipeline(recording, loop) if loop.role in EVALUATING else None,
        "evaluation": _evaluation(loop.evaluation),
    }
    recorded = {one.name: getattr(loop, one.name) for one in fields(LoopFacts)}
    return Loop(**{**recorded, **own})


def _nested(loop: RecordedLoop) -> list[NestedCall]:
    return [
        NestedCall(
            what=call.what,
            file=call.file,
            line=call.line,
            percent=min(100.0, 100.0 * call.elapsed_ns / loop.elapsed_ns),
            ms=call.elapsed_ns / 1e6 / call.count,
        )
        for call in loop.nested
        if call.count and loop.elapsed_ns
    ]


def _evaluation(seen: RecordedEvaluation | None) -> Evaluation | None:
    """Per batch. A gap lies between two requests, so that it holds no waiting for either."""
    if seen is None or not seen.batches:
        return None
    step = seen.elapsed_ns / 1e6 / seen.batches
    gap = fmean(seen.gaps_us) / 1e3 if seen.gaps_us else None
    return Evaluation(
        steps=seen.batches, step_ms=step, consumer_ms=None if gap is None else min(gap, step)
    )


_MOST_NAMED = 8


def chosen_loop(
    recording: Recording, wanted: WantedLoop | None
) -> tuple[RecordedLoop | None, list[str]]:
    """Return the loop to diagnose, or None, and a note where several or none were to choose from.

    Args:
        wanted: the line that `--loop` gives, or `longest`, which is what is chosen anyway.
    """
    training = [loop for loop in recording.loops if loop.role == "training"]
    at_line = isinstance(wanted, int)
    among = [loop for loop in training if not at_line or loop.line == wanted]
    loop = diagnosed_loop(recording, among)
    others = _named(_place(one) for one in training if one is not loop)
    note = None
    if loop is None:
        if training:
            note = (
                f"No training loop begins at line {wanted}, as --loop asks, so nothing was "
                f"diagnosed. Training loops were seen at {others}: give the line of one of these."
            )
    elif len(training) > 1 and at_line:
        note = (
            f"The training loop at {_place(loop)} is the one that --loop asks for. Others were "
            f"seen at {others}."
        )
    elif len(training) > 1:
        note = (
            f"Of {len(training)} training loops the one at {_place(loop)} is diagnosed: it takes "
            f"most, {cost_s(recording, loop):.3g} s, of those that could be measured. Others were "
            f"seen at {others}; `--loop LINE` takes another."
        )
    elif wanted is None and recording.outcome == "stopped" and loop.followed_by:
        # Nothing was seen of what comes after the loop that the script was stopped in.
        places = _named(PurePath(place).name for place in loop.followed_by)
        note = (
            f"By its source the script trains again at {places}, behind the loop at "
            f"{_place(loop)} that it was stopped in: `--loop longest` lets it go on and diagnoses "
            "the longest of all."
        )
    return loop, [note] if note is not None else []


def _named(places: Iterable[str]) -> str:
    named = list(dict.fromkeys(places))
    more = f" and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
    return ", ".join(named[:_MOST_NAMED]) + more


def _place(loop: RecordedLoop) -> str:
    if loop.file is None or loop.line is None:
        return "a line that is not known"
    return f"{PurePath(loop.file).name}:{loop.line}"
