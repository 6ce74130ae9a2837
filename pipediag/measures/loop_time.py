"""Where the time of a loop goes from its first step on, and the cost of creating its iterators."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile

import numpy as np

from pipediag.measures.pipeline_iterators import reads_a_cache
from pipediag.measures.recorded_windows import Floats, blocks_of, steps_ns
from pipediag.session.loops import LoopTime
from pipediag.session.recorded_loops import RecordedLoop, RecordedSeam
from pipediag.session.recorded_operations import RecordedOperation
from pipediag.session.recording import Recording
from pipediag.vocabulary import WindowKind

_SLOW_NS = 100_000_000
"""Own choice: from which on one that was seen alone is slow."""
_NOTICED_NS = 100_000_000
"""Own choice: of slow ones that are quicker than that, nothing is said."""

_PAUSE_FACTOR = 3
"""Own choice: a time that is so many times as long as the next longest one is an outlier. Two such
times are a rate, and none of them is an outlier."""

SLOW_ONES = "whether each epoch lets go of the last one's iterator as slowly as one was seen to"


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


def usual_ns(seen_ns: Sequence[float]) -> float:
    """Nanoseconds of the next one: of so few, a slow one is not taken for what each takes.

    Making an iterator lets go of the one before it, which takes milliseconds, and now and then
    up to a second. Own measurement: 2 of 21 epochs of a native `fit`.
    """
    if len(seen_ns) == 1 and seen_ns[0] >= _SLOW_NS:
        return 0.0
    return min(seen_ns, default=0.0)


def all_of_few_ns(seen_ns: Sequence[float], count: int) -> float:
    """Nanoseconds of so many, the few that were seen among them."""
    usual = usual_ns(seen_ns)
    left = count - len(seen_ns)
    return sum(seen_ns) + usual * left if left >= 0 else usual * count


def are_doubtful(seen_ns: Sequence[float], usual: float) -> bool:
    """Whether slow ones among them matter, which are not carried on."""
    return sum(seen_ns) - usual * len(seen_ns) > _NOTICED_NS


def cache_filled_meanwhile(recording: Recording, loop: RecordedLoop) -> RecordedOperation | None:
    """The cache that measured steps filled, and that any later epoch reads.

    None where an epoch had ended before they were over, where no other one follows, and where
    tf.data's model shows a cache that was full already. A `snapshot` is none: another run may have
    written it. Behind a `repeat` no epoch is seen to end.
    """
    blocks = blocks_of(recording, loop, "baseline")
    if loop.role != "training" or not blocks or _epochs(loop) == 1:
        return None
    ended_ns = min((seam.start_ns for seam in loop.epoch_seams), default=None)
    if loop.seams and (ended_ns is None or ended_ns < blocks[-1].starts_ns[-1]):
        return None
    snapshots = [one for one in recording.snapshots if one.loop_id == loop.id]
    if any(map(reads_a_cache, snapshots)):
        return None
    above = recording.upstream(loop.root_op_id)
    unrepeated = takewhile(lambda op: op.kind != "repeat", above)
    return next((op for op in unrepeated if op.kind == "cache"), None)


def _epochs(loop: RecordedLoop) -> int | None:
    """That are planned, where that is known; Keras has one where it is not told otherwise."""
    if loop.keras is None:
        return loop.planned_rounds
    return (loop.keras.epochs or 1) * (loop.planned_rounds or 1)


IN_GRAPH = "The loop runs inside a tf.function, where no clock sees what lies between its epochs."
TOO_SHORT = "No step followed the first one, or none was measured without a profiler."

_DISTURBED: tuple[WindowKind, ...] = ("profile", "repeat")
_FEWEST_FOR_MEAN = 3
"""Own choice: with so many makings of iterators, slow ones are as frequent as they were seen."""


@dataclass(frozen=True)
class _Means:
    """Mean milliseconds of a step and at the end of an epoch, and how many ends were seen."""

    step_ms: float
    count: int
    wait_ms: float
    makings_ns: Sequence[int]
    """Of each iterator that was made at an end."""
    between_ms: float
    pause_ms: float

    def making_ms(self, ends: int) -> float:
        """Of so many ends, those that were seen among them."""
        seen = self.makings_ns
        enough = len(seen) >= _FEWEST_FOR_MEAN
        return (ends * _mean(seen) if enough else all_of_few_ns(seen, ends)) / 1e6


@dataclass(frozen=True)
class _Ends:
    """Milliseconds of all the ends of epochs together."""

    waits_ms: float
    making_ms: float
    between_ms: float

    @property
    def all_ms(self) -> float:
        return self.waits_ms + self.making_ms + self.between_ms


def time_of(recording: Recording, loop: RecordedLoop) -> LoopTime | None:
    """The loop as planned, where the script says how long it runs, or else as far as it was seen,
    as where only the epoch was that fills a cache.

    The steps are counted at the mean of the baseline, in which no first batch of an epoch is waited
    for: where a call asks for its batch itself, what the first call takes longer is that wait.
    Steps under the profiler and on a repeated batch are left out. None where nothing can be said.
    """
    step_ms = steady_step_ms(recording, loop)
    if step_ms is None or loop.warm_ns is None or loop.last_ns is None:
        return None
    disturbed = steps_ns(recording, loop, *_DISTURBED)
    waits = {
        seam.asked_ns: wait
        for seam in loop.epoch_seams
        if seam.asked_ns not in disturbed and (wait := _wait_ms(seam, step_ms)) is not None
    }
    making = [min(seam.making_ns, _ahead_ns(seam)) for seam in loop.epoch_seams]
    between = [
        (_ahead_ns(seam) - ns) / 1e6 for seam, ns in zip(loop.epoch_seams, making, strict=True)
    ]
    total_ms = (loop.last_ns - loop.warm_ns - loop.set_aside_ns) / 1e6
    total_ms -= sum(disturbed.values()) / 1e6
    number = pause_among(making)
    pause_ms = making.pop(number) / 1e6 if number is not None else 0.0
    total_ms -= pause_ms
    steps = loop.warm_steps - len(disturbed) * loop.batches_per_call
    if steps <= 0 or total_ms <= 0:
        return None
    means = _Means(step_ms, len(between), _mean(waits.values()), making, _mean(between), pause_ms)
    ends = _Ends(sum(waits.values()), sum(making) / 1e6, sum(between))
    seen = _account("measured", total_ms, steps * step_ms, ends, means)
    filled = cache_filled_meanwhile(recording, loop) is not None
    return seen if filled else _as_planned(loop, seen, means)


def time_missing(loop: RecordedLoop) -> str:
    """Why nothing is said of a training loop's time."""
    return IN_GRAPH if loop.kind == "in_graph" else TOO_SHORT


def seen_s(loop: RecordedLoop) -> float:
    """How long the loop was seen: from the first request to the last hand-over, without us."""
    if loop.asked_ns is None or loop.last_ns is None:
        return loop.elapsed_ns / 1e9
    return max(loop.elapsed_ns, loop.last_ns - loop.asked_ns - loop.set_aside_ns) / 1e9


def steady_step_ms(recording: Recording, loop: RecordedLoop) -> float | None:
    """Mean milliseconds per batch in the baseline, without those that wait for a first batch."""
    steady: Floats = np.array(list(steady_steps_ns(recording, loop).values()), dtype=float)
    return float(steady.mean()) / 1e6 / loop.batches_per_call if len(steady) else None


def steady_steps_ns(recording: Recording, loop: RecordedLoop) -> dict[int, int]:
    """Nanoseconds of the same steps, which may be calls of several batches, by their begin."""
    first = {seam.asked_ns for seam in loop.epoch_seams if seam.handed_ns is None}
    measured = steps_ns(recording, loop, "baseline")
    return {start: ns for start, ns in measured.items() if start not in first}


def _as_planned(loop: RecordedLoop, seen: LoopTime, means: _Means) -> LoopTime:
    """With every epoch in it; ends of epochs count where one was seen."""
    epoch_steps = loop.keras.steps_per_epoch if loop.keras is not None else None
    if not epoch_steps or loop.planned_steps is None or loop.steps > loop.planned_steps:
        return seen
    # A training that resumes plans fewer epochs than it is given.
    epochs = loop.planned_steps // epoch_steps
    ends = max(epochs - 1, means.count) if means.count else 0
    steps_ms = max(0, loop.planned_steps - loop.batches_per_call) * means.step_ms
    taken = _Ends(ends * means.wait_ms, means.making_ms(ends), ends * means.between_ms)
    total_ms = steps_ms + taken.all_ms + 1000.0 * seen.unexplained_s
    if total_ms <= 1000.0 * seen.total_s:
        return seen
    return _account("projected", total_ms, steps_ms, taken, means)


def _account(basis: str, total_ms: float, steps_ms: float, ends: _Ends, means: _Means) -> LoopTime:
    """Parts that add up to the whole; steps that would be more than is left are what is left."""
    waits_ms = min(ends.waits_ms, total_ms)
    making_ms = min(ends.making_ms, total_ms - waits_ms)
    between_ms = min(ends.between_ms, total_ms - waits_ms - making_ms)
    steps_ms = min(steps_ms, total_ms - waits_ms - making_ms - between_ms)
    unexplained_ms = total_ms - steps_ms - waits_ms - making_ms - between_ms
    return LoopTime.model_validate(
        {
            "basis": basis,
            "total_s": total_ms / 1000.0,
            "steps_s": steps_ms / 1000.0,
            "step_ms": means.step_ms,
            "first_batches_s": waits_ms / 1000.0,
            "making_s": making_ms / 1000.0,
            "pause_s": means.pause_ms / 1000.0,
            "between_epochs_s": between_ms / 1000.0,
            "unexplained_s": max(0.0, round(unexplained_ms, 6)) / 1000.0,
            "epoch_ends_seen": means.count,
            "first_batch_ms": means.wait_ms if means.count else None,
        }
    )


def _ahead_ns(seam: RecordedSeam) -> int:
    """From the last step to the request for the next batch."""
    return max(0, seam.asked_ns - seam.start_ns)


def _wait_ms(seam: RecordedSeam, step_ms: float) -> float | None:
    if seam.handed_ns is not None:
        return (seam.handed_ns - seam.asked_ns) / 1e6
    if seam.first_step_ns is None:
        return None
    return max(0.0, seam.first_step_ns / 1e6 - step_ms)


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return sum(listed) / len(listed) if listed else 0.0
