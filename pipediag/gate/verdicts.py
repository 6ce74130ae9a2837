"""The verdict as a check, for a gate to which no limit was given."""

from __future__ import annotations

from pipediag.gate.result import Check, CheckOutcome, Level, past_limit
from pipediag.session.findings import Verdict
from pipediag.session.model import Session
from pipediag.vocabulary import Bottleneck, VerdictSeverity

_CURABLE: tuple[Bottleneck, ...] = ("input", "transfer", "overhead")
"""Bottlenecks that are waste. Compute is what a training run is for, so it passes."""

_LEVELS: dict[VerdictSeverity, Level] = {"high": "error", "moderate": "warn"}


def verdict_check(session: Session, fail_on: Level) -> Check:
    """Fail on a high, warn on a moderate bottleneck in input, transfer or overhead."""
    verdict = session.verdict
    outcome, severity = _judge(verdict, fail_on)
    return Check(
        name="verdict",
        outcome=outcome,
        severity=severity,
        sentence=_sentence(verdict, outcome),
        file=verdict.file,
        line=verdict.line,
    )


def _judge(verdict: Verdict, fail_on: Level) -> tuple[CheckOutcome, Level]:
    curable = verdict.bottleneck in _CURABLE
    if verdict.bottleneck == "inconclusive" or (curable and verdict.severity == "unknown"):
        return "inconclusive", "error"
    level = _LEVELS.get(verdict.severity)
    if not curable or level is None:
        return "pass", "error"
    return past_limit(level, fail_on), level


def _sentence(verdict: Verdict, outcome: CheckOutcome) -> str:
    if outcome == "inconclusive":
        return " ".join((verdict.summary, *verdict.reasons))
    return verdict.summary
