"""Whether trials compare whole epochs: where waits for first batches are a part of them."""

from __future__ import annotations

from dataclasses import dataclass

from pipediag.facts.limits import INPUT_BOUND_PERCENT
from pipediag.facts.run import FIRST_BATCHES, making_ms, seen_time
from pipediag.session.model import Session
from pipediag.trials.statistics import FEWEST_ROUNDS

WAITS = 2 * FEWEST_ROUNDS + 4
"""Waits that a trial of one edit has at least: one in each block of two arms, and two to build and
to check each."""

SPARE = 0.5
"""Part of the budget that waiting may take: the rest is for the steps behind it. Own choice."""

SPARE_WHERE_LONG = 0.85
"""The same where waits are `INPUT_BOUND_PERCENT` of an epoch or more, so that what shortens them
comes before what makes a step faster: few blocks of steps, of half a second each, lie between so
few waits. Own choice."""


@dataclass(frozen=True)
class Epoch:
    """One that would be worth trying as a whole."""

    examples: float
    budget_s: float
    """Time for trials that its waits need."""


def epoch_to_try(session: Session, budget_s: float) -> float | None:
    """Examples of one epoch; None where steps are what counts, or alone can be tried.

    That is so where `epoch_worth_trying` has none, and where the budget has no time for the waits.
    """
    epoch = epoch_worth_trying(session)
    return epoch.examples if epoch is not None and epoch.budget_s <= budget_s else None


def epoch_worth_trying(session: Session) -> Epoch | None:
    """None where less than `FIRST_BATCHES` of an epoch is its start, or its length is not known."""
    loop, steps = session.diagnosed_loop(), session.steps
    batches, wait_ms = _batches_of_an_epoch(session), _start_ms(session)
    if loop is None or steps is None or not batches or not wait_ms or not loop.batch_size:
        return None
    share = 100.0 * wait_ms / (wait_ms + batches * steps.mean_ms)
    if share < FIRST_BATCHES.value:
        return None
    spare = SPARE if share < INPUT_BOUND_PERCENT else SPARE_WHERE_LONG
    return Epoch(float(batches * loop.batch_size), wait_ms / 1000.0 * WAITS / spare)


def _start_ms(session: Session) -> float | None:
    """Of an epoch: its iterators are made, and it waits for its first batch."""
    wait_ms = _wait_ms(session)
    return None if wait_ms is None else wait_ms + making_ms(session)


def _wait_ms(session: Session) -> float | None:
    """For an epoch's first batch: of one behind an epoch's end, if any was seen."""
    time = seen_time(session)
    if time is not None and time.first_batch_ms is not None:
        return time.first_batch_ms
    return session.steps.fill_ms if session.steps is not None else None


def _batches_of_an_epoch(session: Session) -> float | None:
    """As planned, or else as seen; None for a loop of one epoch, of which no start comes again."""
    loop, run = session.diagnosed_loop(), session.run
    if loop is None or run is None:
        return None
    if loop.keras is not None and loop.keras.epochs == 1:
        return None
    if loop.keras is not None and loop.keras.steps_per_epoch:
        return loop.keras.steps_per_epoch
    if loop.keras is not None and loop.keras.epochs and loop.planned_steps:
        return loop.planned_steps / loop.keras.epochs
    return loop.steps / run.epochs_seen if run.epochs_seen and run.epochs_seen >= 1.0 else None
