"""What ending the waits between epochs buys at most."""

from __future__ import annotations

from pipediag.facts.bounds import bound
from pipediag.facts.later_epochs import later_starts_s
from pipediag.facts.run_gain import gain_at_most
from pipediag.session.ledger import RunGain
from pipediag.session.loops import LoopTime
from pipediag.session.model import Session

FORETOLD = (
    " No end of an epoch was seen: that later epochs wait as long as the first is inferred from "
    "their shuffle, which fills anew in each."
)
"""To be appended to advice on such waits."""


def foretold(time: LoopTime | None) -> str:
    """What the advice rests on, where no later epoch was seen to wait."""
    return FORETOLD if time is not None and not time.epoch_ends_seen else ""


def without_first_batches(session: Session, time: LoopTime, instead_s: float = 0.0) -> float | None:
    """The loop over the loop without those waits, its start included where that is known.

    `instead_s`: what the steps take longer then. Waits that no end of an epoch showed are not in
    what the loop is said to take.
    """
    loop = session.diagnosed_loop()
    projected = loop.projected_s if loop is not None and time.epoch_ends_seen else None
    whole = projected or time.total_s
    left = whole - time.first_batches_s + instead_s
    return bound(whole, whole - left)


def run_without_first_batches(
    session: Session, time: LoopTime, instead_s: float = 0.0
) -> RunGain | None:
    """What the run gains at most without them, by its ledger; None where that is not known.

    The ledger may be of one epoch where the loop's time is of all that were seen, so what the steps
    take longer is given as a part of the waits.
    """
    waits_s = later_starts_s(session)
    if waits_s is None or time.first_batches_s <= 0.0:
        return None
    saved_s = waits_s * max(0.0, 1.0 - instead_s / time.first_batches_s)
    return gain_at_most(session.run, saved_s)
