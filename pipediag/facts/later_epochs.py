"""Waits for first batches in the epochs after the first: as seen, or as the first one foretells."""

from __future__ import annotations

from pipediag.facts.epochs import FIRST_BATCHES, holds_all, seen_time
from pipediag.facts.pipeline import delay_ms, downstream, operations, reaches_the_loop, upstream
from pipediag.facts.run import rows_of_loop
from pipediag.session.ledger import MAKING, PAUSE
from pipediag.session.loops import LoopTime
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.tensorflow_names import CACHES, RUNS_A_FUNCTION
from pipediag.vocabulary import RunPartName

LONGEST_START_MS = 500.0
"""A first wait that is longer holds more than the start of the pipeline. Own choice: of eleven
scripts that fill nothing, ten waited up to 0.33 s longer for their first batch than for later
ones."""


def time_of_epochs(session: Session) -> LoopTime | None:
    """Where the diagnosed loop's time goes with the starts of all its epochs; None if not known.

    Where no end of an epoch was seen, each later start waits as long as the first one if all that
    was waited for comes again: a shuffle that took in all of its costly elements before it handed
    one on. The first wait itself is not in it, as in what is seen.
    """
    return seen_time(session) or _foretold(session)


def first_batch_percent(session: Session) -> float:
    """Percent of the loop's time spent waiting for an epoch's first batch; 0 where not known."""
    time = time_of_epochs(session)
    return 100.0 * time.first_batches_s / time.total_s if time is not None and time.total_s else 0.0


def steps_beside_percent(session: Session) -> float | None:
    """Percent of the same time that steps times their mean explain; None where not known."""
    time = time_of_epochs(session)
    return 100.0 * time.steps_s / time.total_s if time is not None and time.total_s else None


def long_percent(session: Session) -> float | None:
    """`first_batch_percent`, where that is worth speaking of."""
    percent = first_batch_percent(session)
    return percent if percent >= FIRST_BATCHES.value else None


def later_starts_s(session: Session) -> float | None:
    """Seconds of the whole in which the loop's epochs but the first wait for their first batch.

    In the first, the pipeline has to start. None where nothing is known of later waits.
    """
    run, time = session.run, time_of_epochs(session)
    if run is None or time is None or time.first_batch_ms is None:
        return None
    rows = [row for row in rows_of_loop(session, "epoch_start") if row.what not in (MAKING, PAUSE)]
    whole = sum(row.seconds for row in rows)
    if run.scope != "run":
        return whole
    later = sum(max(0, (row.count or 1) - 1) for row in rows)
    return min(whole, later * time.first_batch_ms / 1000.0)


def comes_again(session: Session) -> Operation | None:
    """The shuffle whose fill every epoch's first batch waits for, by the first epoch alone; one
    before a `repeat` need not fill anew."""
    wait_ms = session.steps.fill_ms if session.steps is not None else None
    if wait_ms is None or wait_ms < LONGEST_START_MS:
        return None
    for shuffle in reversed(operations(session, "shuffle")):
        if any(op.kind == "repeat" for op in downstream(session, shuffle)):
            continue
        costly = [op for op in upstream(session, shuffle) if op.kind in RUNS_A_FUNCTION]
        behind_ms = sum(delay_ms(session, op) or 0.0 for op in downstream(session, shuffle))
        again = all(reaches_the_loop(session, op, without=CACHES) for op in costly)
        if costly and again and holds_all(session, shuffle) and behind_ms < wait_ms / 2.0:
            return shuffle
    return None


def _foretold(session: Session) -> LoopTime | None:
    run, steps = session.run, session.steps
    if run is None or run.scope != "run" or comes_again(session) is None:
        return None
    assert steps is not None
    assert steps.fill_ms is not None
    starts = [
        row for row in rows_of_loop(session, "epoch_start") if row.what not in (MAKING, PAUSE)
    ]
    later = sum(max(0, (row.count or 1) - 1) for row in starts)
    if not later:
        return None
    steps_s, waits_s = _seconds(session, "steps"), later * steps.fill_ms / 1000.0
    between_s = _seconds(session, "evaluation") + _seconds(session, "epoch_end")
    return LoopTime(
        basis="projected",
        total_s=steps_s + waits_s + between_s,
        steps_s=steps_s,
        step_ms=steps.mean_ms,
        first_batches_s=waits_s,
        between_epochs_s=between_s,
        unexplained_s=0.0,
        epoch_ends_seen=0,
        first_batch_ms=steps.fill_ms,
    )


def _seconds(session: Session, part: RunPartName) -> float:
    return sum(row.seconds for row in rows_of_loop(session, part))
