"""Epochs as the user gives them (`--epochs`), for what the script itself does not tell."""

from __future__ import annotations

import math
from dataclasses import replace

from pipediag.measures.loop.cache_fill import cache_filled_meanwhile
from pipediag.session.ledger import Run
from pipediag.session.recorded_loops import RecordedLoop
from pipediag.session.recording import Recording


def with_given_epochs(recording: Recording, epochs: int) -> Recording:
    """The recording with that number of them for each training whose source tells none."""
    loops = [_given(loop, epochs) if _lacks(loop) else loop for loop in recording.loops]
    return replace(recording, loops=loops)


def told_as_given(run: Run, recording: Recording, epochs: int) -> tuple[Run, str | None]:
    """The ledger of a recording with given epochs, and a note where they are not what it rests on.

    `recording` is the one before, that lacks them.
    """
    lacking = [loop for loop in recording.loops if _lacks(loop)]
    if not lacking:
        return run, f"`--epochs {epochs}` was not used: the script tells how long it trains."
    if run.scope != "run":
        if any(cache_filled_meanwhile(recording, _given(loop, epochs)) for loop in lacking):
            return run, (
                f"`--epochs {epochs}` could not be used: the epoch that was measured fills a "
                "cache, and how long those take that read it was not seen."
            )
        return run, (
            f"`--epochs {epochs}` could not be used: no epoch was seen to its end and nothing "
            "tells how many steps one has, or more epochs were seen than that."
        )
    made_of = {_in_all(_given(loop, epochs)) for loop in lacking}
    if run.projected_total_s is None or run.epochs_planned not in made_of:
        return run, (
            f"`--epochs {epochs}` was not used: the script tells how long it trains, or was seen "
            "to its end."
        )
    return run.model_copy(update={"epochs_given": True}), None


def _lacks(loop: RecordedLoop) -> bool:
    """Where Python feeds the steps, a round is none of an epoch."""
    return loop.role == "training" and loop.planned_rounds is None and not loop.from_python


def _given(loop: RecordedLoop, epochs: int) -> RecordedLoop:
    return replace(loop, planned_rounds=math.ceil(epochs / _each(loop)))


def _in_all(loop: RecordedLoop) -> int:
    return (loop.planned_rounds or 0) * _each(loop)


def _each(loop: RecordedLoop) -> int:
    """Epochs of a round: a `fit` may have several."""
    return (loop.keras.epochs if loop.keras is not None else None) or 1
