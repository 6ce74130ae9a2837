"""What the ledger says of the run: where its time goes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pipediag.facts.limits import INPUT_BOUND_PERCENT
from pipediag.session.ledger import EXITING, MAKING, PAUSE, Run, RunPart
from pipediag.session.model import Session
from pipediag.vocabulary import RunPartName, RunScope

HAD_BACK: tuple[RunPartName, ...] = (
    "before_training",
    "compile",
    "epoch_start",
    "evaluation",
    "epoch_end",
    "between_loops",
    "after_training",
)
"""Parts that a change of the script could shorten; of steps, what is not the device's computing.
To start Python and import a framework, and to exit, takes what it takes."""

WHERE_PERCENT = INPUT_BOUND_PERCENT
"""Of the run, from which on a part other than the steps can be its verdict: own choice, equal to
XProf's limit for the input wait of a step."""

_SCOPES: dict[RunScope, str] = {
    "run": "the run",
    "epoch": "an epoch",
    "1000_steps": "1,000 steps with what comes between them",
}


@dataclass(frozen=True)
class Where:
    """The part that costs most of what could be had back, and the row of it that does."""

    part: RunPartName
    percent: float
    row: RunPart | None
    about_as_much: Where | None = None
    """With the steps: another part that takes more by its mean, but not by its interval."""


def rows_to_have_back(run: Run, part: RunPartName) -> list[RunPart]:
    """Return a part's rows without the exit, and without a pause that was seen once."""
    return [row for row in run.parts if row.part == part and row.what not in (EXITING, PAUSE)]


def where(session: Session) -> Where | None:
    """Return the part of the run that costs most of what a change could save.

    It is the steps unless another part weighs more, its 95 % interval does not overlap with theirs,
    and lies above `WHERE_PERCENT`. Of the steps, the time in which the device does not compute
    counts. None without a ledger, or where
    nothing trains.
    """
    run = session.run
    if run is None or session.diagnosed_loop() is None:
        return None
    weights = {part: sum(one.percent for one in rows_to_have_back(run, part)) for part in HAD_BACK}
    part = max(weights, key=lambda name: weights[name])
    steps, idle = run.percent_of("steps"), _idle(session)
    in_steps = Where("steps", steps, None)
    if weights[part] < WHERE_PERCENT or weights[part] <= steps * idle:
        return in_steps
    other = Where(part, weights[part], costliest_row(run, part))
    at_least = _end_of_intervals(rows_to_have_back(run, part), 0)
    steps_at_most = idle * _end_of_intervals(rows_to_have_back(run, "steps"), 1)
    if at_least < WHERE_PERCENT or at_least <= steps_at_most:
        return replace(in_steps, about_as_much=other)
    return other


def _end_of_intervals(rows: list[RunPart], end: int) -> float:
    """Return the lower (0) or upper (1) end of what rows take together, in percent."""
    return sum(row.ci95_percent[end] if row.ci95_percent else row.percent for row in rows)


def costliest_row(run: Run, part: RunPartName) -> RunPart | None:
    """The row of a part that takes most, the exit left out; one that has a place goes before one
    that has none."""
    rows = rows_to_have_back(run, part)
    placed = [row for row in rows if row.line is not None]
    return max(placed or rows, key=lambda row: row.seconds, default=None)


def starts_s(session: Session) -> float:
    """Seconds of the whole in which the diagnosed loop waits for an epoch's first batch."""
    return sum(row.seconds for row in rows_of_loop(session, "epoch_start"))


def making_ms(session: Session) -> float:
    """What an epoch of the diagnosed loop takes to make its iterators, of which Keras makes two,
    and to let the former ones go; 0 where that is not known."""
    starts, run = rows_of_loop(session, "epoch_start"), session.run
    making_s = sum(row.seconds for row in starts if row.what == MAKING)
    if run is None or run.scope == "1000_steps":
        return 0.0
    epochs = max((row.count or 1 for row in starts if row.what not in (MAKING, PAUSE)), default=1)
    return 1000.0 * making_s / (epochs if run.scope == "run" else 1)


def rows_of_loop(session: Session, part: RunPartName) -> list[RunPart]:
    """What the diagnosed loop takes of a part; nothing without a ledger."""
    loop = session.diagnosed_loop()
    rows = session.run.parts if session.run is not None and loop is not None else []
    return [row for row in rows if row.part == part and loop and row.loop_id == loop.id]


def whole_in_words(run: Run) -> str:
    """What percents of the ledger are of."""
    return _SCOPES[run.scope]


def _idle(session: Session) -> float:
    """The part of a step that is not the device's computing; all of it where that is not known."""
    share = (session.breakdown or {}).get("device_compute")
    return 1.0 - share.percent / 100.0 if share is not None else 1.0
