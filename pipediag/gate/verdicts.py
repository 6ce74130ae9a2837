"""The verdict as a check: its severity decides, wherever in the run the time is lost.

A limit that the configuration sets on the same share takes the verdict's place, and no other does.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from operator import itemgetter
from statistics import median

from pipediag.facts.names import RUN_PART
from pipediag.facts.order import culprit_place
from pipediag.facts.run import rows_to_have_back
from pipediag.facts.step import GROUPS, class_percent
from pipediag.gate.config import VERDICT, GateConfig
from pipediag.gate.majority import merged
from pipediag.gate.result import Check, CheckOutcome, Level, past_limit
from pipediag.session.findings import Verdict
from pipediag.session.model import Session
from pipediag.vocabulary import Bottleneck, RunPartName, StepClass, VerdictSeverity

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


def verdict_checks(runs: Sequence[Session], config: GateConfig) -> list[Check]:
    """Return the check of the verdict; none where the configuration decides what it is about.

    Where a limit is set on the part of the run that the verdict is about, the verdict on the steps
    is judged in its place.
    """
    if config.rules.get(VERDICT) == "off":
        return []
    left = [_without_limited_part(run, config) for run in runs]
    if _is_limited(_most_common(left), config):
        return []
    return [verdict_of_runs(left, config)]


def _without_limited_part(session: Session, config: GateConfig) -> Session:
    where = session.verdict.where
    if where == "steps" or where not in config.max_run_percent:
        return session
    from pipediag.measures.verdict.decision import decide_steps

    return session.model_copy(update={"verdict": decide_steps(session)})


def _is_limited(what: _What, config: GateConfig) -> bool:
    """Return whether a configured limit is on the share that sets the severity of the verdict."""
    bottleneck, part = what
    if part is not None:
        return False
    input_wait = config.max_input_wait_percent is not None
    overhead = config.max_overhead_percent is not None
    match bottleneck:
        case "input" | "compute":  # a step of device compute is moderate by its input wait alone
            return input_wait
        case "overhead" | "balanced":
            return overhead
        case "inconclusive":
            return input_wait or overhead
        case "transfer":
            return False


def _most_common(runs: Sequence[Session]) -> _What:
    return Counter(_about(run) for run in runs).most_common(1)[0][0]


def verdict_of_runs(runs: Sequence[Session], config: GateConfig) -> Check:
    """Return what most runs say, wherever each sees the culprit, with the share in all of them.

    The words are those of the run in which that share is nearest to the median.
    """
    if len(runs) == 1:
        return verdict_check(runs[0], config)
    what = _most_common(runs)
    shares = [_percent(run, what) for run in runs]
    known = [one for one in shares if one is not None]
    middle = median(known) if known else 0.0
    apart = [math.inf if one is None else abs(one - middle) for one in shares]
    nearest_first = [run for _, run in sorted(zip(apart, runs, strict=True), key=itemgetter(0))]
    check = merged([verdict_check(run, config) for run in nearest_first])
    if len(known) < len(runs):
        return check
    label, of = _words(what)
    each = ", ".join(f"{one:.1f}" for one in known)
    said = f"{check.sentence} {label} in each run: {each} % of the {of}."
    return replace(check, sentence=said)


def verdict_check(session: Session, config: GateConfig) -> Check:
    """Fail on a high severity, warn on a moderate one, whatever the bottleneck is."""
    verdict = session.verdict
    outcome, severity = _judge(verdict, config)
    place = culprit_place(session)
    return Check(
        name=VERDICT,
        outcome=outcome,
        severity=severity,
        sentence=_sentence(verdict, outcome),
        file=place.file if place else None,
        line=place.line if place else None,
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
        return RUN_PART[part], "run"
    return _LABELS[bottleneck], "step"


def _judge(verdict: Verdict, config: GateConfig) -> tuple[CheckOutcome, Level]:
    if verdict.severity == "unknown":
        return "inconclusive", "error"
    if verdict.severity == "ok":
        return "pass", "error"
    configured = config.rules.get(VERDICT)
    level = configured if configured in ("warn", "error") else _LEVELS[verdict.severity]
    return past_limit(level, config.fail_on), level


def _sentence(verdict: Verdict, outcome: CheckOutcome) -> str:
    if outcome == "inconclusive":
        return " ".join((verdict.summary, *verdict.reasons))
    return verdict.summary
