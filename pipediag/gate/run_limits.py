"""Limits on parts of the run, by its ledger."""

from __future__ import annotations

from pipediag.facts.run import costliest_row, whole_in_words
from pipediag.gate.config import GateConfig
from pipediag.gate.limits import Limit, Measured, judged
from pipediag.gate.result import Check
from pipediag.session.ledger import Run
from pipediag.session.model import Session
from pipediag.vocabulary import RunPartName

LABELS: dict[RunPartName, str] = {
    "startup": "Starting Python and importing",
    "before_training": "What runs before the training",
    "compile": "Tracing and compiling",
    "epoch_start": "Waiting for the first batch of an epoch",
    "steps": "Steps",
    "evaluation": "Evaluation",
    "epoch_end": "What runs at the end of an epoch",
    "between_loops": "What runs between two trainings",
    "after_training": "What runs after the training",
}
_NARROWER = "More epochs make the interval narrower, as `--run-to-end` sees."


def run_limit_checks(session: Session, config: GateConfig) -> list[Check]:
    """One check for each part of the run on which the configuration sets a limit."""
    return [
        _check(session, part, percent)
        for part in LABELS
        if (percent := config.max_run_percent.get(part)) is not None
    ]


def _check(session: Session, part: RunPartName, percent: float) -> Check:
    limit = Limit(f"max-run-percent.{part.replace('_', '-')}", LABELS[part], percent)
    if session.run is None:
        reason = session.run_missing or "the session has no ledger of the run."
        return judged(limit, reason, (None, None), narrower=_NARROWER)
    row = costliest_row(session.run, part)
    place = (row.file, row.line) if row is not None else (None, None)
    return judged(limit, _measured(session.run, part), place, narrower=_NARROWER)


def _measured(run: Run, part: RunPartName) -> Measured:
    """The rows of a part together; one that was timed once, as it is, has no width of its own."""
    rows = [row for row in run.parts if row.part == part]
    bounds = [row.ci95_percent or (row.percent, row.percent) for row in rows]
    return Measured(
        percent=sum(row.percent for row in rows),
        interval=(
            max(0.0, sum(low for low, _ in bounds)),
            min(100.0, sum(high for _, high in bounds)),
        ),
        of=whole_in_words(run),
    )
