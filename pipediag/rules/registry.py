"""The explicit list of rules, and the one function that runs them."""

from __future__ import annotations

from functools import partial

from pipediag.facts.helper_made import by_hand
from pipediag.rules.bounds import limited
from pipediag.rules.device.registry import DEVICE_RULES
from pipediag.rules.embedding import (
    colliding_ids,
    full_softmax,
    graph_constants,
    ids_outside_table,
    masked_token,
    regularized_table,
    table_copied_on_lookup,
)
from pipediag.rules.pipeline import (
    debug_mode,
    disabled_defaults,
    misplaced_cache,
    missing_cache,
    missing_prefetch,
    parallel_map,
    per_element_map,
    python_input,
    sequential_files,
    serial_flat_map,
    slow_shuffle_fill,
    small_shuffle,
    trace_only_python,
)
from pipediag.rules.rule import Meta, Rule
from pipediag.rules.run import (
    costly_evaluation,
    repeated_compile,
    slow_epoch_end,
    slow_epoch_start,
    slow_start,
    work_after_training,
    work_between_trainings,
)
from pipediag.rules.running import guarded, yielding
from pipediag.rules.search import searching as search
from pipediag.rules.sections import lacking
from pipediag.rules.step import (
    batch_callback,
    dense_embedding_update,
    eager_execution,
    gpu_unused,
    host_overhead,
    own_python,
    padding,
    predict_in_step,
    preprocessing_in_model,
    retracing,
    small_batch,
)
from pipediag.session.findings import Finding
from pipediag.session.model import Session

RULES: tuple[Rule, ...] = (
    gpu_unused,
    ids_outside_table,
    colliding_ids,
    masked_token,
    misplaced_cache,
    small_shuffle,
    trace_only_python,
    python_input,
    parallel_map,
    per_element_map,
    sequential_files,
    serial_flat_map,
    missing_cache,
    slow_shuffle_fill,
    missing_prefetch,
    disabled_defaults,
    debug_mode,
    eager_execution,
    retracing,
    predict_in_step,
    batch_callback,
    own_python,
    host_overhead,
    small_batch,
    preprocessing_in_model,
    padding,
    dense_embedding_update,
    regularized_table,
    table_copied_on_lookup,
    full_softmax,
    graph_constants,
    slow_start,
    repeated_compile,
    slow_epoch_start,
    costly_evaluation,
    slow_epoch_end,
    work_after_training,
    work_between_trainings,
    *DEVICE_RULES,
)


METAS: dict[str, Meta] = {meta.id: meta for meta in (*(rule.META for rule in RULES), search.META)}
"""What may speak, by its id."""


def run_rules(session: Session) -> list[Finding]:
    """Every rule's findings, in the rules' order; one that raises is a finding with status error.

    While the GPU is missing, advice on speed points to it. A rule that yields to another one only
    informs where that one fails. Behind them stands what a search has to try where they have
    nothing.
    """
    findings = [
        found
        for rule in RULES
        for found in guarded(rule.META, partial(_findings_of, rule, session))
    ]
    settled = yielding(findings, METAS)
    beyond = guarded(search.META, partial(search.search, session, settled))
    return _after_preconditions([*settled, *beyond])


def _findings_of(rule: Rule, session: Session) -> list[Finding]:
    lack = lacking(rule.META, session)
    if lack is not None:
        return [lack]
    found = [limited(session, finding, rule.META.frees) for finding in rule.check(session)]
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
