"""Findings grouped by what a reader does with them, each group in the session's order."""

from __future__ import annotations

from dataclasses import dataclass, field

from pipediag.facts.order import to_act_on
from pipediag.reporters.words.quantities import speedup
from pipediag.session.devices import TraceReport
from pipediag.session.findings import Finding
from pipediag.session.model import Session


@dataclass(frozen=True)
class Groups:
    """The findings of a session or of a profile, by what a reader does with them."""

    to_do: list[Finding] = field(default_factory=list)
    to_know: list[Finding] = field(default_factory=list)
    unsettled: list[Finding] = field(default_factory=list)
    fine: list[Finding] = field(default_factory=list)
    not_applicable: list[Finding] = field(default_factory=list)


def group(session: Session | TraceReport) -> Groups:
    """Each group as the findings stand: what to deal with first was decided with the verdict."""
    groups = Groups()
    for finding in session.findings:
        match finding.status:
            case "fail":
                groups.to_do.append(finding)
            case "informative" if to_act_on(finding):
                groups.to_do.append(finding)
            case "informative":
                groups.to_know.append(finding)
            case "inconclusive" | "error":
                groups.unsettled.append(finding)
            case "pass":
                groups.fine.append(finding)
            case "not-applicable":
                groups.not_applicable.append(finding)
    return groups


def at_most(finding: Finding) -> str | None:
    """What the edit buys at most, where trials are not part of the report."""
    most = finding.speedup_at_most
    return None if most is None else f"at most {speedup(most)}"
