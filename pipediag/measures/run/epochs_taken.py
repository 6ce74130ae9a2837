"""How many epochs a training took that was seen to its end, with those of earlier calls of it."""

from __future__ import annotations

from pipediag.measures.run.amounts import steps_of
from pipediag.measures.run.epochs import Epochs
from pipediag.measures.run.steady import SteadyStep
from pipediag.session.recorded_loops import RecordedLoop


def epochs_taken(epochs: Epochs, loop: RecordedLoop, step: SteadyStep | None) -> float | None:
    """None where none was seen.

    Of a `fit` they are never more than it was given: what interrupts its steps ends none. Where
    they are interrupted within epochs, it is the time in steps that tells, and their count: each
    can be short of what it was, and neither is above it.
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
    most = (loop.keras.epochs or seen) * epochs.trainings
    return float(min(seen, most))
