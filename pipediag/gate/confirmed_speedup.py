"""A limit on the speed-up that a trial has confirmed and the script leaves on the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pipediag.gate.config import GateConfig
from pipediag.gate.limits import Limit, Measured, Place, judged, of_runs
from pipediag.gate.result import Check
from pipediag.session.findings import Finding
from pipediag.session.model import Session

_NARROWER = "A longer `--budget` makes the interval narrower."
_NOT_TRIED = "no trials were made. Leave out `--budget 0`, or give them more time."


def confirmed_speedup_checks(runs: Sequence[Session], config: GateConfig) -> list[Check]:
    """One check where the configuration limits it: of all confirmed edits together."""
    if config.max_confirmed_speedup_left is None:
        return []
    limit = Limit(
        "max-confirmed-speedup-left",
        f"Confirmed speed-up left{_of_what(runs[0])}",
        config.max_confirmed_speedup_left,
        "ratio",
    )
    measured = of_runs([_left(session) for session in runs])
    check = judged(limit, measured, _place(runs[0]), narrower=_NARROWER)
    return [replace(check, diff=_diff(runs)) if check.outcome == "fail" else check]


def _left(session: Session) -> Measured | str:
    """Together as measured; else the largest that was confirmed alone; 1 where none was."""
    combined = session.combined
    if combined is not None and combined.speedup is not None and combined.ci95 is not None:
        return Measured(combined.speedup, combined.ci95)
    confirmed = _confirmed(session)
    if confirmed:
        speedup, interval = max(
            (one.trial.speedup or 1.0, one.trial.ci95 or (1.0, 1.0)) for one in confirmed
        )
        return Measured(speedup, interval)
    to_try = [one for one in session.findings if one.status == "fail" and one.edit is not None]
    if session.trials is None and to_try:
        return session.trials_missing or _NOT_TRIED
    return Measured(1.0, (1.0, 1.0))


def _confirmed(session: Session) -> list[Finding]:
    return [
        one
        for one in session.findings
        if one.trial.state == "confirmed"
        and one.trial.speedup is not None
        and not one.about_results
    ]


def _diff(runs: Sequence[Session]) -> str | None:
    """Of the first run that has one: what is left in the script is the same in all of them."""
    patches = (session.patch for session in runs)
    return next((one.diff for one in patches if one is not None and one.diff), None)


def _of_what(session: Session) -> str:
    """Which findings it comes from, so that whoever reads it knows what to change."""
    rules = dict.fromkeys(finding.rule for finding in _confirmed(session))
    return f" by {', '.join(rules)}" if rules else ""


def _place(session: Session) -> Place:
    confirmed = _confirmed(session)
    return (confirmed[0].file, confirmed[0].line) if confirmed else (None, None)
