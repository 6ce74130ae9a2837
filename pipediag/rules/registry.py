"""The rules in their order, and the functions that run them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from pipediag.facts.order import in_order
from pipediag.facts.pipeline import by_hand
from pipediag.rules import (
    cache_places,
    caching,
    defaults,
    device_idle,
    embedding_ids,
    embeddings,
    epoch_start,
    evaluation,
    generators,
    gpu,
    maps,
    model_inputs,
    python_in_step,
    python_input,
    reading,
    script_work,
    shuffling,
    softmax,
    step_overhead,
    tracing,
)
from pipediag.rules.bounds import limited
from pipediag.rules.rule import DeviceCheck, Meta, Rule
from pipediag.rules.search import SEARCH, search
from pipediag.session.devices import DeviceActivity
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.vocabulary import Framework


def _on_devices(meta: Meta, check: DeviceCheck) -> Rule:
    return Rule(meta, lambda session: check(session.devices, "tensorflow", session), check)


DEVICE_RULES: tuple[Rule, ...] = (
    _on_devices(device_idle.INPUT_GAP, device_idle.check_input_gap),
    _on_devices(gpu.EXPOSED_HOST_COPY, gpu.check_exposed_host_copy),
    _on_devices(device_idle.LAUNCH_BOUND, device_idle.check_launch_bound),
    _on_devices(device_idle.SYNC_POINT, device_idle.check_sync_point),
    _on_devices(device_idle.PYTHON_GAP, device_idle.check_python_gap),
    _on_devices(gpu.DEVICE_STRAGGLER, gpu.check_device_straggler),
    _on_devices(gpu.MIXED_PRECISION, gpu.check_mixed_precision),
)
"""The rules that need no more than a profile."""

RULES: tuple[Rule, ...] = (
    Rule(gpu.GPU_UNUSED, gpu.check_gpu_unused),
    Rule(embedding_ids.IDS_OUTSIDE_TABLE, embedding_ids.check_ids_outside_table),
    Rule(embedding_ids.COLLIDING_IDS, embedding_ids.check_colliding_ids),
    Rule(embedding_ids.MASKED_TOKEN, embedding_ids.check_masked_token),
    Rule(cache_places.MISPLACED_CACHE, cache_places.check_misplaced_cache),
    Rule(shuffling.SMALL_SHUFFLE, shuffling.check_small_shuffle),
    Rule(python_input.TRACE_ONLY_PYTHON, python_input.check_trace_only_python),
    Rule(python_input.PYTHON_INPUT, python_input.check_python_input),
    Rule(generators.SLOW_CALL, generators.check_slow_call),
    Rule(generators.SINGLE_ELEMENTS, generators.check_single_elements),
    Rule(maps.PARALLEL_MAP, maps.check_parallel_map),
    Rule(maps.PER_ELEMENT_MAP, maps.check_per_element_map),
    Rule(reading.SEQUENTIAL_FILES, reading.check_sequential_files),
    Rule(reading.SERIAL_FLAT_MAP, reading.check_serial_flat_map),
    Rule(caching.MISSING_CACHE, caching.check_missing_cache),
    Rule(shuffling.SLOW_SHUFFLE_FILL, shuffling.check_slow_shuffle_fill),
    Rule(defaults.MISSING_PREFETCH, defaults.check_missing_prefetch),
    Rule(defaults.DISABLED_DEFAULTS, defaults.check_disabled_defaults),
    Rule(defaults.DEBUG_MODE, defaults.check_debug_mode),
    Rule(step_overhead.EAGER_EXECUTION, step_overhead.check_eager_execution),
    Rule(tracing.RETRACING, tracing.check_retracing),
    Rule(python_in_step.PREDICT_IN_STEP, python_in_step.check_predict_in_step),
    Rule(python_in_step.BATCH_CALLBACK, python_in_step.check_batch_callback),
    Rule(python_in_step.OWN_PYTHON, python_in_step.check_own_python),
    Rule(step_overhead.HOST_OVERHEAD, step_overhead.check_host_overhead),
    Rule(step_overhead.SMALL_BATCH, step_overhead.check_small_batch),
    Rule(model_inputs.PREPROCESSING_IN_MODEL, model_inputs.check_preprocessing_in_model),
    Rule(model_inputs.PADDING, model_inputs.check_padding),
    Rule(embeddings.DENSE_EMBEDDING_UPDATE, embeddings.check_dense_embedding_update),
    Rule(embeddings.REGULARIZED_TABLE, embeddings.check_regularized_table),
    Rule(embeddings.TABLE_COPIED_ON_LOOKUP, embeddings.check_table_copied_on_lookup),
    Rule(softmax.FULL_SOFTMAX, softmax.check_full_softmax),
    Rule(tracing.GRAPH_CONSTANTS, tracing.check_graph_constants),
    Rule(script_work.SLOW_START, script_work.check_slow_start),
    Rule(tracing.REPEATED_COMPILE, tracing.check_repeated_compile),
    Rule(epoch_start.SLOW_EPOCH_START, epoch_start.check_slow_epoch_start),
    Rule(evaluation.SMALL_PREDICT, evaluation.check_small_predict),
    Rule(evaluation.COSTLY_EVALUATION, evaluation.check_costly_evaluation),
    Rule(script_work.SLOW_EPOCH_END, script_work.check_slow_epoch_end),
    Rule(script_work.WORK_AFTER_TRAINING, script_work.check_work_after_training),
    Rule(script_work.WORK_BETWEEN_TRAININGS, script_work.check_work_between_trainings),
    *DEVICE_RULES,
)

METAS: dict[str, Meta] = {SEARCH.id: SEARCH}
"""The description of each rule by its id; the first one where a rule covers several causes."""
for _rule in reversed(RULES):
    METAS[_rule.meta.id] = _rule.meta
METAS = dict(reversed(METAS.items()))

CAUSES: dict[str, list[Meta]] = {
    name: [rule.meta for rule in RULES if rule.meta.id == name] or [meta]
    for name, meta in METAS.items()
}
"""The causes that a rule covers, by its id."""


def run_rules(session: Session) -> list[Finding]:
    """Return every rule's findings, in the rules' order.

    A rule that raises gives a finding with status error. While the GPU is missing, advice on speed
    points to it. A rule that yields to another one only informs where that one fails. Behind them
    stands what a search has to try where they have nothing.
    """
    found = [
        (rule.meta, _completed(session, one, rule.meta))
        for rule in RULES
        for one in guarded(rule.meta, partial(rule.findings, session))
    ]
    settled = _said_once(yielding(found))
    beyond = guarded(SEARCH, partial(search, session, settled))
    return _after_preconditions([*settled, *beyond])


def run_device_rules(
    devices: Sequence[DeviceActivity], framework: Framework = "tensorflow"
) -> list[Finding]:
    """Return what the device rules find in a profile without a session, first things first."""
    found = [
        (rule.meta, one)
        for rule in DEVICE_RULES
        if rule.check_devices is not None
        for one in guarded(rule.meta, partial(rule.check_devices, devices, framework, None))
    ]
    return in_order(_said_once(yielding(found)))


def guarded(meta: Meta, check: Callable[[], list[Finding]]) -> list[Finding]:
    """Return what the check finds, or one finding with status error."""
    try:
        return check()
    except Exception as error:  # noqa: BLE001  one broken rule must not cost the report
        name = type(error).__name__
        advice = (
            f"This rule stopped with {name}: {error}. The other findings stand; please report it "
            "with the session.json."
        )
        evidence = {"exception": name, "message": str(error)}
        return [meta.finding("error", advice, evidence=evidence)]


def _completed(session: Session, finding: Finding, meta: Meta) -> Finding:
    """Return the finding with its bound, and with how to change what a library's helper makes."""
    finding = limited(session, finding, meta.frees)
    op = session.operation(finding.op_id)
    how = by_hand(op) if op is not None and finding.status in ("fail", "informative") else None
    if how is None:
        return finding
    return finding.model_copy(update={"advice": f"{finding.advice} {how}".lstrip()})


def _said_once(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings, with one pass alone where all causes of a rule pass."""
    listed = list(findings)
    silent = ("pass", "not-applicable")
    speaking = {one.rule for one in listed if one.status not in silent}
    first = {
        one.rule: one
        for status in ("not-applicable", "pass")
        for one in reversed(listed)
        if one.status == status
    }
    return [
        one
        for one in listed
        if one.status not in silent
        or len(CAUSES[one.rule]) == 1
        or (one.rule not in speaking and one is first[one.rule])
    ]


def _after_preconditions(findings: list[Finding]) -> list[Finding]:
    """Return the findings; advice on speed waits for the machine to be put right."""
    failed = (f.rule for f in findings if f.status == "fail" and f.subject == "precondition")
    first = next(failed, None)
    if first is None:
        return findings
    return [
        finding.model_copy(update={"needs_first": first})
        if finding.status in ("fail", "informative")
        and finding.rule != first
        and not finding.about_results
        else finding
        for finding in findings
    ]


def yields_to(meta: Meta, other: Meta, listed: Sequence[Meta]) -> bool:
    """Return True where this rule only informs when the other one fails.

    A rule that sees a class of time and not what takes it yields to each that frees the same class
    and knows that; of two that see the same class only, to the one that is listed first.
    """
    if not meta.sees_class_only or meta is other:
        return False
    if other.sees_class_only:
        return meta.frees == other.frees and listed.index(other) < listed.index(meta)
    return not set(meta.frees).isdisjoint(other.frees)


def yielding(found: Sequence[tuple[Meta, Finding]]) -> list[Finding]:
    """Return the findings; those only inform whose rule yields to one that failed.

    They keep their advice and their edit, which is tried as well: only a trial tells which of two
    rules is right on a cause.

    Args:
        found: each finding with its rule, in the order of the rules.
    """
    listed = list(dict.fromkeys(meta for meta, _ in found))
    failed = [(meta, finding) for meta, finding in found if finding.status == "fail"]

    def yielded(meta: Meta, finding: Finding) -> Finding:
        # What frees the steps does not free what comes before them.
        early = finding.part == "epoch_start"
        known = (
            one.rule
            for other, one in failed
            if yields_to(meta, other, listed) and (not early or one.part == "epoch_start")
        )
        first = next(known, None)
        if finding.status != "fail" or first is None:
            return finding
        return finding.model_copy(
            update={
                "status": "informative",
                "severity": "info",
                "needs_first": first,
                "speedup_at_most": None,
                "for_run": None,
            }
        )

    return [yielded(meta, finding) for meta, finding in found]


def reinstated(findings: Sequence[Finding], metas: Mapping[str, Meta]) -> list[Finding]:
    """Return the findings after trials; those fail again that had yielded to a refuted one."""
    standing = {one.rule for one in findings if one.status == "fail" and not one.dropped}

    def again(finding: Finding) -> Finding:
        first = metas.get(finding.needs_first or "")
        known = first is not None and first.subject != "precondition" and finding.rule in metas
        if not known or finding.status != "informative" or finding.needs_first in standing:
            return finding
        severity = metas[finding.rule].severity
        return finding.model_copy(
            update={"status": "fail", "severity": severity, "needs_first": None}
        )

    return [again(finding) for finding in findings]
