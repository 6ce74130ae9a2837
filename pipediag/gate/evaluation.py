"""Checks of a session: configured limits, by the whole interval of a value, verdict and rules."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from pipediag.comparison.quantities import (
    INPUT,
    OVERHEAD,
    Measured,
    Unit,
    part_percent,
    step_percent,
)
from pipediag.facts.names import RUN_PART
from pipediag.facts.order import costs_the_run, culprit_place, is_for_you_to_decide
from pipediag.facts.run import costliest_row
from pipediag.facts.script import script_failure
from pipediag.gate.config import VERDICT, GateConfig, RuleLevel
from pipediag.gate.result import (
    UNIT_WORDS,
    Check,
    CheckOutcome,
    GateResult,
    Level,
    number,
    past_limit,
)
from pipediag.session.edits import timed_call
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.session.trials import NOT_TRIED
from pipediag.vocabulary import VerdictSeverity

_RULE_LEVELS: dict[str, RuleLevel] = {"error": "error", "warn": "warn", "info": "off"}
_VERDICT_LEVELS: dict[VerdictSeverity, Level] = {"high": "error", "moderate": "warn"}


def evaluate(
    session: Session, config: GateConfig, label: str | None = None, *, only_named: bool = False
) -> GateResult:
    """Check a session against every limit and rule; `label` is the script by default.

    A configured limit takes the place of a verdict about the same share. If the script failed
    before enough steps were seen, nothing is judged. With `only_named`, neither is the verdict, nor
    a rule that the configuration does not name.
    """
    failure = script_failure(session)
    checks: list[Check] = []
    if failure is None:
        checks += limit_checks(session, config)
        found = finding_checks(session, config)
        if only_named:
            checks += [one for one in found if one.name in config.rules]
        else:
            checks += [*verdict_checks(session, config), *found]
    script = session.script.path
    return GateResult(
        label=label or script,
        script=script,
        checks=tuple(checks),
        fail_on=config.fail_on,
        allow_inconclusive=config.allow_inconclusive,
        script_failure=failure,
        figures=figures(session),
    )


def figures(session: Session) -> dict[str, Any]:
    """Return the main numbers of a session, to be kept and compared over time."""
    return {
        "created_at": session.created_at,
        "machine": session.environment.fingerprint,
        "pipediag_version": session.pipediag_version,
        "step_ms": session.steps.mean_ms if session.steps is not None else None,
        "run_s": session.run.whole_s if session.run is not None else None,
        "percent_of_step": {
            name: share.percent for name, share in (session.breakdown or {}).items()
        },
        "bottleneck": session.verdict.bottleneck,
    }


def finding_checks(session: Session, config: GateConfig) -> list[Check]:
    """Return one check for each finding that passed, failed or could not be decided.

    A failed finding passes if a trial refuted its advice, unless it is about results: speed does
    not settle these.

    What a rule merely notes, or could not apply to, is no check. A rule that the configuration
    names and the session has no result of is inconclusive.
    """
    checks = []
    for finding in session.findings:
        level = config.rules.get(finding.rule, _RULE_LEVELS[finding.severity])
        if level == "off":
            continue
        outcome = _outcome(finding, level, config.fail_on)
        if outcome is not None:
            check = Check(finding.rule, outcome, level, _sentence(finding))
            checks.append(replace(check, file=finding.file, line=finding.line))
    present = {VERDICT, *(finding.rule for finding in session.findings)}
    for rule, level in config.rules.items():
        if level != "off" and rule not in present:
            sentence = (
                f"The session has no result for the rule {rule} "
                f"(written by pipediag {session.pipediag_version})."
            )
            checks.append(Check(rule, "inconclusive", level, sentence))
    return checks


def _outcome(finding: Finding, level: Level, fail_on: Level) -> CheckOutcome | None:
    match finding.status:
        case "fail":
            # Advice that was tried and gained nothing is no reason to fail.
            return "pass" if finding.dropped else past_limit(level, fail_on)
        case "pass":
            return "pass"
        case "inconclusive" | "error":
            return "inconclusive"
        case "informative" | "not-applicable":
            return None


def _sentence(finding: Finding) -> str:
    title = finding.title.rstrip(".")
    if finding.status == "pass" or not finding.advice:
        return f"{title}."
    return f"{title}. {finding.advice}{_trial(finding)}"


def _trial(finding: Finding) -> str:
    trial = finding.trial
    if trial.speedup is None or trial.ci95 is None:
        if finding.status != "fail" or finding.about_results:
            return ""
        state = "Not tried." if trial.state == "not_tried" else f"A trial of it: {trial.state}."
        return f" {state} {trial.reason or ''}".rstrip() if trial != NOT_TRIED else " Not tried."
    state = "" if finding.about_results else f"{trial.state}, "
    known = "estimated " if trial.basis == "pipeline" else ""
    low, high = trial.ci95
    return f" A trial of it: {state}{known}{trial.speedup:.2f}x [{low:.2f}, {high:.2f}]."


def verdict_checks(session: Session, config: GateConfig) -> list[Check]:
    """Return the check of the verdict; none if a configured limit is about the same share.

    If a limit is set on the part of the run that the verdict is about, the verdict on the steps is
    judged in its place.
    """
    level = config.rules.get(VERDICT)
    if level == "off":
        return []
    if session.verdict.where != "steps" and session.verdict.where in config.max_run_percent:
        from pipediag.measures.verdict.decision import decide_steps

        session = session.model_copy(update={"verdict": decide_steps(session)})
    if _is_limited(session, config):
        return []
    verdict = session.verdict
    severity: Level = level or _VERDICT_LEVELS.get(verdict.severity, "error")
    outcome: CheckOutcome = past_limit(severity, config.fail_on)
    sentence = verdict.summary
    if verdict.severity in ("unknown", "ok"):
        severity = "error"
        outcome = "pass" if verdict.severity == "ok" else "inconclusive"
    if outcome == "inconclusive":
        sentence = " ".join((verdict.summary, *verdict.reasons))
    place = culprit_place(session)
    return [
        Check(
            name=VERDICT,
            outcome=outcome,
            severity=severity,
            sentence=sentence,
            file=place.file if place else None,
            line=place.line if place else None,
        )
    ]


def _is_limited(session: Session, config: GateConfig) -> bool:
    """Return True if a configured limit is on the share that sets the severity of the verdict."""
    if session.verdict.where not in (None, "steps"):
        return False
    input_wait = config.max_input_wait_percent is not None
    overhead = config.max_overhead_percent is not None
    match session.verdict.bottleneck:
        case "input" | "compute":  # a step of device compute is moderate by its input wait alone
            return input_wait
        case "overhead" | "balanced":
            return overhead
        case "inconclusive":
            return input_wait or overhead
        case "transfer":
            return False


_MORE_STEPS = "More steps (--steps) make the interval narrower."
_MORE_EPOCHS = "More epochs, with `--run-to-end`, make the interval narrower."
_MORE_TRIALS = "A longer `--budget` makes the interval narrower."
_NOT_TRIED = "no trials were made. Leave out `--budget 0`, or give them more time."


def limit_checks(session: Session, config: GateConfig) -> Iterator[Check]:
    """Yield one check for each configured limit."""
    named = (session.verdict.file, session.verdict.line)
    if (most := config.max_input_wait_percent) is not None:
        found = step_percent(session, INPUT)
        yield _check("max-input-wait-percent", "Input wait", most, found, named)
    if (most := config.max_overhead_percent) is not None:
        label = "Overhead (dispatch, Python, compilation, waiting for the device)"
        found = step_percent(session, OVERHEAD)
        yield _check("max-overhead-percent", label, most, found, named)
    for part in RUN_PART:
        if (most := config.max_run_percent.get(part)) is not None:
            name = f"max-run-percent.{part.replace('_', '-')}"
            row = costliest_row(session.run, part) if session.run is not None else None
            place = (row.file, row.line) if row is not None else (None, None)
            found = part_percent(session, part)
            yield _check(name, RUN_PART[part], most, found, place, narrower=_MORE_EPOCHS)
    if (most := config.max_confirmed_speedup_left) is not None:
        left = _confirmed(session)
        rules = ", ".join(dict.fromkeys(one.rule for one in left))
        check = _check(
            "max-confirmed-speedup-left",
            "Confirmed speed-up left" + (f" by {rules}" if rules else ""),
            most,
            _speedup_left(session),
            (left[0].file, left[0].line) if left else (None, None),
            unit="ratio",
            narrower=_MORE_TRIALS,
        )
        if check.outcome == "fail" and session.patch is not None and session.patch.diff:
            check = replace(check, sentence=f"{check.sentence} `pipediag fix` prints the patch.")
        yield check


def _check(
    name: str,
    label: str,
    most: float,
    measured: Measured | str,
    place: tuple[str | None, int | None],
    *,
    unit: Unit = "percent",
    narrower: str = _MORE_STEPS,
) -> Check:
    """Return the check of a limit; `narrower` says how to narrow an interval that contains it."""
    check = Check(name, "inconclusive", "error", "", limit=most, unit=unit)
    if isinstance(measured, str):
        return replace(check, sentence=f"{label} was not measured: {measured}")
    # No value is below 0, and no share above 100 %.
    low, high = max(0.0, measured.interval[0]), measured.interval[1]
    high = min(100.0, high) if unit == "percent" else high
    word = UNIT_WORDS[unit]
    outcome: CheckOutcome = "fail" if low > most else "pass" if high <= most else "inconclusive"
    endings = {
        "pass": f"within the limit of {most:g}{word}.",
        "fail": f"over the limit of {most:g}{word}.",
        "inconclusive": f"and the limit of {most:g}{word} lies inside the interval: too close to "
        f"call. {narrower}",
    }
    of = f" of {measured.of}" if measured.of else ""
    sentence = (
        f"{label}: {number(measured.value, unit)}{word}{of} "
        f"(95 % interval {number(low, unit)} to {number(high, unit)}{word}), {endings[outcome]}"
    )
    return replace(
        check,
        outcome=outcome,
        sentence=sentence,
        value=measured.value,
        interval=(low, high),
        file=place[0],
        line=place[1],
    )


def _speedup_left(session: Session) -> Measured | str:
    """Return the gain of all edits together; else the largest of one; 1 if none was confirmed."""
    combined = session.combined
    if combined is not None and combined.speedup is not None and combined.ci95 is not None:
        return Measured(combined.speedup, combined.ci95)
    gains = [
        (one.trial.speedup or 1.0, one.trial.ci95 or (1.0, 1.0)) for one in _confirmed(session)
    ]
    if gains:
        return Measured(*max(gains))
    to_try = any(one.status == "fail" and one.edit is not None for one in session.findings)
    if session.trials is None and to_try:
        return session.trials_missing or _NOT_TRIED
    return Measured(1.0, (1.0, 1.0))


def _confirmed(session: Session) -> list[Finding]:
    """Return findings whose confirmed edits make steps faster and need no decision of the user."""
    return [
        one
        for one in session.findings
        if one.trial.state == "confirmed"
        and one.trial.speedup is not None
        and one.effect_on_results != "not safe here"
        and not one.about_results
        and not is_for_you_to_decide(one)
        and not costs_the_run(one)
        and not _is_of_another_part(one)
    ]


def _is_of_another_part(finding: Finding) -> bool:
    """Return True if its speed-up is of evaluations, or of calls in callbacks, alone."""
    called = finding.part == "epoch_end" and timed_call(finding.edit) is not None
    return finding.part == "evaluation" or called
