"""Steps of which the input wait alone is told, as TensorFlow's profiler does not see the rest."""

from __future__ import annotations

from pipediag.facts.limits import INPUT_BOUND_PERCENT, INPUT_FINE_PERCENT
from pipediag.session.model import Session
from pipediag.session.record import Interval


def on_torch(session: Session) -> bool:
    """Whether Keras runs on PyTorch, where it refuses several steps a call and has no XLA."""
    return session.environment.keras_backend == "torch"


def limits_within(interval: Interval) -> list[float]:
    """The limits on the input wait that its 95 % interval straddles, in percent of the step."""
    low, high = interval
    return [limit for limit in (INPUT_FINE_PERCENT, INPUT_BOUND_PERCENT) if low < limit <= high]


def only_input_is_told(session: Session) -> bool:
    """Whether PyTorch computes the step unseen by the profiler, and the input wait is known: more
    steps would tell no more. The kernels of a GPU are seen, whoever launches them.
    """
    shares = session.breakdown
    if shares is None or not on_torch(session) or shares["device_compute"].percent:
        return False
    return len(limits_within(shares["input_wait"].ci95_percent)) < 2
