"""Whether the steps that were measured are those of the epoch that fills a cache."""

from __future__ import annotations

from itertools import takewhile

from pipediag.measures.pipeline.node_rates import reads_a_cache
from pipediag.measures.recorded_windows import blocks_of
from pipediag.session.recorded_loops import RecordedLoop
from pipediag.session.recorded_operations import RecordedOperation
from pipediag.session.recording import Recording


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
