"""Waits for the first batch of each epoch: what they are of the loop, and what they consist of."""

from __future__ import annotations

from pipediag.facts.limits import INPUT_FINE_PERCENT, Threshold
from pipediag.facts.pipeline import operations, upstream
from pipediag.session.loops import Loop, LoopTime
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation

EXPLAINED_PERCENT = 70.0
"""Part of a loop's time that its steps should explain. Own choice: beneath it, what is said of the
step says less of the loop than of something else by more than a quarter of the whole."""

FIRST_BATCHES = Threshold(
    "waiting for the first batch of each epoch",
    INPUT_FINE_PERCENT,
    "% of the loop",
    "own choice, equal to the limit on the input wait of a step",
)


def steps_percent(loop: Loop | None) -> float | None:
    """Percent of the loop's time that steps times their mean explain."""
    time = loop.time if loop is not None else None
    return None if time is None or not time.total_s else 100.0 * time.steps_s / time.total_s


def seen_time(session: Session) -> LoopTime | None:
    """Where the diagnosed loop's time went, if the end of an epoch was seen in it."""
    loop = session.diagnosed_loop()
    time = loop.time if loop is not None else None
    return time if time is not None and time.epoch_ends_seen else None


def fills_a_shuffle(session: Session, op: Operation) -> bool:
    """Whether a shuffle waits for many of its elements before the first batch."""
    return any(op in upstream(session, shuffle) for shuffle in operations(session, "shuffle"))


def holds_all(session: Session, shuffle: Operation) -> bool:
    """Whether nothing above the shuffle ran any more once it handed elements on."""
    above = upstream(session, shuffle)
    running = shuffle.self_ms_per_step is not None
    return running and bool(above) and all(op.self_ms_per_step is None for op in above)
