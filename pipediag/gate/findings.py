"""The rules' findings as checks, each at its configured severity or its own."""

from __future__ import annotations

from collections.abc import Iterator

from pipediag.gate.config import VERDICT, GateConfig, RuleLevel
from pipediag.gate.result import Check, CheckOutcome, Level, past_limit
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
