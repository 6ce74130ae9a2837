"""How many epochs a training took that was seen to its end, with those of earlier calls of it."""

from __future__ import annotations

from pipediag.measures.run.amounts import steps_of
from pipediag.measures.run.epochs import Epochs
from pipediag.measures.run.steady import SteadyStep
from pipediag.session.recorded_loops import RecordedLoop


def epochs_taken(epochs: Epochs, loop: RecordedLoop, step: SteadyStep | None) -> float | None:
    """None where none was seen.

    Of a `fit` they are never more than it was given: what interrupts its steps ends none. Where
    they are interrupted within epochs, it is the time in steps that tells.
    """
    if not epochs.steps_ns:
        return None
    seen = epochs.before_count + len(epochs.steps_ns)
    if loop.keras is None:
        return float(seen)
    each_ns = (loop.keras.steps_per_epoch or 0) / loop.batches_per_call * (step.ns if step else 0)
    if each_ns and epochs.are_interrupted_within(each_ns):
        steps_ns = sum(epochs.steps_ns) + epochs.before_ns.get(steps_of(loop), 0)
        seen = max(1, round(steps_ns / each_ns))
    most = (loop.keras.epochs or seen) * epochs.trainings
    return float(min(seen, most))
