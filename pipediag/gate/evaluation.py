"""Sessions and a configuration in, a result out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pipediag.facts.script import script_failure
from pipediag.gate.config import VERDICT, GateConfig, RuleLevel
from pipediag.gate.confirmed_speedup import confirmed_speedup_checks
from pipediag.gate.idle_limit import idle_limit_checks
from pipediag.gate.limits import Limit, Measured, judged, of_runs
from pipediag.gate.majority import majority
from pipediag.gate.result import Check, CheckOutcome, GateResult, Level, past_limit
from pipediag.gate.run_limits import run_limit_checks
from pipediag.gate.step_limits import step_limit_checks
from pipediag.gate.verdicts import verdict_checks
from pipediag.session.findings import Finding
from pipediag.session.model import Session

_OWN_LEVELS: dict[str, RuleLevel] = {"error": "error", "warn": "warn", "info": "off"}


def finding_checks(session: Session, config: GateConfig) -> list[Check]:
    """One check for each finding that passed, failed or could not be decided.

    A failed one whose advice a trial refuted passes, unless it is about results: these are not
    settled by speed.

    What a rule merely notes, or could not apply to, is no check, unless the configuration asks for
    the rule: then it passes, and says so. One that the configuration asks for and the session has
    no result of is inconclusive.
    """
    return [*_present(session, config), *_absent(session, config)]


def _present(session: Session, config: GateConfig) -> Iterator[Check]:
    for finding in session.findings:
        level = config.rules.get(finding.rule, _OWN_LEVELS[finding.severity])
        outcome = None if level == "off" else _outcome(finding, level, config.fail_on)
        if outcome is None and finding.rule in config.rules:
            outcome = "pass"
        if level != "off" and outcome is not None:
            yield Check(
                name=finding.rule,
                outcome=outcome,
                severity=level,
                sentence=_sentence(finding),
                file=finding.file,
                line=finding.line,
                speedup=_confirmed_speedup(finding),
            )


def _absent(session: Session, config: GateConfig) -> Iterator[Check]:
    present = {finding.rule for finding in session.findings}
    for rule, level in config.rules.items():
        if level != "off" and rule not in present and rule != VERDICT:
            yield Check(
                name=rule,
                outcome="inconclusive",
                severity=level,
                sentence=(
                    f"The session holds no result of the rule {rule} "
                    f"(written by pipediag {session.pipediag_version})."
                ),
            )


def _outcome(finding: Finding, level: Level, fail_on: Level) -> CheckOutcome | None:
    match finding.status:
        case "fail" if finding.dropped:
            # Its advice was followed and bought nothing here, so there is nothing to hold against.
            return "pass"
        case "fail":
            return past_limit(level, fail_on)
        case "pass":
            return "pass"
        case "inconclusive" | "error":
            return "inconclusive"
        case "informative" | "not-applicable":
            return None


def _confirmed_speedup(finding: Finding) -> float | None:
    """Of all of the run where that is known, else of the part that the advice is about."""
    if finding.trial.state != "confirmed" or finding.about_results:
        return None
    gain = finding.for_run
    return finding.trial.speedup if gain is None else gain.speedup


def _sentence(finding: Finding) -> str:
    title = finding.title.rstrip(".")
    if finding.status == "pass" or not finding.advice:
        return f"{title}."
    if finding.status == "informative":
        return f"Noted, and not held against it: {title}. {finding.advice}"
    return f"{title}. {finding.advice}{_trial(finding)}"


def _trial(finding: Finding) -> str:
    """What a trial of the advice found, where one was made."""
    trial = finding.trial
    if trial.speedup is None or trial.ci95 is None:
        return ""
    low, high = trial.ci95
    if finding.about_results:
        return f" Done so, it runs {trial.speedup:.2f}x as fast [{low:.2f}, {high:.2f}]."
    if trial.basis == "pipeline":
        return f" A trial of its pipeline alone: {trial.state}, estimated {trial.speedup:.2f}x."
    return f" A trial of it: {trial.state}, {trial.speedup:.2f}x [{low:.2f}, {high:.2f}]."


_NARROWER = "More steps (--steps) and more runs make the interval narrower."


def time_limit_checks(runs: Sequence[Session], config: GateConfig) -> list[Check]:
    """One check where the configuration limits the step on the machine of a fingerprint."""
    limits = config.on_machine
    if limits is None:
        return []
    limit = Limit("on-machine.max-step-ms", "Step", limits.max_step_ms, "ms")
    found = [_step(session, limits.fingerprint) for session in runs]
    place = (runs[0].verdict.file, runs[0].verdict.line)
    return [judged(limit, of_runs(found), place, narrower=_NARROWER)]


def _step(session: Session, fingerprint: str) -> Measured | str:
    """The median, whose interval the session has."""
    if session.environment.fingerprint != fingerprint:
        return (
            f"the session is of the machine {session.environment.fingerprint}, and the limit is "
            f"for {fingerprint}."
        )
    if session.steps is None:
        return session.steps_missing or "no step was measured."
    return Measured(session.steps.median_ms, session.steps.ci95_ms)


_LIMITS = (
    step_limit_checks,
    idle_limit_checks,
    run_limit_checks,
    confirmed_speedup_checks,
    time_limit_checks,
)


def evaluate(session: Session, config: GateConfig, label: str | None = None) -> GateResult:
    """Put every limit and rule to the session; `label` names it, else the script as typed does."""
    return evaluate_runs([session], config, label)


def evaluate_runs(
    runs: Sequence[Session], config: GateConfig, label: str | None = None
) -> GateResult:
    """Put every limit and rule to several runs of one script, which are judged as one.

    A value is the median of the runs, and their spread is in its interval. Of verdict and rules the
    outcome is that of most runs. A configured limit takes the place of a verdict about the same
    share. Runs one of which failed before enough steps were seen are not
    judged at all.
    """
    failure = _failure(runs)
    checks: list[Check] = []
    if failure is None:
        checks += _limit_checks(runs, config)
        checks += verdict_checks(runs, config)
        checks += majority([finding_checks(run, config) for run in runs])
    return _result(runs[0], config, checks, failure, label)


def evaluate_named(session: Session, config: GateConfig) -> GateResult:
    """Put to the session what the configuration names: neither the verdict nor any other rule."""
    failure = _failure([session])
    checks: list[Check] = []
    if failure is None:
        checks += _limit_checks([session], config)
        checks += [one for one in finding_checks(session, config) if one.name in config.rules]
    return _result(session, config, checks, failure)


def _limit_checks(runs: Sequence[Session], config: GateConfig) -> list[Check]:
    return [check for limits in _LIMITS for check in limits(runs, config)]


def _result(
    session: Session,
    config: GateConfig,
    checks: Sequence[Check],
    failure: str | None,
    label: str | None = None,
) -> GateResult:
    return GateResult(
        label=label or session.script.path,
        script=session.script.path,
        checks=tuple(checks),
        fail_on=config.fail_on,
        allow_inconclusive=config.allow_inconclusive,
        script_failure=failure,
    )


def _failure(runs: Sequence[Session]) -> str | None:
    failures = [failure for failure in map(script_failure, runs) if failure is not None]
    if not failures or len(runs) == 1:
        return next(iter(failures), None)
    return f"{len(failures)} of {len(runs)} runs failed. {failures[0]}"
