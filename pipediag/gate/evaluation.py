"""Checks of sessions: configured limits, the verdict and the rules.

Limits are judged over all runs, by the whole interval of a value; verdict and rules are those of
the run in the middle.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import median, stdev
from typing import Any

from pipediag.comparison.quantities import (
    INPUT,
    OVERHEAD,
    Measured,
    Unit,
    Value,
    part_percent,
    run_in_the_middle,
    step_percent,
)
from pipediag.estimates import student_quantile
from pipediag.facts.names import RUN_PART
from pipediag.facts.order import culprit_place
from pipediag.facts.run import costliest_row
from pipediag.facts.script import script_failure
from pipediag.facts.step import class_percent
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
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.session.trials import NOT_TRIED
from pipediag.vocabulary import VerdictSeverity

_RULE_LEVELS: dict[str, RuleLevel] = {"error": "error", "warn": "warn", "info": "off"}
_VERDICT_LEVELS: dict[VerdictSeverity, Level] = {"high": "error", "moderate": "warn"}


def evaluate(session: Session, config: GateConfig) -> GateResult:
    """Check a session against every limit and rule."""
    return evaluate_runs([session], config)


def evaluate_runs(
    runs: Sequence[Session],
    config: GateConfig,
    label: str | None = None,
    *,
    only_named: bool = False,
) -> GateResult:
    """Check several runs of one script, which are judged as one; `label` is the script by default.

    A value is the median of the runs, with their spread in its interval. Verdict and rules are
    those of the run with the median step, so that one odd run decides nothing. A configured limit
    takes the place of a verdict about the same share. If a run failed before enough steps were
    seen, nothing is judged. With `only_named`, neither is the verdict, nor a rule that the
    configuration does not name.
    """
    failure = _failure(runs)
    checks: list[Check] = []
    if failure is None:
        middle = run_in_the_middle(runs)
        checks += limit_checks(runs, config)
        found = finding_checks(middle, config)
        if only_named:
            checks += [one for one in found if one.name in config.rules]
        else:
            checks += [*verdict_checks(middle, config), *found]
    script = runs[0].script.path
    return GateResult(
        label=label or script,
        script=script,
        checks=tuple(checks),
        fail_on=config.fail_on,
        allow_inconclusive=config.allow_inconclusive,
        script_failure=failure,
        figures=figures(runs),
    )


def figures(runs: Sequence[Session]) -> dict[str, Any]:
    """Return the main numbers of the runs as medians, to be kept and compared over time."""
    first = runs[0]
    steps = [run.steps.mean_ms for run in runs if run.steps is not None]
    whole = [run.run.whole_s for run in runs if run.run is not None]
    broken_down = [run for run in runs if run.breakdown]
    classes = list(broken_down[0].breakdown or {}) if broken_down else []
    return {
        "created_at": first.created_at,
        "machine": first.environment.fingerprint,
        "pipediag_version": first.pipediag_version,
        "runs": len(runs),
        "step_ms": median(steps) if steps else None,
        "run_s": median(whole) if whole else None,
        "percent_of_step": {
            name: median(class_percent(run, (name,)) for run in broken_down) for name in classes
        },
        "bottleneck": run_in_the_middle(runs).verdict.bottleneck,
    }


def finding_checks(session: Session, config: GateConfig) -> list[Check]:
    """Return one check for each finding that passed, failed or could not be decided.

    A failed finding passes if a trial refuted its advice, unless it is about results: speed does
    not settle these.

    What a rule merely notes, or could not apply to, is no check, unless the configuration names
    the rule: then it passes, and says so. A rule that the configuration names and the session has
    no result of is inconclusive.
    """
    checks = []
    for finding in session.findings:
        level = config.rules.get(finding.rule, _RULE_LEVELS[finding.severity])
        if level == "off":
            continue
        outcome = _outcome(finding, level, config.fail_on)
        if outcome is None and finding.rule in config.rules:
            outcome = "pass"
        if outcome is not None:
            sentence, speedup = _sentence(finding), _confirmed_speedup(finding)
            check = Check(finding.rule, outcome, level, sentence, speedup=speedup)
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


def _confirmed_speedup(finding: Finding) -> float | None:
    """Return the speed-up of the whole run if known, else of the part that was tried."""
    if finding.trial.state != "confirmed" or finding.about_results:
        return None
    gain = finding.for_run
    return finding.trial.speedup if gain is None else gain.speedup


def _sentence(finding: Finding) -> str:
    title = finding.title.rstrip(".")
    if finding.status == "pass" or not finding.advice:
        return f"{title}."
    if finding.status == "informative":
        return f"For information only: {title}. {finding.advice}"
    return f"{title}. {finding.advice}{_trial(finding)}"


def _trial(finding: Finding) -> str:
    trial = finding.trial
    if trial.speedup is None or trial.ci95 is None:
        if finding.status != "fail" or finding.about_results:
            return ""
        state = "Not tried." if trial.state == "not_tried" else f"A trial of it: {trial.state}."
        return f" {state} {trial.reason or ''}".rstrip() if trial != NOT_TRIED else " Not tried."
    low, high = trial.ci95
    if finding.about_results:
        return f" With it, the run is {trial.speedup:.2f}x as fast [{low:.2f}, {high:.2f}]."
    if trial.basis == "pipeline":
        return f" A trial of its pipeline alone: {trial.state}, estimated {trial.speedup:.2f}x."
    return f" A trial of it: {trial.state}, {trial.speedup:.2f}x [{low:.2f}, {high:.2f}]."


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


def _failure(runs: Sequence[Session]) -> str | None:
    failures = [failure for failure in map(script_failure, runs) if failure is not None]
    if not failures or len(runs) == 1:
        return next(iter(failures), None)
    return f"{len(failures)} of {len(runs)} runs failed. {failures[0]}"


Place = tuple[str | None, int | None]

MEDIAN_BY_MEAN = math.sqrt(math.pi / 2.0)
"""Standard error of a median over that of a mean, for many normal values; for few it is less."""

_MORE_RUNS = "More runs (--repeats) make the interval narrower."
_MORE_STEPS = "More steps (--steps) make the interval narrower."
_MORE_EPOCHS = "More epochs, with `--run-to-end`, make the interval narrower."
_MORE_TRIALS = "A longer `--budget` makes the interval narrower."
_NOT_TRIED = "no trials were made. Leave out `--budget 0`, or give them more time."


@dataclass(frozen=True)
class Limit:
    """A limit that the configuration sets."""

    name: str
    """The key in the configuration."""
    label: str
    most: float
    value: Value
    place: Place = (None, None)
    unit: Unit = "percent"
    narrower: str = _MORE_STEPS
    """A sentence on how to narrow an interval that contains the limit."""
    diff: str | None = None
    """A change of the script that keeps the limit."""


def limit_checks(runs: Sequence[Session], config: GateConfig) -> list[Check]:
    """Return one check for each configured limit, over all runs together."""
    return [_check(one, of_runs(list(map(one.value, runs)))) for one in _limits(runs, config)]


def _limits(runs: Sequence[Session], config: GateConfig) -> Iterator[Limit]:
    first = runs[0]
    named = (first.verdict.file, first.verdict.line)
    if (most := config.max_input_wait_percent) is not None:
        share = partial(step_percent, classes=INPUT)
        yield Limit("max-input-wait-percent", "Input wait", most, share, named)
    if (most := config.max_overhead_percent) is not None:
        label = "Overhead (dispatch, Python, compilation, waiting for the device)"
        share = partial(step_percent, classes=OVERHEAD)
        yield Limit("max-overhead-percent", label, most, share, named)
    for part in RUN_PART:
        if (most := config.max_run_percent.get(part)) is not None:
            name = f"max-run-percent.{part.replace('_', '-')}"
            row = costliest_row(first.run, part) if first.run is not None else None
            place = (row.file, row.line) if row is not None else (None, None)
            share = partial(part_percent, part=part)
            yield Limit(name, RUN_PART[part], most, share, place, narrower=_MORE_EPOCHS)
    if (most := config.max_confirmed_speedup_left) is not None:
        found = _confirmed(first)
        rules = ", ".join(dict.fromkeys(one.rule for one in found))
        yield Limit(
            "max-confirmed-speedup-left",
            "Confirmed speed-up left" + (f" by {rules}" if rules else ""),
            most,
            _speedup_left,
            (found[0].file, found[0].line) if found else (None, None),
            "ratio",
            _MORE_TRIALS,
            next((one.patch.diff for one in runs if one.patch and one.patch.diff), None),
        )


def of_runs(found: Sequence[Measured | str]) -> Measured | str:
    """Return the median of several runs, with an interval that covers their spread.

    Steps within one run are not independent: memory layout, page cache and other programs affect
    all of them. So the interval is Student's over the runs, stretched as that of a median is wider
    than that of a mean, and never narrower than the runs' own. If one run lacks the value, the
    reason is returned.
    """
    missing = next((one for one in found if isinstance(one, str)), None)
    if missing is not None:
        return missing
    runs = [one for one in found if isinstance(one, Measured)]
    if len(runs) == 1:
        return runs[0]
    values = tuple(one.value for one in runs)
    middle = median(values)
    reach = (
        student_quantile(0.975, len(values) - 1)
        * MEDIAN_BY_MEAN
        * stdev(values)
        / math.sqrt(len(values))
    )
    low = min(middle - reach, median(one.interval[0] for one in runs))
    high = max(middle + reach, median(one.interval[1] for one in runs))
    return replace(runs[0], value=middle, interval=(low, high), runs=values)


def _check(limit: Limit, measured: Measured | str) -> Check:
    if isinstance(measured, str):
        sentence = f"{limit.label} was not measured: {measured}"
        outcome: CheckOutcome = "inconclusive"
        return Check(limit.name, outcome, "error", sentence, limit=limit.most, unit=limit.unit)
    low, high = measured.interval
    # No value is below 0, and no share above 100 %.
    interval = max(0.0, low), min(100.0, high) if limit.unit == "percent" else high
    outcome, ending = _compare(interval, limit, _MORE_RUNS if measured.runs else limit.narrower)
    return Check(
        name=limit.name,
        outcome=outcome,
        severity="error",
        sentence=f"{limit.label}: {_in_words(measured, interval, limit.unit)}, {ending}",
        value=measured.value,
        interval=interval,
        limit=limit.most,
        unit=limit.unit,
        file=limit.place[0],
        line=limit.place[1],
        diff=limit.diff if outcome == "fail" else None,
    )


def _in_words(measured: Measured, interval: tuple[float, float], unit: Unit) -> str:
    word = UNIT_WORDS[unit]
    low, high = (number(end, unit) for end in interval)
    of = f" of {measured.of}" if measured.of else ""
    runs = ", ".join(number(one, unit) for one in measured.runs)
    each = f"median of {runs}; " if runs else ""
    return f"{number(measured.value, unit)}{word}{of} ({each}95 % interval {low} to {high}{word})"


def _compare(
    interval: tuple[float, float], limit: Limit, narrower: str
) -> tuple[CheckOutcome, str]:
    low, high = interval
    most = f"{limit.most:g}{UNIT_WORDS[limit.unit]}"
    if low > limit.most:
        return "fail", f"over the limit of {most}."
    if high <= limit.most:
        return "pass", f"within the limit of {most}."
    return "inconclusive", (
        f"and the limit of {most} lies inside the interval: too close to call. {narrower}"
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
    return [
        one
        for one in session.findings
        if one.trial.state == "confirmed"
        and one.trial.speedup is not None
        and not one.about_results
    ]
