"""A lookup in the input pipeline that ships vectors where ids would do."""

from __future__ import annotations

from pipediag.facts.limits import INPUT_WAIT, OPERATION_SHARE
from pipediag.facts.pipeline import call_name
from pipediag.rules.pipeline.widened_ids import (
    COPIED,
    SHIPPED,
    judged,
    widened,
)
from pipediag.rules.rule import Meta
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation, Widening

META = Meta(
    id="vectors-in-pipeline",
    name="Vectors in the pipeline",
    title_failed="The input pipeline ships vectors of a table where ids would do",
    title_passed="No large vectors of a table are shipped by the input pipeline",
    looks_at="The graph of each mapped function: whether what it hands out is gathered from a "
    "table that is no part of the element, and bytes of the ids and of the vectors.",
    why="Each id of 4 or 8 bytes becomes a vector of hundreds, which is batched, buffered and "
    "copied to the device, while the model could look it up there.",
    edit="Ids from the pipeline, and a frozen `Embedding` of the same table in the model.",
    cost="The table takes memory on the device.",
    bound="None: the lookup in the model was not measured.",
    needs=("loop", "pipeline", "steps", "breakdown"),
    thresholds=(SHIPPED, INPUT_WAIT, OPERATION_SHARE, COPIED),
    severity="warn",
    effect_on_results="same results",
    frees=("input_wait", "device_copy"),
    untried="It moves a part of the pipeline into your model; pipediag can't do that for you.",
)


def check(session: Session) -> list[Finding]:
    """One finding for each map that hands out such vectors."""
    found = list(widened(session, "lookup"))
    if not found:
        return [META.finding("not-applicable", "No mapped function hands out vectors of a table.")]
    return [judged(META, session, op, part, _advice) for op, part in found]


def _advice(op: Operation, part: Widening, megabytes: float) -> str:
    return (
        "Let the pipeline hand out the ids, and begin the model with an `Embedding` of the same "
        f"table, with `trainable=False`. {call_name(op)} hands out {part.bytes} bytes of vectors "
        f"in each element in place of {part.ids_bytes} bytes of ids, {megabytes:.1f} MB more in a "
        "step."
    )
