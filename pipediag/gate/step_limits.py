"""Limits on shares of the step: ratios from within one run, so that they carry over machines."""

from __future__ import annotations

from collections.abc import Sequence

from pipediag.facts.step import GROUPS
from pipediag.gate.config import GateConfig
from pipediag.gate.limits import Limit, Measured, judged, of_runs
from pipediag.gate.result import Check
from pipediag.session.model import Session
from pipediag.vocabulary import StepClass

_NARROWER = "More steps (--steps) make the interval narrower."


def step_limit_checks(runs: Sequence[Session], config: GateConfig) -> list[Check]:
    """One check for each limit on the step that the configuration sets, of all runs together."""
    limits: list[tuple[str, str, float | None, tuple[StepClass, ...]]] = [
        ("max-input-wait-percent", "Input wait", config.max_input_wait_percent, ("input_wait",)),
        (
            "max-overhead-percent",
            "Overhead (dispatch, Python, compilation, waiting for the device)",
            config.max_overhead_percent,
            GROUPS["overhead"],
        ),
    ]
    place = (runs[0].verdict.file, runs[0].verdict.line)
    return [
        judged(
            Limit(name, label, percent),
            of_runs([_sum_of(session, classes) for session in runs]),
            place,
            narrower=_NARROWER,
        )
        for name, label, percent, classes in limits
        if percent is not None
    ]


def _sum_of(session: Session, classes: tuple[StepClass, ...]) -> Measured | str:
    """The classes together, or why they are not known.

    The ends of the intervals are added. That is never narrower than the true interval of the sum,
    whatever the correlation between the classes.
    """
    if session.breakdown is None:
        return session.breakdown_missing or "the session has no breakdown of the step."
    missing = [name for name in classes if name not in session.breakdown]
    if missing:
        return f"the breakdown lacks {', '.join(missing)}."
    shares = [session.breakdown[name] for name in classes]
    return Measured(
        value=sum(share.percent for share in shares),
        interval=(
            sum(share.ci95_percent[0] for share in shares),
            sum(share.ci95_percent[1] for share in shares),
        ),
        of="the step",
    )
