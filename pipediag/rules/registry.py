"""The explicit list of rules, and the one function that runs them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from pipediag.rules import (
    batch_callback,
    debug_mode,
    dense_embedding_update,
    device_straggler,
    disabled_defaults,
    eager_execution,
    exposed_host_copy,
    gpu_unused,
    host_overhead,
    input_gap,
    late_filter,
    launch_bound,
    misplaced_cache,
    missing_cache,
    missing_prefetch,
    mixed_precision,
    nested_map,
    ordered_results,
    padding,
    per_element_map,
    python_gap,
    python_map_lock,
    python_source_lock,
    retracing,
    row_generator,
    sequential_files,
    serial_stateful_map,
    single_call_map,
    slow_shuffle_fill,
    small_batch,
    small_kernels,
    small_shuffle,
    sync_point,
    trace_only_python,
    unbatch_batch,
    waiting_map_pool,
)
from pipediag.rules.prediction import forecasted
from pipediag.rules.rule import DeviceRule, Framework, Meta, Rule
from pipediag.rules.sections import lacking
from pipediag.session.devices import DeviceActivity
from pipediag.session.model import Finding, Session

DEVICE_RULES: tuple[DeviceRule, ...] = (
    input_gap,
    exposed_host_copy,
    small_kernels,
    launch_bound,
    sync_point,
    python_gap,
    device_straggler,
    mixed_precision,
)
"""Those that a profile without a session can answer too."""

RULES: tuple[Rule, ...] = (
    gpu_unused,
    misplaced_cache,
    small_shuffle,
    trace_only_python,
    python_source_lock,
    python_map_lock,
    serial_stateful_map,
    single_call_map,
    waiting_map_pool,
    nested_map,
    per_element_map,
    unbatch_batch,
    late_filter,
    row_generator,
    sequential_files,
    ordered_results,
    missing_cache,
    slow_shuffle_fill,
    missing_prefetch,
    disabled_defaults,
    debug_mode,
    eager_execution,
    retracing,
    batch_callback,
    host_overhead,
    small_batch,
    padding,
    dense_embedding_update,
    *DEVICE_RULES,
)

_STATUS_ORDER = ("fail", "informative", "error", "inconclusive", "pass", "not-applicable")
_SUBJECT_ORDER = ("precondition", "correctness", "speed", "quality")


def run_rules(session: Session) -> list[Finding]:
    """Every rule's findings, most urgent first; a rule that raises is a finding with status error.

    Order: failed before the rest; among the failed a missing GPU, then what makes results wrong,
    then speed by predicted gain, then quality. While the GPU is missing, other advice points to it.
    A rule that yields to another one only informs where that one fails.
    """
    findings = [
        found
        for rule in RULES
        for found in _guarded(rule.META, partial(_findings_of, rule, session))
    ]
    return _in_order(_after_preconditions(_yielding(findings)))


def run_device_rules(
    devices: Sequence[DeviceActivity], framework: Framework = "tensorflow"
) -> list[Finding]:
    """What the device rules say of a profile without a session, guarded alike.

    Order: by status, then by the part of the span that each explains, then by predicted gain.
    """
    findings = [
        found
        for rule in DEVICE_RULES
        for found in _guarded(rule.META, partial(rule.check_devices, devices, framework))
    ]
    return sorted(_yielding(findings), key=_device_urgency)


def _guarded(meta: Meta, check: Callable[[], list[Finding]]) -> list[Finding]:
    try:
        return check()
    except Exception as error:  # noqa: BLE001  one broken rule must not cost the report
        return [_failed_rule(meta, error)]


def _findings_of(rule: Rule, session: Session) -> list[Finding]:
    lack = lacking(rule.META, session)
    if lack is not None:
        return [lack]
    return [forecasted(session, finding) for finding in rule.check(session)]


def _failed_rule(meta: Meta, error: Exception) -> Finding:
    return meta.finding(
        "error",
        f"This rule stopped with {type(error).__name__}: {error}. The other findings stand; please "
        "report it with the session.json.",
        evidence={"exception": type(error).__name__, "message": str(error)},
    )


def _yielding(findings: list[Finding]) -> list[Finding]:
    titles: dict[str, str] = {}
    for finding in findings:
        if finding.status == "fail":
            titles.setdefault(finding.rule, finding.title)
    return [_yielded(finding, titles) for finding in findings]


def _yielded(finding: Finding, failed: Mapping[str, str]) -> Finding:
    """The finding, only informing where one of the failed (titles by rule) comes before it."""
    meta = _meta(finding)
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
    )
    return informed.model_copy(update={"needs_first": other})


def _after_preconditions(findings: list[Finding]) -> list[Finding]:
    first = next(
        (f.rule for f in findings if f.status == "fail" and _subject(f) == "precondition"), None
    )
    if first is None:
        return findings
    return [
        finding.model_copy(update={"needs_first": first})
        if finding.status in ("fail", "informative") and finding.rule != first
        else finding
        for finding in findings
    ]


def _in_order(findings: list[Finding]) -> list[Finding]:
    return sorted(findings, key=_urgency)


def _urgency(finding: Finding) -> tuple[int, int, float]:
    return (
        _STATUS_ORDER.index(finding.status),
        _SUBJECT_ORDER.index(_subject(finding)),
        -(finding.predicted_speedup or 1.0),
    )


def _device_urgency(finding: Finding) -> tuple[int, float, float]:
    share = finding.evidence.get(_meta(finding).share or "")
    return (
        _STATUS_ORDER.index(finding.status),
        -share if isinstance(share, float | int) else 0.0,
        -(finding.predicted_speedup or 1.0),
    )


def _subject(finding: Finding) -> str:
    return _meta(finding).subject


def _meta(finding: Finding) -> Meta:
    return next(rule.META for rule in RULES if rule.META.id == finding.rule)
