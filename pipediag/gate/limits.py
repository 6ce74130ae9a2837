"""Limits on shares of the step: ratios from within one run, so that they carry over machines."""

from __future__ import annotations

from dataclasses import dataclass

from pipediag.facts.step import GROUPS
from pipediag.gate.config import GateConfig
from pipediag.gate.result import Check, CheckOutcome
from pipediag.session.model import Session
from pipediag.vocabulary import StepClass


@dataclass(frozen=True)
class _Limit:
    name: str
    label: str
    percent: float | None
    classes: tuple[StepClass, ...]


@dataclass(frozen=True)
class _Measured:
    percent: float
    interval: tuple[float, float]


def limit_checks(session: Session, config: GateConfig) -> list[Check]:
    """One check for each limit that the configuration sets."""
    limits = (
        _Limit(
            "max-input-wait-percent", "Input wait", config.max_input_wait_percent, ("input_wait",)
        ),
        _Limit(
            "max-overhead-percent",
            "Overhead (dispatch, Python, compilation, waiting for the device)",
            config.max_overhead_percent,
            GROUPS["overhead"],
        ),
    )
    return [_check(session, limit, limit.percent) for limit in limits if limit.percent is not None]


def _check(session: Session, limit: _Limit, percent: float) -> Check:
    measured = _sum_of(session, limit.classes)
    if isinstance(measured, str):
        return Check(
            name=limit.name,
            outcome="inconclusive",
            severity="error",
            sentence=f"{limit.label} was not measured: {measured}",
            limit=percent,
        )
    outcome, ending = _compare(measured.interval, percent)
    low, high = measured.interval
    return Check(
        name=limit.name,
        outcome=outcome,
        severity="error",
        sentence=(
            f"{limit.label}: {measured.percent:.1f} % of the step "
            f"(95 % interval {low:.1f} to {high:.1f} %), {ending}"
        ),
        value=measured.percent,
        interval=measured.interval,
        limit=percent,
        file=session.verdict.file,
        line=session.verdict.line,
    )


def _compare(interval: tuple[float, float], limit: float) -> tuple[CheckOutcome, str]:
    low, high = interval
    if low > limit:
        return "fail", f"over the limit of {limit:g} %."
    if high <= limit:
        return "pass", f"within the limit of {limit:g} %."
    return "inconclusive", (
        f"and the limit of {limit:g} % lies inside the interval: too close to call. "
        "More steps (--steps) make the interval narrower."
    )


def _sum_of(session: Session, classes: tuple[StepClass, ...]) -> _Measured | str:
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
    return _Measured(
        percent=sum(share.percent for share in shares),
        interval=(
            max(0.0, sum(share.ci95_percent[0] for share in shares)),
            min(100.0, sum(share.ci95_percent[1] for share in shares)),
        ),
    )
