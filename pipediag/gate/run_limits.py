"""Limits on parts of the run, by its ledger."""

from __future__ import annotations

from collections.abc import Sequence

from pipediag.facts.names import RUN_PART
from pipediag.facts.run import costliest_row, whole_in_words
from pipediag.facts.run_gain import ONCE_OFF
from pipediag.gate.config import GateConfig
from pipediag.gate.limits import Limit, Measured, judged, of_runs
from pipediag.gate.result import Check
from pipediag.session.ledger import Run, RunPart
from pipediag.session.model import Session
from pipediag.session.record import Interval
from pipediag.vocabulary import RunPartName

_NARROWER = "More epochs make the interval narrower, as `--run-to-end` sees."


def run_limit_checks(runs: Sequence[Session], config: GateConfig) -> list[Check]:
    """One check for each part of the run on which the configuration sets a limit."""
    return [
        _check(runs, part, percent)
        for part in RUN_PART
        if (percent := config.max_run_percent.get(part)) is not None
    ]


def _check(runs: Sequence[Session], part: RunPartName, percent: float) -> Check:
    limit = Limit(f"max-run-percent.{part.replace('_', '-')}", RUN_PART[part], percent)
    ledger = runs[0].run
    row = costliest_row(ledger, part) if ledger is not None else None
    place = (row.file, row.line) if row is not None else (None, None)
    measured = of_runs([_of_session(session, part) for session in runs])
    return judged(limit, measured, place, narrower=_NARROWER)


def _of_session(session: Session, part: RunPartName) -> Measured | str:
    if session.run is None:
        return session.run_missing or "the session has no ledger of the run."
    return _measured(session.run, part)


def _measured(run: Run, part: RunPartName) -> Measured:
    """The rows of a part together."""
    rows = [row for row in run.parts if row.part == part]
    bounds = [_bounds(row) for row in rows]
    return Measured(
        value=sum(row.percent for row in rows),
        interval=(sum(low for low, _ in bounds), sum(high for _, high in bounds)),
        of=whole_in_words(run),
    )


def _bounds(row: RunPart) -> Interval:
    """One that was timed once, as it is, has no width of its own; a projection is never certain."""
    if row.ci95_percent is not None:
        return row.ci95_percent
    off = ONCE_OFF * row.percent if row.basis == "projected" else 0.0
    return row.percent - off, row.percent + off
