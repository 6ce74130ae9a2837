"""The verdict as a check, for a gate to which no limit was given."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from operator import itemgetter
from statistics import median

from pipediag.facts.run import rows_to_have_back
from pipediag.facts.run_parts import LABELS
from pipediag.facts.step import GROUPS, class_percent
from pipediag.gate.majority import merged
from pipediag.gate.result import Check, CheckOutcome, Level, past_limit
from pipediag.session.findings import Verdict
from pipediag.session.model import Session
from pipediag.vocabulary import Bottleneck, RunPartName, StepClass, VerdictSeverity

_CURABLE: tuple[Bottleneck, ...] = ("input", "transfer", "overhead")
"""Bottlenecks that are waste. Compute is what a training run is for, so it passes."""

_CLASSES: dict[Bottleneck, tuple[StepClass, ...]] = {
    "input": ("input_wait",),
    "transfer": GROUPS["transfer"],
    "overhead": GROUPS["overhead"],
    "compute": GROUPS["compute"],
}
_LABELS: dict[Bottleneck, str] = {
    "input": "Input wait",
    "transfer": "Copies",
    "overhead": "Overhead",
    "compute": "Device compute",
}

_What = tuple[Bottleneck, RunPartName | None]
"""The bottleneck, and the part of the run where that is not the steps."""

_LEVELS: dict[VerdictSeverity, Level] = {"high": "error", "moderate": "warn"}


def verdict_of_runs(runs: Sequence[Session], fail_on: Level) -> Check:
    """What most runs say, wherever each of them sees the culprit, with the share in all of them.

    The words are those of the run in which that share is nearest to the median.
    """
    if len(runs) == 1:
        return verdict_check(runs[0], fail_on)
    what = Counter(_about(run) for run in runs).most_common(1)[0][0]
    shares = [_percent(run, what) for run in runs]
    known = [one for one in shares if one is not None]
    middle = median(known) if known else 0.0
    apart = [math.inf if one is None else abs(one - middle) for one in shares]
    nearest_first = [run for _, run in sorted(zip(apart, runs, strict=True), key=itemgetter(0))]
    check = merged([verdict_check(run, fail_on) for run in nearest_first])
    if len(known) < len(runs):
        return check
    label, of = _words(what)
    each = ", ".join(f"{one:.1f}" for one in known)
    said = f"{check.sentence} {label} in each run: {each} % of the {of}."
    return replace(check, sentence=said)


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


def _about(session: Session) -> _What:
    verdict = session.verdict
    return verdict.bottleneck, None if verdict.where == "steps" else verdict.where


def _percent(session: Session, what: _What) -> float | None:
    """Of the step in the bottleneck, or of the run in the part that the verdict is about."""
    bottleneck, part = what
    if part is not None:
        run = session.run
        return None if run is None else sum(row.percent for row in rows_to_have_back(run, part))
    classes = _CLASSES.get(bottleneck, ())
    return class_percent(session, classes) if classes and session.breakdown is not None else None


def _words(what: _What) -> tuple[str, str]:
    bottleneck, part = what
    if part is not None:
        return LABELS[part], "run"
    return _LABELS[bottleneck], "step"


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
