"""Pauses in which TensorFlow frees an iterator, between the epochs of a training.

The thread that tunes a pipeline sleeps 10 ms, then twice as long each time, up to 60 s. Freeing the
iterator cancels that thread and waits for it. The cancellation wakes it before the flag is set by
which it would end (`CancellationManager::StartCancel`, `Model::OptimizeLoop`): where it runs first,
it finds no flag, and sleeps on to the end of its period. Meanwhile nothing runs: the thread that
waits holds the GIL.

Own measurement, natively, TensorFlow 2.21 on two cores: a `fit` paused 0.8 to 2.4 s at 7 of 9 ends
of epochs of 4 s, 8.1 s at one of four of 11 s, and at none with `autotune.enabled = False`.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipediag.facts.pipeline import last_operation
from pipediag.facts.run import rows_of_loop
from pipediag.session.ledger import PAUSE, PAUSES, Run
from pipediag.session.loops import Loop
from pipediag.session.model import Session
from pipediag.session.record import Interval

_FIRST_S, _LONGEST_S = 0.01, 60.0
_STARTS_S = 0.05
"""From the iterator to the first sleep: 40 to 50 ms on two cores (own measurement)."""
_LIFE_OFF = 0.05
"""By how much the epochs of a run differ in length. Own choice."""
_PAUSING = 0.5
"""Share of iterators that pause as they are freed: 14 of 30 in epochs of 3 s, natively on two cores
with TensorFlow 2.21 (own measurement)."""
PAUSED_NS = 50_000_000
"""A freed iterator that takes longer has paused: others took 0.3 to 32 ms (own measurement)."""
SHORTEST_EPOCH_S = 1.0
"""Own choice: of shorter ones, the start of the pipeline decides where in a period they end."""


@dataclass(frozen=True)
class Pauses:
    """Pauses at the ends of a run's epochs: how many there may be, and how long."""

    epochs: int
    life_s: float
    longest_s: Interval
    """Seconds of one pause, after an epoch that is a little shorter or longer."""
    rest_s: float
    """Seconds of the run without the pauses that were seen in it."""

    @property
    def mean_s(self) -> float:
        return sum(self.longest_s) / 2.0

    @property
    def expected_s(self) -> float:
        """Return what an iterator takes to be freed, on average."""
        return _PAUSING * self.mean_s


def pauses_of_run(session: Session) -> Pauses | None:
    """Return them; None where each epoch has no iterator of its own, or its length is not known."""
    run, loop, pipeline = session.run, session.diagnosed_loop(), session.pipeline
    if run is None or loop is None or pipeline is None or run.scope != "run":
        return None
    epochs = run.epochs_planned or 0
    if epochs < 2 or not pipeline.autotune_enabled or not _frees_one_each_epoch(session, loop, run):
        return None
    parts = [*rows_of_loop(session, "steps"), *rows_of_loop(session, "epoch_start")]
    life_s = sum(row.seconds for row in parts if row.what not in (PAUSE, PAUSES)) / epochs
    if life_s < SHORTEST_EPOCH_S:
        return None
    seen_s = sum(row.seconds for row in run.parts if row.what in (PAUSE, PAUSES))
    waits = [sleeps_on_s(life_s * factor) for factor in (1.0 - _LIFE_OFF, 1.0, 1.0 + _LIFE_OFF)]
    return Pauses(epochs, life_s, (min(waits), max(waits)), run.whole_s - seen_s)


def _frees_one_each_epoch(session: Session, loop: Loop, run: Run) -> bool:
    """Return True if each epoch has an iterator of its own.

    Keras keeps one where `fit` has `steps_per_epoch`, and counts the steps itself where it has not.
    Of an own loop, only what was seen tells.
    """
    if loop.iterators >= 2 or loop.keras is None or (run.epochs_seen or 0.0) >= 2.0:
        return loop.iterators >= 2
    last = last_operation(session)
    return loop.keras.steps_per_epoch in (None, last.cardinality if last is not None else None)


def sleeps_on_s(life_s: float) -> float:
    """Return for how long the tuning thread of an iterator of that age sleeps on, in seconds."""
    period_s = _FIRST_S
    wakes_s = _STARTS_S + period_s
    while wakes_s <= life_s:
        period_s = min(2.0 * period_s, _LONGEST_S)
        wakes_s += period_s
    return wakes_s - life_s
