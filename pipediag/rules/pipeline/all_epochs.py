"""One pipeline through all epochs, in place of one that starts anew with each."""

from __future__ import annotations

from pipediag.facts.pipeline import last_before_prefetch, operations, place_name
from pipediag.session.edits import Edit, Insert
from pipediag.session.ledger import Run
from pipediag.session.loops import Loop
from pipediag.session.model import Session

LONGEST_EPOCH_S = 4.0
"""Of steps, to be tried: each block of it is an epoch from end to end, and a trial has several. Own
choice, for a budget of a minute."""


def run_through(session: Session, rule: str) -> Edit | None:
    """A `repeat` at the end, before a prefetch; None where there is one, or an epoch is long.

    None too where nothing says how many steps an epoch has: with a few too many, the pipeline as
    written would come to an end within its block as well.
    """
    loop, run, last = session.diagnosed_loop(), session.run, last_before_prefetch(session)
    if loop is None or run is None or last is None or operations(session, "repeat"):
        return None
    if loop.planned_steps is None and not (loop.keras and loop.keras.steps_per_epoch):
        return None
    epoch_s = _epoch_s(loop, run)
    if epoch_s is None or epoch_s > LONGEST_EPOCH_S:
        return None
    return Edit(
        id=f"{rule}:repeat:{last.id}",
        label=f"one pipeline through all epochs, by a repeat behind the {place_name(last)}",
        changes=(Insert(last.id, "repeat"),),
        caveat="Measured from the second step of an epoch to the second of the next.",
        whole_epoch=True,
        runs_through=True,
    )


def _epoch_s(loop: Loop, run: Run) -> float | None:
    """What the steps of an epoch take."""
    steps_s = sum(row.seconds for row in run.parts if (row.part, row.loop_id) == ("steps", loop.id))
    if run.scope == "epoch":
        return steps_s
    epochs = run.epochs
    return steps_s / epochs if run.scope == "run" and epochs and epochs >= 1.0 else None
