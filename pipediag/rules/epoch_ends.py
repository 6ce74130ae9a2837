"""Waits for the first batch of each epoch: what they are of the loop, and what they consist of."""

from __future__ import annotations

from pipediag.measures.loop.time import first_batch_percent
from pipediag.rules.plan import operations, upstream
from pipediag.rules.rule import Prediction, Threshold
from pipediag.session.loops import LoopTime
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation

FIRST_BATCHES = Threshold(
    "waiting for the first batch of each epoch",
    5.0,
    "% of the loop",
    "own choice, equal to the limit on the input wait of a step",
)
UNTRIED = "A trial compares steady steps, and the fill comes before them."


def seen_time(session: Session) -> LoopTime | None:
    """Where the diagnosed loop's time went, if the end of an epoch was seen in it."""
    loop = session.diagnosed_loop()
    time = loop.time if loop is not None else None
    return time if time is not None and time.epoch_ends_seen else None


def long_percent(session: Session) -> float | None:
    """Percent of the loop spent waiting for first batches, where that is worth speaking of."""
    percent = first_batch_percent(session.diagnosed_loop())
    return percent if percent >= FIRST_BATCHES.value else None


def fills_a_shuffle(session: Session, op: Operation) -> bool:
    """Whether a shuffle waits for many of its elements before the first batch."""
    return any(op in upstream(session, shuffle) for shuffle in operations(session, "shuffle"))


def holds_all(session: Session, shuffle: Operation) -> bool:
    """Whether nothing above the shuffle ran any more once it handed elements on."""
    above = upstream(session, shuffle)
    running = shuffle.self_ms_per_step is not None
    return running and bool(above) and all(op.self_ms_per_step is None for op in above)


def without_first_batches(session: Session, time: LoopTime, instead_s: float = 0.0) -> Prediction:
    """The loop over the loop without those waits, its start included where that is known.

    `instead_s`: what the steps take longer then.
    """
    loop = session.diagnosed_loop()
    whole = (loop.projected_s if loop is not None else None) or time.total_s
    left = whole - time.first_batches_s + instead_s
    if left <= 0.001 * whole:
        return Prediction(None, "Next to nothing of the loop would be left.")
    return Prediction(round(max(1.0, whole / left), 3))
