"""Running rules: one that raises costs no other, and one that yields steps back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pipediag.rules.rule import Meta
from pipediag.session.findings import Finding


def guarded(meta: Meta, check: Callable[[], list[Finding]]) -> list[Finding]:
    """What the check finds, or one finding with status error."""
    try:
        return check()
    except Exception as error:  # noqa: BLE001  one broken rule must not cost the report
        return [_failed_rule(meta, error)]


def yielding(findings: Sequence[Finding], metas: Mapping[str, Meta]) -> list[Finding]:
    """The findings, those that only inform whose rule yields to one that failed.

    Args:
        metas: the description of each finding's rule, by the rule's id.
    """
    titles: dict[str, str] = {}
    for finding in findings:
        if finding.status == "fail":
            titles.setdefault(finding.rule, finding.title)
    return [_yielded(finding, metas[finding.rule], titles) for finding in findings]


def _yielded(finding: Finding, meta: Meta, failed: Mapping[str, str]) -> Finding:
    """The finding, only informing where one of the failed (titles by rule) comes before it."""
    other = next((rule for rule in meta.yields_to if rule in failed), None)
    if finding.status != "fail" or other is None:
        return finding
    informed = meta.finding(
        "informative",
        f"The same cause as “{failed[other]}”: follow its advice first.",
        op_id=finding.op_id,
        place=(finding.file, finding.line),
        evidence=finding.evidence,
        title=finding.title,
        part=finding.part,
    )
    return informed.model_copy(update={"needs_first": other})


def _failed_rule(meta: Meta, error: Exception) -> Finding:
    return meta.finding(
        "error",
        f"This rule stopped with {type(error).__name__}: {error}. The other findings stand; please "
        "report it with the session.json.",
        evidence={"exception": type(error).__name__, "message": str(error)},
    )
