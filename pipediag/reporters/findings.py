"""Findings in the order in which a person should read them."""

from __future__ import annotations

from dataclasses import dataclass, field

from pipediag.reporters import trials
from pipediag.reporters.quantities import speedup
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
    """Each group is sorted: confirmed by a trial first, refuted last, in between the most severe
    first, then by gain; prerequisites before what waits for them.

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


def prediction(finding: Finding) -> str | None:
    """What the edit should buy, where trials are not part of the report."""
    if finding.predicted_speedup is None:
        return None
    return f"{speedup(finding.predicted_speedup)} predicted"


def _severity(finding: Finding) -> int:
    return _SEVERITY_ORDER[finding.severity]


def _urgency(finding: Finding) -> tuple[int, int, float, str]:
    return (
        trials.rank(finding),
        _SEVERITY_ORDER[finding.severity],
        -(finding.trial.speedup or finding.predicted_speedup or 0.0),
        finding.rule,
    )


def _prerequisites_first(findings: list[Finding]) -> None:
    """Moves what others wait for before them; a prerequisite that did not fire moves nothing.

    Nor does one for a confirmed edit: a trial has shown that it does without.
    """
    for finding in list(findings):
        if finding.trial.state == "confirmed":
            continue
        first = next((other for other in findings if other.rule == finding.needs_first), None)
        if first is not None and findings.index(first) > findings.index(finding):
            findings.remove(first)
            findings.insert(findings.index(finding), first)
