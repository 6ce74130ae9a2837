"""What the first epoch took longer because it filled a cache, which later ones read."""

from __future__ import annotations

from statistics import median

from pipediag.measures.run.amounts import Amounts, steps_of
from pipediag.measures.run.epochs import Epochs
from pipediag.measures.run.places import Place
from pipediag.session.recorded_loops import RecordedLoop
from pipediag.session.recorded_operations import RecordedOperation
from pipediag.session.recording import Recording
from pipediag.tensorflow_names import CACHES

WHAT = "filling the cache in the first epoch"

_LEAST_LONGER = 1.2
"""Own choice: first epochs are a little slower without a cache as well."""


def settle_cache_fill(
    amounts: Amounts, recording: Recording, loop: RecordedLoop, epochs: Epochs, step_ns: float
) -> None:
    """Give it a place of its own: it comes once, and stands for no other epoch."""
    cache = _cache_of(recording, loop)
    usual_ns = _usual_ns(loop, epochs, step_ns)
    if cache is None or usual_ns is None or epochs.steps_ns[0] < _LEAST_LONGER * usual_ns:
        return
    place = Place("steps", WHAT, cache.file, cache.line, loop.id)
    amounts.move(round(epochs.steps_ns[0] - usual_ns), steps_of(loop), place)
    amounts.count[place] = 1


def _usual_ns(loop: RecordedLoop, epochs: Epochs, step_ns: float) -> float | None:
    """Steps of an epoch that reads the cache; None where none was seen."""
    if len(epochs.steps_ns) < 2:
        return None
    per_epoch = loop.keras.steps_per_epoch if loop.keras else None
    if per_epoch:
        return per_epoch * step_ns / loop.batches_per_call
    # The last one may have been cut short.
    whole = epochs.steps_ns[1:-1] or epochs.steps_ns[1:]
    return float(median(whole))


def _cache_of(recording: Recording, loop: RecordedLoop) -> RecordedOperation | None:
    return next((op for op in recording.upstream(loop.root_op_id) if op.kind in CACHES), None)
