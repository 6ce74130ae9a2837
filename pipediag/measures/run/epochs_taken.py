"""How many epochs a training took that was seen to its end, with those of earlier calls of it."""

from __future__ import annotations

from pipediag.measures.run.amounts import steps_of
from pipediag.measures.run.epochs import Epochs
from pipediag.measures.run.steady import SteadyStep
from pipediag.session.recorded_loops import RecordedLoop


def epochs_taken(epochs: Epochs, loop: RecordedLoop, step: SteadyStep | None) -> float | None:
    """None where none was seen.

    Where steps are interrupted within epochs, it is the time in them that tells, and their count:
    each can be short of what it was, and neither is above it. A `fit` has never more epochs than it
    was given. Only the first call's number is known: where that one has no more stretches of steps
    than epochs, those of later calls are their epochs, too, however many they were given.
    """
    if not epochs.steps_ns:
        return None
    seen = epochs.before_count + len(epochs.steps_ns)
    if loop.keras is None:
        return float(seen)
    per_epoch = loop.keras.steps_per_epoch
    if per_epoch and step is not None:
        each_ns, counted = per_epoch / loop.batches_per_call * step.ns, loop.steps / per_epoch
        if epochs.are_interrupted_within(each_ns, counted):
            steps_ns = sum(epochs.steps_ns) + epochs.before_ns.get(steps_of(loop), 0)
            seen = max(1, round(max(steps_ns / each_ns, counted)))
    given = loop.keras.epochs
    if given and epochs.first_count > given:
        seen = min(seen, given * epochs.trainings)
    return float(seen)
