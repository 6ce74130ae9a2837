"""The rules in their order, and the functions that run them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from pipediag.facts.order import in_order
from pipediag.facts.pipeline import by_hand
from pipediag.rules import (
    batched_calls,
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
    model_inputs,
    parallel_calls,
    predictions,
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
from pipediag.rules.engine import guarded, lacking, yielding
from pipediag.rules.rule import Meta, Rule
from pipediag.rules.search import SEARCH, search
from pipediag.session.devices import DeviceActivity
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.vocabulary import Framework

DEVICE_RULES: tuple[Rule, ...] = (
    Rule(device_idle.INPUT_GAP, device_idle.check_input_gap, device_idle.devices_input_gap),
    Rule(gpu.EXPOSED_HOST_COPY, gpu.check_exposed_host_copy, gpu.devices_exposed_host_copy),
    Rule(
        device_idle.SMALL_KERNELS,
        device_idle.check_small_kernels,
        device_idle.devices_small_kernels,
    ),
    Rule(
        device_idle.LAUNCH_BOUND, device_idle.check_launch_bound, device_idle.devices_launch_bound
    ),
    Rule(device_idle.SYNC_POINT, device_idle.check_sync_point, device_idle.devices_sync_point),
    Rule(device_idle.PYTHON_GAP, device_idle.check_python_gap, device_idle.devices_python_gap),
    Rule(gpu.DEVICE_STRAGGLER, gpu.check_device_straggler, gpu.devices_device_straggler),
    Rule(gpu.MIXED_PRECISION, gpu.check_mixed_precision, gpu.devices_mixed_precision),
)
"""What a profile without a session can answer too."""

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
    Rule(parallel_calls.PARALLEL_MAP, parallel_calls.check_parallel_map),
    Rule(batched_calls.PER_ELEMENT_MAP, batched_calls.check_per_element_map),
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
    Rule(predictions.SMALL_PREDICT, predictions.check_small_predict),
    Rule(evaluation.COSTLY_EVALUATION, evaluation.check_costly_evaluation),
    Rule(script_work.SLOW_EPOCH_END, script_work.check_slow_epoch_end),
    Rule(script_work.WORK_AFTER_TRAINING, script_work.check_work_after_training),
    Rule(script_work.WORK_BETWEEN_TRAININGS, script_work.check_work_between_trainings),
    *DEVICE_RULES,
)

METAS: dict[str, Meta] = {SEARCH.id: SEARCH}
"""By its id, what is said of each rule; of one that looks at several causes, of the first."""
for _rule in reversed(RULES):
    METAS[_rule.meta.id] = _rule.meta
METAS = dict(reversed(METAS.items()))

CAUSES: dict[str, list[Meta]] = {
    name: [rule.meta for rule in RULES if rule.meta.id == name] or [meta]
    for name, meta in METAS.items()
}
"""By a rule's id, the causes that it looks at."""


def run_rules(session: Session) -> list[Finding]:
    """Return every rule's findings, in the rules' order.

    A rule that raises gives a finding with status error. While the GPU is missing, advice on speed
    points to it. A rule that yields to another one only informs where that one fails. Behind them
    stands what a search has to try where they have nothing.
    """
    found = [
        (rule.meta, one)
        for rule in RULES
        for one in guarded(rule.meta, partial(_findings_of, rule, session))
    ]
    settled = _told_once(yielding(found))
    beyond = guarded(SEARCH, partial(search, session, settled))
    return _after_preconditions([*settled, *beyond])


def run_device_rules(
    devices: Sequence[DeviceActivity], framework: Framework = "tensorflow"
) -> list[Finding]:
    """Return what the device rules say of a profile without a session, first things first."""
    found = [
        (rule.meta, one)
        for rule in DEVICE_RULES
        if rule.check_devices is not None
        for one in guarded(rule.meta, partial(rule.check_devices, devices, framework))
    ]
    return in_order(_told_once(yielding(found)))


def _told_once(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings; of causes of one rule that say nothing, the first that passed alone."""
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


def _findings_of(rule: Rule, session: Session) -> list[Finding]:
    lack = lacking(rule.meta, session)
    if lack is not None:
        return [lack]
    found = [limited(session, finding, rule.meta.frees) for finding in rule.check(session)]
    return [_of_helpers(session, finding) for finding in found]


def _of_helpers(session: Session, finding: Finding) -> Finding:
    """With how to follow the advice where it is about what a library's helper makes."""
    op = session.operation(finding.op_id)
    how = by_hand(op) if op is not None and finding.status in ("fail", "informative") else None
    if how is None:
        return finding
    return finding.model_copy(update={"advice": f"{finding.advice} {how}".lstrip()})


def _after_preconditions(findings: list[Finding]) -> list[Finding]:
    """Advice that waits for the machine to be put right; results are right or wrong on any."""
    first = next(
        (f.rule for f in findings if f.status == "fail" and f.subject == "precondition"), None
    )
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
