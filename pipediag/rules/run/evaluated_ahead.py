"""An evaluation's batches made by several calls at once, or beside its steps."""

from __future__ import annotations

from pipediag.facts.graph_ops import calls_python, only_looks_up
from pipediag.facts.machine import cpus
from pipediag.facts.pipeline import call_name, place_name, prefetch_switched_off_in
from pipediag.rules.pipeline.parallel_map import is_serial_and_stateful
from pipediag.rules.run.evaluation_cure import Cure
from pipediag.session.edits import AUTOTUNE, Edit, SetParameters
from pipediag.session.loops import Evaluation, Loop
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation, Pipeline
from pipediag.vocabulary import EffectOnResults

IN_TURN = "What is evaluated on is made one call at a time, and waited for"
NOT_AHEAD = "What is evaluated on is not made ahead, and waited for"
_NOTHING_BESIDE = (
    "A prefetch works beside the steps of an evaluation, and nothing is evaluated for a trial."
)


def serial_maps(pipeline: Pipeline) -> list[Operation]:
    """Maps of the script's that TensorFlow runs one call at a time, as they keep state."""
    written = [op for op in pipeline.ops if op.kind == "map" and not op.made_by_framework]
    return [op for op in written if is_serial_and_stateful(op)]


def calls_at_once(session: Session, loop: Loop, op: Operation, waits: float) -> Cure:
    """The map with parallel calls; at most, all of the wait is its own and its calls divide it."""
    at_once = max(1.0, cpus(session))
    edit = Edit(
        id=f"costly-evaluation:parallel:{op.id}",
        label=f"num_parallel_calls=AUTOTUNE on the {place_name(op)}, for the evaluation",
        changes=(SetParameters(op.id, {"num_parallel_calls": AUTOTUNE}),),
        loop_id=loop.id,
    )
    return Cure(
        title=IN_TURN,
        work=op,
        wait_percent=waits,
        saved_percent=waits * (1.0 - 1.0 / at_once),
        advice=f"Give {call_name(op)} `num_parallel_calls=tf.data.AUTOTUNE`: TensorFlow runs it "
        f"one call at a time, and the evaluation's steps wait for input {waits:.0f} % of their "
        "time.",
        effect=_effect(op),
        edit=edit,
    )


def made_ahead(session: Session, pipeline: Pipeline, seen: Evaluation, waits: float) -> Cure | None:
    """A prefetch, where TensorFlow was kept from appending one."""
    last = end_without_prefetch(pipeline)
    switch = prefetch_switched_off_in(session, pipeline)
    if last is None or switch is None or session.environment.tf_data_debug_mode:
        return None
    rest_ms = seen.consumer_ms or 0.0
    left_ms = max(rest_ms, seen.step_ms - rest_ms)
    return Cure(
        title=NOT_AHEAD,
        work=last,
        wait_percent=waits,
        saved_percent=100.0 * (1.0 - left_ms / seen.step_ms),
        advice=f"End with `.prefetch(tf.data.AUTOTUNE)` behind {call_name(last)}: `{switch}` keeps "
        "TensorFlow from appending one.",
        effect="same results",
        untried=_NOTHING_BESIDE,
        speedup=round(seen.step_ms / left_ms, 3),
    )


def end_without_prefetch(pipeline: Pipeline) -> Operation | None:
    """The last operation that the script wrote, unless that is a prefetch."""
    written = [op for op in pipeline.ops if not op.made_by_framework]
    last = next((op for op in reversed(written) if op.kind != "with_options"), None)
    return None if last is None or last.kind == "prefetch" else last


def _effect(op: Operation) -> EffectOnResults:
    if calls_python(op):
        return "not known"
    alike = op.function is not None and only_looks_up(op.function)
    return "same results" if alike else "same up to order or rounding"
