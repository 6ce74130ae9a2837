"""Answers from the ledger: the largest part of the run, waits for first batches, pauses."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from pipediag.facts.limits import INPUT_BOUND, INPUT_WAIT, Threshold
from pipediag.facts.pipeline import (
    delay_ms,
    downstream,
    filled_shuffles,
    last_operation,
    operations,
    reaches_the_loop_uncached,
    upstream,
)
from pipediag.session.ledger import EXITING, MAKING, PAUSE, PAUSES, Run, RunPart
from pipediag.session.loops import Loop
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.session.record import Interval
from pipediag.session.recording import Prediction
from pipediag.vocabulary import EVALUATING, RunPartName, RunScope

FIRST_BATCHES = Threshold(
    "waiting for the first batch of each epoch",
    INPUT_WAIT.value,
    "% of the loop",
    "own choice, equal to the limit on the input wait of a step",
)


def fills_a_shuffle(session: Session, op: Operation) -> bool:
    """Return True if a shuffle below waits for many of its elements before the first batch."""
    return any(op in upstream(session, shuffle) for shuffle in operations(session, "shuffle"))


def holds_all(session: Session, shuffle: Operation) -> bool:
    """Return True if the shuffle ran in the measured steps, and nothing above it did any more."""
    above = upstream(session, shuffle)
    running = shuffle.self_ms_per_step is not None
    return running and bool(above) and all(op.self_ms_per_step is None for op in above)


HAD_BACK: tuple[RunPartName, ...] = (
    "before_training",
    "compile",
    "epoch_start",
    "evaluation",
    "epoch_end",
    "between_loops",
    "after_training",
)
"""Parts that a change of the script could shorten, apart from the steps."""

WHERE_PERCENT = INPUT_BOUND.value
"""Percent of the run from which on a part other than the steps can be its verdict: own choice,
equal to XProf's limit for the input wait of a step."""

_PAUSED = (PAUSE, PAUSES)

_SCOPES: dict[RunScope, str] = {
    "run": "the run",
    "epoch": "an epoch",
    "1000_steps": "1,000 steps and the time between them",
}


@dataclass(frozen=True)
class Where:
    """The part of the run that costs most of what could be saved, and the row of it that does."""

    part: RunPartName
    percent: float
    row: RunPart | None


def rows_to_have_back(run: Run, part: RunPartName) -> list[RunPart]:
    """Return a part's rows that a change may shorten: without the exit and pauses."""
    left_out = (EXITING, *_PAUSED)
    return [row for row in run.parts if row.part == part and row.what not in left_out]


def where(session: Session) -> Where | None:
    """Return the part of the run that costs most of what a change could save.

    It is the steps unless another part weighs more, and its 95 % interval lies above theirs and
    above `WHERE_PERCENT`. Of the steps, only the time counts in which the device does not compute.
    None without a ledger, or where nothing trains.
    """
    run = session.run
    if run is None or session.diagnosed_loop() is None:
        return None
    parts = [part for part in HAD_BACK if part != "epoch_start" or _later_waits_are_known(session)]
    weights = {part: sum(one.percent for one in rows_to_have_back(run, part)) for part in parts}
    part = max(weights, key=lambda name: weights[name])
    computing = (session.breakdown or {}).get("device_compute")
    idle = 1.0 - computing.percent / 100.0 if computing is not None else 1.0
    at_least = _end_of_intervals(rows_to_have_back(run, part), 0)
    steps_at_most = idle * _end_of_intervals(rows_to_have_back(run, "steps"), 1)
    if at_least < WHERE_PERCENT or at_least <= steps_at_most:
        return Where("steps", run.percent_of("steps"), None)
    return Where(part, weights[part], costliest_row(run, part))


def _later_waits_are_known(session: Session) -> bool:
    """Return False if the first epoch's wait stands for that of all others, and may come once."""
    carried_on = any((row.count or 1) > 1 for row in first_waits(session))
    loop = session.diagnosed_loop()
    seen = loop is None or loop.epoch_ends > 0
    return seen or not carried_on or time_of_epochs(session) is not None


def _end_of_intervals(rows: list[RunPart], end: int) -> float:
    """Return the lower (0) or upper (1) end of the rows' intervals together, in percent."""
    return sum(row.ci95_percent[end] if row.ci95_percent else row.percent for row in rows)


def costliest_row(run: Run, part: RunPartName) -> RunPart | None:
    """Return the row of a part that takes most; a row with a line goes before one without."""
    rows = rows_to_have_back(run, part)
    placed = [row for row in rows if row.line is not None]
    return max(placed or rows, key=lambda row: row.seconds, default=None)


def starts_s(session: Session) -> float:
    """Return the seconds of the run in which the diagnosed loop waits for first batches."""
    return sum(row.seconds for row in rows_of_loop(session, "epoch_start"))


def making_ms(session: Session) -> float:
    """Return the ms in which an epoch of the diagnosed loop makes and destroys its iterators.

    Keras makes two of them. 0 where that is not known.
    """
    starts, run = rows_of_loop(session, "epoch_start"), session.run
    making_s = sum(row.seconds for row in starts if row.what == MAKING)
    if run is None or run.scope == "1000_steps":
        return 0.0
    epochs = max((row.count or 1 for row in first_waits(session)), default=1)
    return 1000.0 * making_s / (epochs if run.scope == "run" else 1)


def rows_of_loop(session: Session, part: RunPartName) -> list[RunPart]:
    """Return the diagnosed loop's rows of a part; none without a ledger."""
    loop = session.diagnosed_loop()
    rows = session.run.parts if session.run is not None and loop is not None else []
    return [row for row in rows if row.part == part and loop and row.loop_id == loop.id]


def traces_of_step(session: Session, loop: Loop) -> RunPart | None:
    """Return the ledger's row of tracing a function that makes the loop's steps, if any."""
    run = session.run
    rows = [row for row in run.parts if row.part == "compile" and row.count] if run else []
    return next((row for row in rows if is_step_function(loop, row)), None)


def is_step_function(loop: Loop, row: RunPart) -> bool:
    """Return True if the row is of tracing a function that makes the loop's steps."""
    traced = f"{row.file}:{row.line} {row.what}"
    # In the recording, a function that another one makes is named `make.<locals>.step`.
    names = (one.partition(" ") for one in loop.step_functions)
    return traced in {f"{at} {name.rpartition('<locals>.')[2]}" for at, _, name in names}


def faster_loop(session: Session, loop: Loop, timed: Prediction, left: float) -> float:
    """Return the speed-up of a loop's steps if the share `left` remains of the calls of one line.

    The time of its steps outside the calls stays the same.
    """
    called_ms = fmean(timed.own_ms) * (timed.calls / loop.steps if loop.steps else 1.0)
    if loop.role not in EVALUATING:
        return faster_steps(session, called_ms, left)
    step_ms = called_ms
    if loop.evaluation is not None:
        step_ms = loop.evaluation.step_ms
    elif loop.steps > 1:
        step_ms = 1e3 * loop.elapsed_s / (loop.steps - 1)
    return _faster(step_ms, called_ms, left)


def _faster(whole: float, part: float, left: float, shortest: float = 1e-3) -> float:
    """Return the speed-up of the whole if the share `left` remains of a part of its time."""
    return whole / max(whole - min(part, whole) * (1.0 - left), shortest)


def faster_steps(session: Session, called_ms: float, left: float) -> float:
    """Return the speed-up of the diagnosed loop's steps if the share `left` remains of a part that
    takes `called_ms` of each. Batches come no faster than from the pipeline alone."""
    steps, alone = session.steps, session.pipeline_alone
    if steps is None:
        return 1.0
    shortest_ms = max(1e-3, alone.step_ms if alone is not None else 0.0)
    return _faster(steps.mean_ms, called_ms, left, shortest_ms)


def predicted_in_steps(session: Session) -> dict[tuple[str | None, int | None], Prediction]:
    """Return the lines that call `predict` in each step that Python feeds, where they were timed,
    by their places: what they take is a part of the steps, and no evaluation."""
    loop = session.diagnosed_loop()
    calls = loop.nested if loop is not None and loop.from_python else []
    within = {(one.file, one.line) for one in calls if one.what == "predict"}
    timed = ((one.file, one.line, one) for one in session.predictions if one.is_timed)
    return {(file, line): one for file, line, one in timed if (file, line) in within}


def part_of_calls(timed: Prediction) -> Literal["epoch_end", "after_training"]:
    """Return the part of the run in which calls are made that are none of a loop's."""
    return "after_training" if timed.after_training else "epoch_end"


def faster_part(run: Run, timed: Prediction, left: float) -> float:
    """Return the speed-up of that part if the share `left` remains of the calls."""
    whole_s = run.seconds_of(part_of_calls(timed))
    if whole_s <= 0.0:
        return 1.0
    if timed.after_training:
        return _faster(whole_s, timed.calls * fmean(timed.own_ms) / 1e3, left)
    seen = max(1, int(run.epochs_seen or 1))
    epochs = (run.epochs or seen) if run.scope == "run" else 1
    return _faster(whole_s, timed.calls / seen * epochs * fmean(timed.own_ms) / 1e3, left)


def first_waits(session: Session) -> list[RunPart]:
    """Return the diagnosed loop's rows of waiting for an epoch's first batch."""
    rows = rows_of_loop(session, "epoch_start")
    return [row for row in rows if row.what not in (MAKING, *_PAUSED)]


def whole_in_words(run: Run) -> str:
    """Return the name of the whole that the ledger's percents refer to."""
    return _SCOPES[run.scope]


LONGEST_START_MS = 500.0
"""Longest first wait that the start of the pipeline explains. Own choice: of eleven scripts that
fill nothing, ten waited up to 0.33 s longer for their first batch than for later ones."""


@dataclass(frozen=True)
class LoopTime:
    """Time of the diagnosed loop after its first batch, by the ledger; parts add up to it."""

    steps_s: float
    """Number of steps times their mean."""
    slower_s: float
    """Time that steps took beyond their mean."""
    first_batches_s: float
    """Waits for the first batch of each epoch after the first."""
    between_s: float
    """Other time between an epoch's last step and the request for the next batch, and that to make
    these epochs' iterators."""
    first_batch_ms: float | None
    """Mean wait for one of these first batches; None where nothing is known of later epochs."""
    ends_seen: int

    @property
    def total_s(self) -> float:
        return self.steps_s + self.slower_s + self.first_batches_s + self.between_s


def loop_time(session: Session) -> LoopTime | None:
    """Return the diagnosed loop's time, or None without a ledger of it.

    If no end of an epoch was seen, each later epoch is taken to wait as long as the first one, if
    all that it waited for comes again (`comes_again`).
    """
    loop, run, steps = session.diagnosed_loop(), session.run, session.steps
    if loop is None or run is None:
        return None
    rows, fill_ms = rows_of_loop(session, "epoch_start"), steps.fill_ms if steps else None
    waits, first = first_waits(session), 1 if run.scope == "run" else 0
    later = max((row.count or 1 for row in waits), default=first) - first
    waits_s = sum(row.seconds for row in waits)
    waits_s = max(0.0, waits_s - first * (fill_ms or 0.0) / 1000.0)
    each_ms: float | None = 1000.0 * waits_s / later if later else 0.0
    if not loop.epoch_ends:
        each_ms = fill_ms if first and later and comes_again(session) is not None else None
        waits_s = later * (each_ms or 0.0) / 1000.0
    makings = [row for row in rows if row.what == MAKING]
    made_s = sum(row.seconds * (1.0 - first / max(row.count or 1, 1)) for row in makings)
    in_steps_s = _seconds(session, "steps")
    calls = [row.count for row in rows_of_loop(session, "steps") if row.count and row.what is None]
    mean_s = steps.mean_ms * steps.batches_per_call / 1000.0 if steps else 0.0
    explained_s = min(in_steps_s, sum(calls) * mean_s) if calls and mean_s else in_steps_s
    time = LoopTime(
        steps_s=explained_s,
        slower_s=in_steps_s - explained_s,
        first_batches_s=waits_s,
        between_s=made_s + _seconds(session, "evaluation") + _seconds(session, "epoch_end"),
        first_batch_ms=each_ms,
        ends_seen=loop.epoch_ends,
    )
    return time if time.total_s > 0.0 else None


def time_of_epochs(session: Session) -> LoopTime | None:
    """Return the loop's time; None if the wait for later epochs' first batches is not known."""
    time = loop_time(session)
    return time if time is not None and time.first_batch_ms is not None else None


def first_batch_percent(session: Session) -> float:
    """Return the percent of the loop's time spent waiting for first batches; 0 if not known."""
    time = time_of_epochs(session)
    return 100.0 * time.first_batches_s / time.total_s if time is not None else 0.0


def steps_beside_percent(session: Session) -> float | None:
    """Return the percent of the loop's time that its steps explain by their mean, if known."""
    time = time_of_epochs(session)
    return 100.0 * time.steps_s / time.total_s if time is not None else None


def long_percent(session: Session) -> float | None:
    """Return `first_batch_percent` where it reaches `FIRST_BATCHES`."""
    percent = first_batch_percent(session)
    return percent if percent >= FIRST_BATCHES.value else None


def comes_again(session: Session) -> Operation | None:
    """Return the shuffle that each epoch fills before its first batch, as the first epoch shows.

    A shuffle before a `repeat` is left out: it need not fill again.
    """
    wait_ms = session.steps.fill_ms if session.steps is not None else None
    if wait_ms is None or wait_ms < LONGEST_START_MS:
        return None
    for shuffle, costly in filled_shuffles(session):
        below = downstream(session, shuffle)
        again = all(reaches_the_loop_uncached(session, op) for op in costly)
        behind_ms = sum(delay_ms(session, op) or 0.0 for op in below)
        if any(op.kind == "repeat" for op in below) or not again:
            continue
        if holds_all(session, shuffle) and behind_ms < wait_ms / 2.0:
            return shuffle
    return None


def _seconds(session: Session, part: RunPartName) -> float:
    return sum(row.seconds for row in rows_of_loop(session, part) if row.what not in _PAUSED)


_FIRST_S, _LONGEST_S = 0.01, 60.0
_STARTS_S = 0.05
"""Time until the tuning thread first sleeps: 40 to 50 ms on two cores (own measurement)."""
_LIFE_OFF = 0.05
"""Share by which the epochs of a run differ in length. Own choice."""
_PAUSING = 0.5
"""Share of iterators that pause as they are freed: 14 of 30 in epochs of 3 s, natively on two cores
with TensorFlow 2.21 (own measurement)."""
PAUSED_NS = 50_000_000
"""Time from which freeing an iterator was a pause: others took 0.3 to 32 ms (own measurement)."""
SHORTEST_EPOCH_S = 1.0
"""Shortest epoch with pauses. Own choice: in shorter ones, the start of the pipeline decides where
in a period of sleep they end."""


@dataclass(frozen=True)
class Pauses:
    """Pauses at the ends of a run's epochs, in which TensorFlow frees an iterator.

    The thread that tunes a pipeline sleeps 10 ms, then twice as long each time, up to 60 s.
    Freeing the iterator cancels that thread and waits for it. The cancellation wakes it before
    the flag is set by which it would end (`CancellationManager::StartCancel`,
    `Model::OptimizeLoop`): where it runs first, it finds no flag, and sleeps on to the end of
    its period. Meanwhile nothing runs: the thread that waits holds the GIL.

    Own measurement, natively, TensorFlow 2.21 on two cores: a `fit` paused 0.8 to 2.4 s at 7 of
    9 ends of epochs of 4 s, 8.1 s at one of four of 11 s, and at none with `autotune.enabled =
    False`.
    """

    epochs: int
    life_s: float
    longest_s: Interval
    """Least and most seconds of one pause, after an epoch that is a little shorter or longer."""
    rest_s: float
    """Seconds of the run without the pauses that were seen in it."""

    @property
    def mean_s(self) -> float:
        return sum(self.longest_s) / 2.0

    @property
    def expected_s(self) -> float:
        """Return the seconds that freeing an iterator takes on average."""
        return _PAUSING * self.mean_s


def pauses_of_run(session: Session) -> Pauses | None:
    """Return the run's pauses; None where epochs share an iterator or are short or not known."""
    run, loop, pipeline = session.run, session.diagnosed_loop(), session.pipeline
    if run is None or loop is None or pipeline is None or run.scope != "run":
        return None
    epochs = round(run.epochs or 0)
    if epochs < 2 or not pipeline.autotune_enabled or not _frees_one_each_epoch(session, loop, run):
        return None
    life_s = (_seconds(session, "steps") + _seconds(session, "epoch_start")) / epochs
    if life_s < SHORTEST_EPOCH_S:
        return None
    return Pauses(epochs, life_s, longest_pause_s(life_s), run.whole_s - seen_pauses_s(run))


def seen_pauses_s(run: Run) -> float:
    """Return the seconds of the run that it paused as iterators were freed."""
    return sum(row.seconds for row in run.parts if row.what in _PAUSED)


def longest_pause_s(life_s: float) -> Interval:
    """Return the seconds that a pause may take after an epoch of about that length."""
    waits = [sleeps_on_s(life_s * factor) for factor in (1.0 - _LIFE_OFF, 1.0, 1.0 + _LIFE_OFF)]
    return min(waits), max(waits)


def _frees_one_each_epoch(session: Session, loop: Loop, run: Run) -> bool:
    """Return True if each epoch has an iterator of its own.

    Keras keeps one iterator if `fit` has `steps_per_epoch`, and counts the steps itself if it has
    not. For a loop of the script's own, only the iterators that were seen count.
    """
    if loop.iterators >= 2 or loop.keras is None or (run.epochs_seen or 0.0) >= 2.0:
        return loop.iterators >= 2
    last = last_operation(session)
    return loop.keras.steps_per_epoch in (None, last.cardinality if last is not None else None)


def sleeps_on_s(life_s: float) -> float:
    """Return the seconds for which the tuning thread of an iterator of that age sleeps on."""
    period_s = _FIRST_S
    wakes_s = _STARTS_S + period_s
    while wakes_s <= life_s:
        period_s = min(2.0 * period_s, _LONGEST_S)
        wakes_s += period_s
    return wakes_s - life_s
