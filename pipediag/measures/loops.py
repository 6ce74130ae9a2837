"""The loops of the script, and which of them is diagnosed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import fields, replace
from itertools import takewhile
from typing import Any

import numpy as np

from pipediag.facts.names import line_name
from pipediag.measures.pipeline import written_pipeline
from pipediag.measures.pipeline_iterators import reads_a_cache
from pipediag.measures.steps import FEWEST_STEPS, Missing, blocks_of, step_ms
from pipediag.session.ledger import Run
from pipediag.session.loops import Loop
from pipediag.session.recorded_loops import LoopFacts, RecordedLoop
from pipediag.session.recording import RecordedOperation, Recording

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
    epochs = loop.planned_rounds
    if loop.keras is not None:
        # Keras trains for one by default.
        epochs = (loop.keras.epochs or 1) * (epochs or 1)
    if loop.role != "training" or not blocks or epochs == 1:
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


def seen_s(loop: RecordedLoop) -> float:
    """Return the seconds from the first request to the last batch, without pipediag's own work."""
    if loop.asked_ns is None or loop.last_ns is None:
        return loop.elapsed_ns / 1e9
    return max(loop.elapsed_ns, loop.last_ns - loop.asked_ns - loop.set_aside_ns) / 1e9


def whole_s(run: Run | Missing, loop: RecordedLoop) -> float | None:
    """Return the loop's seconds by a ledger of the run, no less than was seen; None without one."""
    if isinstance(run, Missing) or run.scope != "run":
        return None
    took_s = sum(row.seconds for row in run.parts if row.loop_id == loop.id)
    return max(seen_s(loop), took_s) if took_s else None


def median_step_ms(recording: Recording, loop: RecordedLoop) -> float | None:
    """Return it per batch, by the baseline, else by what includes the first step."""
    for kind in ("baseline", "warmup"):
        samples = step_ms(recording, loop, kind)
        if len(samples):
            return float(np.median(samples))
    return loop.elapsed_ns / 1e6 / loop.steps if loop.steps else None


def loop_rows(
    recording: Recording, run: Run | Missing, diagnosed: RecordedLoop | None
) -> list[Loop]:
    """Return every loop of the script, in the order in which they began."""
    return [_row(recording, run, loop, loop is diagnosed) for loop in recording.loops]


def _row(recording: Recording, run: Run | Missing, loop: RecordedLoop, diagnosed: bool) -> Loop:
    filled, keras = cache_filled_meanwhile(recording, loop), loop.keras
    clocked = [one for one in recording.stacks if one.loop_id == loop.id and one.steps_ns > 0]
    if keras is not None and clocked:
        steps_ns = sum(one.steps_ns for one in clocked)
        spent: Counter[str] = Counter()
        for one in clocked:
            spent.update(one.callbacks_ns)
        callbacks = [
            replace(one, step_percent=100.0 * spent[one.name] / steps_ns) for one in keras.callbacks
        ]
        keras = replace(keras, callbacks=callbacks)
    own: dict[str, Any] = {
        "diagnosed": diagnosed,
        "elapsed_s": seen_s(loop),
        "median_step_ms": median_step_ms(recording, loop),
        "projected_s": whole_s(run, loop),
        "epoch_ends": len(loop.epoch_boundaries),
        "keras": keras,
        "nested": [
            replace(
                call,
                percent=min(100.0, 100.0 * call.elapsed_ns / loop.elapsed_ns),
                ms=call.elapsed_ns / 1e6 / call.count,
            )
            for call in loop.nested
            if call.count and loop.elapsed_ns
        ],
        "filled_cache_op_id": filled.id if filled is not None else None,
        "pipeline": written_pipeline(recording, loop) if loop.role != "training" else None,
    }
    recorded = {one.name: getattr(loop, one.name) for one in fields(LoopFacts)}
    return Loop(**{**recorded, **own})


def chosen_loop(
    recording: Recording, run: Run | Missing, wanted: int | None
) -> tuple[RecordedLoop | None, list[str]]:
    """Return the loop to diagnose, or None, and a note where several or none were to choose from.

    It is the training loop that costs most. One with a baseline goes before one without, which has
    nothing to diagnose. `wanted` is the line that `--loop` gives.
    """
    training = [loop for loop in recording.loops if loop.role == "training"]
    costs_s = {loop.id: whole_s(run, loop) or seen_s(loop) for loop in training}

    def rank(loop: RecordedLoop) -> tuple[bool, float]:
        return len(step_ms(recording, loop, "baseline")) >= FEWEST_STEPS, costs_s[loop.id]

    among = (loop for loop in training if wanted is None or loop.line == wanted)
    if not training:
        return None, []
    loop = max(among, key=rank, default=None)
    others = ", ".join(dict.fromkeys(_place(one) for one in training if one is not loop))
    if loop is None:
        note = (
            f"No training loop begins at line {wanted}, which `--loop` names, so nothing was "
            f"diagnosed. Training loops were seen at {others}: give the line of one of these."
        )
        return None, [note]
    if len(training) == 1:
        return loop, []
    why = "the longest of those that could be measured" if wanted is None else "as `--loop` asks"
    note = (
        f"Of {len(training)} training loops, the one at {_place(loop)} is diagnosed, {why} "
        f"({costs_s[loop.id]:.3g} s). Others were seen at {others}; `--loop LINE` selects another."
    )
    return loop, [note]


def _place(loop: RecordedLoop) -> str:
    return line_name(loop.file, loop.line) or "an unknown line"
