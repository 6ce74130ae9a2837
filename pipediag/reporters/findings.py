"""Findings in the order in which a person should read them."""

from __future__ import annotations

from dataclasses import dataclass, field

from pipediag.reporters import labels
from pipediag.reporters.quantities import interval, speedup
from pipediag.session.model import Finding, Session
from pipediag.session.trace_report import TraceReport

_SEVERITY_ORDER = {"error": 0, "warn": 1, "info": 2}


@dataclass(frozen=True)
class Groups:
    """The findings of a session or of a profile, sorted by what a reader does with them."""

    to_do: list[Finding] = field(default_factory=list)
    to_know: list[Finding] = field(default_factory=list)
    unsettled: list[Finding] = field(default_factory=list)
    fine: list[Finding] = field(default_factory=list)
    not_applicable: list[Finding] = field(default_factory=list)


def group(session: Session | TraceReport) -> Groups:
    """Each group is sorted: most severe first, then by gain; prerequisites before the rest.

    The findings on a profile come in the order of how much of the time each explains.
    """
    groups = Groups()
    key = _urgency if isinstance(session, Session) else _severity
    for finding in sorted(session.findings, key=key):
        match finding.status:
            case "fail":
                groups.to_do.append(finding)
            case "informative":
                groups.to_know.append(finding)
            case "inconclusive" | "error":
                groups.unsettled.append(finding)
            case "pass":
                groups.fine.append(finding)
            case "not-applicable":
                groups.not_applicable.append(finding)
    _prerequisites_first(groups.to_do)
    return groups


def gain(finding: Finding) -> str | None:
    """What the edit buys, and whether anybody has tried it."""
    trial = finding.trial
    if trial.speedup is not None:
        blocks = f" over {trial.blocks} blocks" if trial.blocks else ""
        bounds = f" ({interval(trial.ci95)})" if trial.ci95 else ""
        return f"{speedup(trial.speedup)}{bounds}, {labels.TRIAL[trial.state]}{blocks}"
    predicted = prediction(finding)
    return f"{predicted}, {labels.TRIAL[trial.state]}" if predicted else None


def prediction(finding: Finding) -> str | None:
    """What the edit should buy, where trials are not part of the report."""
    if finding.predicted_speedup is None:
        return None
    return f"{speedup(finding.predicted_speedup)} predicted"


def _severity(finding: Finding) -> int:
    return _SEVERITY_ORDER[finding.severity]


def _urgency(finding: Finding) -> tuple[int, float, str]:
    return (
        _SEVERITY_ORDER[finding.severity],
        -(finding.trial.speedup or finding.predicted_speedup or 0.0),
        finding.rule,
    )


def _prerequisites_first(findings: list[Finding]) -> None:
    """Moves what others wait for before them; a prerequisite that did not fire moves nothing."""
    for finding in list(findings):
        first = next((other for other in findings if other.rule == finding.needs_first), None)
        if first is not None and findings.index(first) > findings.index(finding):
            findings.remove(first)
            findings.insert(findings.index(finding), first)
