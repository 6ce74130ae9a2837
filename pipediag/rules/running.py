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
    """Return the findings; those that only inform whose rule yields to one that failed.

    A rule that sees a class of time and not what takes it yields to each that frees the same class
    and knows that; of two that see the same class only, to the one that is listed first.

    They keep their advice and their edit, which is tried as well: only a trial tells which of two
    rules is right on a cause.

    Args:
        metas: the description of each finding's rule, by the rule's id.
    """
    failed = [finding for finding in findings if finding.status == "fail"]
    return [_yielded(finding, failed, metas) for finding in findings]


def reinstated(findings: Sequence[Finding], metas: Mapping[str, Meta]) -> list[Finding]:
    """Return the findings after trials; those fail again that had yielded to a refuted one."""
    standing = {one.rule for one in findings if one.status == "fail" and not one.dropped}
    return [
        finding.model_copy(
            update={
                "status": "fail",
                "severity": metas[finding.rule].severity,
                "needs_first": None,
            }
        )
        if _has_yielded(finding, metas) and finding.needs_first not in standing
        else finding
        for finding in findings
    ]


def yields_to(meta: Meta, other: Meta, metas: Mapping[str, Meta]) -> bool:
    """Return True where this rule only informs when the other one fails."""
    if not meta.sees_class_only or meta.id == other.id:
        return False
    if other.sees_class_only:
        listed = list(metas)
        return meta.frees == other.frees and listed.index(other.id) < listed.index(meta.id)
    return not set(meta.frees).isdisjoint(other.frees)


def _same_time(finding: Finding, other: Finding) -> bool:
    """Return True unless what frees the steps would have to free what comes before them."""
    return finding.part != "epoch_start" or other.part == "epoch_start"


def _has_yielded(finding: Finding, metas: Mapping[str, Meta]) -> bool:
    meta, other = metas.get(finding.rule), metas.get(finding.needs_first or "")
    if meta is None or other is None or finding.status != "informative":
        return False
    return yields_to(meta, other, metas)


def _yielded(finding: Finding, failed: Sequence[Finding], metas: Mapping[str, Meta]) -> Finding:
    """Return the finding, only informing where a failed one comes before it."""
    meta = metas[finding.rule]
    first = (
        one.rule
        for one in failed
        if yields_to(meta, metas[one.rule], metas) and _same_time(finding, one)
    )
    other = next(first, None)
    if finding.status != "fail" or other is None:
        return finding
    return finding.model_copy(
        update={
            "status": "informative",
            "severity": "info",
            "needs_first": other,
            "speedup_at_most": None,
            "for_run": None,
        }
    )


def _failed_rule(meta: Meta, error: Exception) -> Finding:
    return meta.finding(
        "error",
        f"This rule stopped with {type(error).__name__}: {error}. The other findings stand; please "
        "report it with the session.json.",
        evidence={"exception": type(error).__name__, "message": str(error)},
    )
