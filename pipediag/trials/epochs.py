"""Waits for the first batch of a block: whole epochs are compared where such waits are a part of
them, and elsewhere shuffle buffers are made smaller so that they fill quickly."""

from __future__ import annotations

from dataclasses import dataclass

from pipediag.facts.limits import INPUT_BOUND_PERCENT
from pipediag.facts.run import FIRST_BATCHES, making_ms, seen_time
from pipediag.session.edits import Change, SetParameters
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.trials.statistics import FEWEST_ROUNDS

WAITS = 2 * FEWEST_ROUNDS + 4
"""Waits that a trial of one edit has at least: one in each block of two variants, and two to build
and to check each."""

SPARE = 0.5
"""Share of the budget that waiting may take: the rest is for the steps behind it. Own choice."""

SPARE_WHERE_LONG = 0.85
"""The share where waits are `INPUT_BOUND_PERCENT` of an epoch or more, so that an edit that
shortens them comes before one that makes a step faster: few blocks of steps, of half a second each,
lie between so few waits. Own choice."""

LONGEST_FILL_S = 0.25
"""Time to fill a shuffle buffer, about the length of a block's warm-up. Own choice."""

_FEWEST_BATCHES = 2


@dataclass(frozen=True)
class Epoch:
    """An epoch that would be worth trying as a whole."""

    examples: float
    budget_s: float
    """Time for trials that its waits need."""


def epoch_to_try(session: Session, budget_s: float) -> float | None:
    """Return the examples of one epoch; None where steps are compared.

    Steps are compared where `epoch_worth_trying` has none, and where the budget has no time for the
    waits.
    """
    epoch = epoch_worth_trying(session)
    return epoch.examples if epoch is not None and epoch.budget_s <= budget_s else None


def epoch_worth_trying(session: Session) -> Epoch | None:
    """Return None where less than `FIRST_BATCHES` of an epoch is its start, or its length is not
    known."""
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
    """Return the time in which an epoch's iterators are made and its first batch is waited for.

    The wait is one behind an epoch's end, if any was seen.
    """
    time = seen_time(session)
    wait_ms = time.first_batch_ms if time is not None else None
    if wait_ms is None and session.steps is not None:
        wait_ms = session.steps.fill_ms
    return None if wait_ms is None else wait_ms + making_ms(session)


def _batches_of_an_epoch(session: Session) -> float | None:
    """Return them as planned, or else as seen; None for a loop of one epoch, which never starts a
    second one."""
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


@dataclass(frozen=True)
class SharedChanges:
    """Changes that base and edits have in common, and the sentences that say so."""

    changes: tuple[Change, ...] = ()
    caveats: tuple[str, ...] = ()


def shorter_shuffles(session: Session) -> SharedChanges:
    """Return smaller buffers for shuffles that take longer than `LONGEST_FILL_S` to fill.

    A full buffer passes elements on at the same cost whatever its size; only the time and the
    memory to fill it grow.
    """
    ops = session.pipeline.ops if session.pipeline else []
    changes = [change for op in ops if (change := _shortened(session, op)) is not None]
    if not changes:
        return SharedChanges()
    caveat = "Shuffle buffers were made smaller in all variants, as each block fills them anew."
    return SharedChanges(tuple(changes), (caveat,))


def _shortened(session: Session, op: Operation) -> SetParameters | None:
    size = op.parameters.get("buffer_size")
    if op.kind != "shuffle" or not isinstance(size, int):
        return None
    if session.steps is None or not op.elements:
        return None
    elements_per_s = op.elements / session.steps.mean_ms * 1000
    wanted = round(max(elements_per_s * LONGEST_FILL_S, op.elements * _FEWEST_BATCHES, 1))
    return SetParameters(op.id, {"buffer_size": wanted}) if wanted < size else None
