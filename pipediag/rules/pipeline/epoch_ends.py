"""What rules on the waits between epochs predict."""

from __future__ import annotations

from pipediag.facts.run import later_starts_s
from pipediag.rules.rule import Prediction
from pipediag.session.loops import LoopTime
from pipediag.session.model import Session


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


def saved_of_first_batches_s(
    session: Session, time: LoopTime, instead_s: float = 0.0
) -> float | None:
    """Seconds that this takes off the run, by its ledger; None where that is not known.

    The ledger may be of one epoch where the loop's time is of all that were seen, so what the steps
    take longer is given as a part of the waits.
    """
    waits_s = later_starts_s(session)
    if waits_s is None or time.first_batches_s <= 0.0:
        return None
    return waits_s * max(0.0, 1.0 - instead_s / time.first_batches_s)
