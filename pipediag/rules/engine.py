"""Running rules: what one lacks, and which of two that found something goes first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pipediag.facts.devices import NO_DEVICE
from pipediag.rules.rule import Meta, Section
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.vocabulary import FindingStatus


def guarded(meta: Meta, check: Callable[[], list[Finding]]) -> list[Finding]:
    """What the check finds, or one finding with status error."""
    try:
        return check()
    except Exception as error:  # noqa: BLE001  one broken rule must not cost the report
        return [_failed_rule(meta, error)]


def yielding(found: Sequence[tuple[Meta, Finding]]) -> list[Finding]:
    """Return the findings; those that only inform whose rule yields to one that failed.

    A rule that sees a class of time and not what takes it yields to each that frees the same class
    and knows that; of two that see the same class only, to the one that is listed first.

    They keep their advice and their edit, which is tried as well: only a trial tells which of two
    rules is right on a cause.

    Args:
        found: each finding with what it is of, in the order of the rules.
    """
    listed = list(dict.fromkeys(meta for meta, _ in found))
    failed = [(meta, finding) for meta, finding in found if finding.status == "fail"]
    return [_yielded(meta, finding, failed, listed) for meta, finding in found]


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


def yields_to(meta: Meta, other: Meta, listed: Sequence[Meta]) -> bool:
    """Return True where this rule only informs when the other one fails."""
    if not meta.sees_class_only or meta is other:
        return False
    if other.sees_class_only:
        return meta.frees == other.frees and listed.index(other) < listed.index(meta)
    return not set(meta.frees).isdisjoint(other.frees)


def _same_time(finding: Finding, other: Finding) -> bool:
    """Return True unless what frees the steps would have to free what comes before them."""
    return finding.part != "epoch_start" or other.part == "epoch_start"


def _has_yielded(finding: Finding, metas: Mapping[str, Meta]) -> bool:
    first = metas.get(finding.needs_first or "")
    known = first is not None and first.subject != "precondition" and finding.rule in metas
    return known and finding.status == "informative"


def _yielded(
    meta: Meta, finding: Finding, failed: Sequence[tuple[Meta, Finding]], listed: Sequence[Meta]
) -> Finding:
    """Return the finding, only informing where a failed one comes before it."""
    first = (
        one.rule
        for other, one in failed
        if yields_to(meta, other, listed) and _same_time(finding, one)
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


_BREAKDOWN_SAYS_IT = (
    "Without an accelerator the step's breakdown says what the device's idle time would."
)

Lack = tuple[FindingStatus, str]


def lacking(meta: Meta, session: Session) -> Finding | None:
    """A not-applicable or inconclusive finding for the first section that is missing, or None."""
    for section in meta.needs:
        lack = _lack_of(section, session)
        if lack is not None:
            status, reason = lack
            return meta.finding(status, reason)
    return None


def _lack_of(section: Section, session: Session) -> Lack | None:
    if section in _LACKS:
        return _LACKS[section](session)
    if getattr(session, section) is not None:
        return None
    reason = getattr(session, f"{section}_missing")
    return "inconclusive", reason or f"The session has no `{section}`, and no reason for it."


def _loop(session: Session) -> Lack | None:
    if session.diagnosed_loop() is not None:
        return None
    return "not-applicable", "No training loop was seen."


def _keras(session: Session) -> Lack | None:
    loop = session.diagnosed_loop()
    if loop is None:
        return _loop(session)
    if loop.keras is not None:
        return None
    return "not-applicable", "The training loop is not a Keras fit."


def _run(session: Session) -> Lack | None:
    if session.run is not None:
        return None
    if session.run_missing:
        return "inconclusive", session.run_missing
    return "not-applicable", "The session has no ledger of the run."


def _pipeline(session: Session) -> Lack | None:
    loop = session.diagnosed_loop()
    if loop is not None and loop.from_python and not (session.pipeline and session.pipeline.ops):
        return "not-applicable", "Python hands each step its batch: there is no tf.data pipeline."
    if session.pipeline is None:
        return "inconclusive", session.pipeline_missing or "The input pipeline was not recorded."
    if session.pipeline.ops:
        return None
    if session.pipeline.missing:
        return "inconclusive", session.pipeline.missing
    return "not-applicable", "The training loop reads no tf.data pipeline."


def _devices(session: Session) -> Lack | None:
    if any(device.kind.lower() != "cpu" for device in session.devices):
        return None
    if session.devices:
        return "not-applicable", _BREAKDOWN_SAYS_IT
    return _loop(session) or ("inconclusive", session.breakdown_missing or NO_DEVICE)


_LACKS: dict[Section, Callable[[Session], Lack | None]] = {
    "loop": _loop,
    "keras": _keras,
    "run": _run,
    "pipeline": _pipeline,
    "devices": _devices,
}
"""What is no section with a reason beside it, or may be there and empty."""
