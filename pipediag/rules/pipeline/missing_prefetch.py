"""A pipeline without prefetch, in the few cases where TensorFlow does not inject one."""

from __future__ import annotations

from pipediag.facts.limits import INPUT_WAIT
from pipediag.facts.pipeline import (
    call_name,
    last_operation,
    operations,
    place_name,
    prefetch_switched_off,
)
from pipediag.rules.bounds import overlapped
from pipediag.rules.relevance import weigh_input
from pipediag.rules.rule import Meta
from pipediag.session.edits import AUTOTUNE, Edit, Insert
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.tensorflow_names import works_ahead

META = Meta(
    id="missing-prefetch",
    name="Missing prefetch",
    title_failed="Nothing prefetches, and TensorFlow was told not to",
    title_passed="Batches are made ahead of the step",
    looks_at="The last operation of the pipeline, prefetch operations that TensorFlow added by "
    "itself, and the options that switch this off.",
    why="TensorFlow appends a prefetch to a pipeline that ends with a synchronous operation, and "
    "needs none behind a parallel map or a fused map and batch. Adding one by hand then changed "
    "nothing (1.00 times over four rounds). It is missing only where the defaults are switched "
    "off.",
    edit="`.prefetch(tf.data.AUTOTUNE)` at the end, or the defaults back on.",
    cost="A few more batches in memory.",
    bound="Input and consumer no longer take turns.",
    needs=("loop", "pipeline", "steps", "breakdown"),
    thresholds=(INPUT_WAIT,),
    severity="warn",
    effect_on_results="same results",
    frees=("input_wait",),
    tried_when_informing=True,
)


def check(session: Session) -> list[Finding]:
    """One finding on the end of the pipeline."""
    path = [op for op in operations(session) if op.inside_function_of is None]
    written = [op for op in path if op.kind != "with_options"]
    if not written:
        return [META.finding("not-applicable", "The framework built the whole pipeline.")]
    last = written[-1]
    ahead = _made_ahead(session, last)
    if ahead is not None:
        return [META.finding("pass", ahead, op=last)]
    switch = prefetch_switched_off(session)
    if switch is None:
        advice = (
            "TensorFlow's defaults are on, and these append a prefetch: adding one gains nothing."
        )
        return [META.finding("pass", advice, op=last)]
    weight = weigh_input(session)
    advice = (
        f"`{switch}` keeps TensorFlow from prefetching: end with `.prefetch(tf.data.AUTOTUNE)` "
        f"behind {call_name(last)}."
    )
    return [
        META.finding(
            weight.status,
            advice if weight.status == "fail" else weight.sentence,
            op=last,
            evidence={**weight.evidence, "switched_off_by": switch},
            speedup_at_most=overlapped(session),
            edit=_edit(session, last) if weight.worth_trying else None,
            untried="Debug mode drops every prefetch and can't be left within the process.",
        )
    ]


def _edit(session: Session, last: Operation) -> Edit | None:
    if session.environment.tf_data_debug_mode:
        return None
    end = last_operation(session) or last
    return Edit(
        id=f"{META.id}:{last.id}",
        label=f"prefetch(AUTOTUNE) behind the {place_name(last)}",
        changes=(Insert(end.id, "prefetch", {"buffer_size": AUTOTUNE}),),
    )


def _made_ahead(session: Session, last: Operation) -> str | None:
    """Why batches are made ahead of the step, as a sentence, or None where nothing does that."""
    ops = session.pipeline.ops if session.pipeline else []
    if last.kind == "prefetch":
        return "The pipeline ends with a prefetch of its own."
    if any(op.inserted_by_tensorflow and "prefetch" in op.kind.lower() for op in ops):
        return "TensorFlow has injected a prefetch at the end: adding one gains nothing."
    running = session.operation(last.fused_into) or last
    name = running.iterator_name or ""
    if works_ahead(name):
        return (
            f"The last operation runs as {name}, which works ahead by itself: a prefetch behind it "
            "gains nothing."
        )
    return None
