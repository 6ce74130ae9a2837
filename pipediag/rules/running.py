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

    A rule yields to those that it names. One that only sees where the time of the device goes
    yields to each that frees the same class of time and knows what in the script takes it.

    Args:
        metas: the description of each finding's rule, by the rule's id.
    """
    titles: dict[str, str] = {}
    for finding in findings:
        if finding.status == "fail":
            titles.setdefault(finding.rule, finding.title)
    failed = [metas[rule] for rule in titles]
    return [_yielded(finding, metas[finding.rule], failed, titles) for finding in findings]


def yields_to(meta: Meta, other: Meta) -> bool:
    """Return True where this rule only informs when the other one fails."""
    if other.id in meta.yields_to:
        return True
    knows_more = meta.sees_class_only and not other.sees_class_only
    return knows_more and not set(meta.frees).isdisjoint(other.frees)


def _yielded(
    finding: Finding, meta: Meta, failed: Sequence[Meta], titles: Mapping[str, str]
) -> Finding:
    """Return the finding, only informing where a failed rule comes before it.

    Its edit stays: a trial costs seconds, and says whether it was the same cause.
    """
    other = next((one.id for one in failed if yields_to(meta, one)), None)
    if finding.status != "fail" or other is None:
        return finding
    informed = meta.finding(
        "informative",
        f"“{titles[other]}” is about the same time: follow its advice first.",
        op_id=finding.op_id,
        place=(finding.file, finding.line),
        evidence=finding.evidence,
        title=finding.title,
        part=finding.part,
    )
    effect = finding.effect_on_results if finding.edit is not None else None
    return informed.model_copy(
        update={"needs_first": other, "edit": finding.edit, "effect_on_results": effect}
    )


def _failed_rule(meta: Meta, error: Exception) -> Finding:
    return meta.finding(
        "error",
        f"This rule stopped with {type(error).__name__}: {error}. The other findings stand; please "
        "report it with the session.json.",
        evidence={"exception": type(error).__name__, "message": str(error)},
    )
