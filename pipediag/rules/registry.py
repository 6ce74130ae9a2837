"""The rules in their order, and the functions that run them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from pipediag.facts.order import in_order
from pipediag.facts.pipeline import by_hand
from pipediag.rules import (
    caching,
    devices,
    embeddings,
    epoch_start,
    evaluation,
    input_service,
    maps,
    model_inputs,
    parallel_maps,
    python_input,
    reading,
    script_work,
    shuffling,
    step_overhead,
    tracing,
)
from pipediag.rules.relevance import limited
from pipediag.rules.rule import Profile, Rule
from pipediag.session.devices import DeviceActivity
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.vocabulary import Framework

_Found = tuple[Rule, list[Finding]]

RULES: tuple[Rule, ...] = (
    devices.GPU_UNUSED,
    embeddings.IDS_OUTSIDE_TABLE,
    embeddings.COLLIDING_IDS,
    embeddings.MASKED_TOKEN,
    shuffling.MISPLACED_CACHE,
    python_input.TRACE_ONLY_PYTHON,
    python_input.PYTHON_INPUT,
    python_input.SLOW_CALL,
    python_input.SINGLE_ELEMENTS,
    parallel_maps.PARALLEL_MAP,
    maps.PER_ELEMENT_MAP,
    maps.PYTHON_EACH_ROW,
    reading.SEQUENTIAL_FILES,
    reading.SERIAL_FLAT_MAP,
    reading.COLD_FILES,
    caching.MISSING_CACHE,
    epoch_start.SLOW_SHUFFLE_FILL,
    parallel_maps.DISABLED_DEFAULTS,
    epoch_start.ITERATOR_PAUSES,
    step_overhead.EAGER_EXECUTION,
    tracing.RETRACING,
    step_overhead.PREDICT_IN_STEP,
    step_overhead.BATCH_CALLBACK,
    python_input.SLOW_CALL_IN_STEP,
    step_overhead.OWN_PYTHON,
    step_overhead.HOST_OVERHEAD,
    step_overhead.XLA,
    step_overhead.SMALL_BATCH,
    model_inputs.PREPROCESSING_IN_MODEL,
    model_inputs.PADDING,
    embeddings.FUSED_EMBEDDING_UPDATE,
    embeddings.DENSE_EMBEDDING_UPDATE,
    embeddings.REGULARIZED_TABLE,
    embeddings.TABLE_COPIED_ON_LOOKUP,
    embeddings.FULL_SOFTMAX,
    embeddings.TRAINING_METRICS,
    tracing.GRAPH_CONSTANTS,
    script_work.WORK_BESIDE_TRAINING,
    tracing.REPEATED_COMPILE,
    epoch_start.SLOW_EPOCH_START,
    model_inputs.ONE_HOT_INPUT,
    evaluation.SMALL_PREDICT,
    evaluation.EAGER_EVALUATION,
    evaluation.COSTLY_EVALUATION,
    script_work.SLOW_EPOCH_END,
    script_work.MEMORY_GROWTH,
    script_work.SLOWER_STEPS,
    devices.INPUT_GAP,
    devices.EXPOSED_HOST_COPY,
    devices.LAUNCH_BOUND,
    devices.SYNC_POINT,
    devices.PYTHON_GAP,
    devices.MIXED_PRECISION,
)

BY_ID: dict[str, list[Rule]] = {}
"""The rules by their ids."""
for _rule in (*RULES, input_service.RULE):
    BY_ID.setdefault(_rule.id, []).append(_rule)


def run_rules(session: Session) -> list[Finding]:
    """Return what the rules find, in their order, with one finding for each id that finds nothing.

    A rule that raises gives a finding with status error. While the GPU is missing, advice on speed
    points to it. A rule that yields to another one only informs where that one fails.
    """
    found = [
        (rule, [_completed(session, rule, one) for one in guarded(rule, rule.findings, session)])
        for rule in RULES
    ]
    settled = _with_silent(yielding(found))
    service = guarded(input_service.RULE, input_service.last_resort, session, settled)
    return _after_preconditions([*settled, *service])


def run_device_rules(
    devices: Sequence[DeviceActivity], framework: Framework = "tensorflow"
) -> list[Finding]:
    """Return what the device rules find in a profile without a session, first things first."""
    found = [
        (rule, guarded(rule, rule.check_devices, Profile(devices, framework)))
        for rule in RULES
        if rule.check_devices is not None
    ]
    return in_order(_with_silent(yielding(found)))


def guarded(rule: Rule, check: Callable[..., Iterable[Finding]], *args: object) -> list[Finding]:
    """Return what the check finds, but what passes, or one finding with status error."""
    try:
        return [one for one in check(*args) if one.status != "pass"]
    except Exception as error:  # noqa: BLE001  one broken rule must not cost the report
        name = type(error).__name__
        advice = (
            f"This rule failed with {name}: {error}. The other findings are not affected. Please "
            "report this with the session.json."
        )
        evidence = {"exception": name, "message": str(error)}
        return [rule.finding("error", advice, evidence=evidence)]


def _completed(session: Session, rule: Rule, finding: Finding) -> Finding:
    """Return the finding with its bound, and with how to change what a library's helper makes."""
    finding = limited(session, finding, rule.frees)
    op = session.operation(finding.op_id)
    finding = reading.with_storage(session, finding, op)
    how = by_hand(op) if op is not None and finding.status in ("fail", "informative") else None
    if how is None:
        return finding
    return finding.model_copy(update={"advice": f"{finding.advice} {how}".lstrip()})


def _with_silent(found: Sequence[_Found]) -> list[Finding]:
    """Return the findings, with one for each silent id: that it passes, or does not apply."""
    said = [one for _, each in found for one in each if one.status != "not-applicable"]
    speaking = {one.rule for one in said}
    silent: dict[str, Finding] = {}
    for rule, each in found:
        if rule.id not in speaking:
            if not each:
                silent[rule.id] = rule.finding("pass")
            for one in each:
                silent.setdefault(rule.id, one)
    return [*said, *silent.values()]


def _after_preconditions(findings: list[Finding]) -> list[Finding]:
    failed = (f.rule for f in findings if f.status == "fail" and f.subject == "precondition")
    first = next(failed, None)

    def later(finding: Finding) -> Finding:
        advises = finding.status in ("fail", "informative") and not finding.about_results
        if first is None or not advises or finding.rule == first:
            return finding
        return finding.model_copy(update={"needs_first": first})

    return [later(finding) for finding in findings]


def yields_to(rule: Rule, other: Rule) -> bool:
    """Return True where this rule only informs when the other one fails.

    A rule that sees a class of time and not what takes it yields to each that frees the same class
    and knows that; of two that see the same class only, to the one that is listed first.
    """
    if not rule.sees_class_only or rule is other:
        return False
    if other.sees_class_only:
        return rule.frees == other.frees and RULES.index(other) < RULES.index(rule)
    return not set(rule.frees).isdisjoint(other.frees)


def yielding(found: Sequence[_Found]) -> list[_Found]:
    """Return the findings; those only inform whose rule yields to one that failed.

    They keep their edit, as only a trial tells which of two rules is right on a cause.
    """
    failed = [(rule, one) for rule, each in found for one in each if one.status == "fail"]

    def yielded(rule: Rule, finding: Finding) -> Finding:
        # What frees the steps does not free what comes before them.
        early = finding.part == "epoch_start"
        known = (one for other, one in failed if yields_to(rule, other))
        first = next((one.rule for one in known if not early or one.part == finding.part), None)
        if finding.status != "fail" or first is None:
            return finding
        informs = {"status": "informative", "severity": "info", "needs_first": first}
        return finding.model_copy(update={**informs, "speedup_at_most": None, "for_run": None})

    return [(rule, [yielded(rule, one) for one in each]) for rule, each in found]


def reinstated(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings after trials; those fail again that had yielded to a refuted one."""
    standing = {one.rule for one in findings if one.status == "fail" and not one.dropped}

    def again(finding: Finding) -> Finding:
        rules, firsts = BY_ID.get(finding.rule), BY_ID.get(finding.needs_first or "")
        yielded = finding.status == "informative" and finding.needs_first not in standing
        if not rules or not firsts or firsts[0].subject == "precondition" or not yielded:
            return finding
        update = {"status": "fail", "severity": rules[0].severity, "needs_first": None}
        return finding.model_copy(update=update)

    return [again(finding) for finding in findings]
