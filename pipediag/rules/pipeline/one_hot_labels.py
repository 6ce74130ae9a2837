"""Labels made one-hot over many classes, where the class itself would do."""

from __future__ import annotations

from pipediag.facts.amounts import exact_time
from pipediag.facts.embedding_cost import part_ms
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

_LOSS = "categorical_crossentropy"
META = Meta(
    id="one-hot-labels",
    name="One-hot labels",
    title_failed="Labels are made one-hot over many classes",
    title_passed="Labels that are made one-hot are small",
    looks_at="The graph of each mapped function: whether what it hands out is one-hot, and its "
    "bytes; and whether the loss is `categorical_crossentropy`.",
    why="A label becomes a number for each class, which is batched, buffered and copied to the "
    "device. The loss takes the class itself as well. What the softmax over all classes costs "
    "stays as it is: measured, a loss of sparse labels computes no less.",
    edit='The class as an integer, and `loss="sparse_categorical_crossentropy"`.',
    cost="None without label smoothing and without metrics that want one-hot labels.",
    prediction="None: labels of another form were not measured.",
    needs=("loop", "keras", "pipeline", "steps", "breakdown"),
    thresholds=(SHIPPED, INPUT_WAIT, OPERATION_SHARE, COPIED),
    severity="warn",
    effect_on_results="same results",
    frees=("input_wait", "device_copy"),
    untried="It changes the loss with the pipeline; pipediag can't do that for you.",
)


def check(session: Session) -> list[Finding]:
    """One finding for each map that hands out one-hot labels to this loss."""
    loop = session.diagnosed_loop()
    found = list(widened(session, "one-hot", labels_alone=True))
    if not found or loop is None or loop.keras is None or loop.keras.loss != _LOSS:
        return [META.finding("not-applicable", f"No one-hot labels are made for `{_LOSS}`.")]
    missing = "Labels of another form were not measured."
    stays = _stays(session)
    return [
        judged(META, session, op, part, lambda *made: f"{_advice(*made)}{stays}", missing)
        for op, part in found
    ]


def _stays(session: Session) -> str:
    """What the softmax takes, which is no less with sparse labels."""
    ms = part_ms(session, "vocabulary")
    return (
        f" Logits and loss over all classes take {exact_time(ms)} of a step either way."
        if ms
        else ""
    )


def _advice(op: Operation, part: Widening, megabytes: float) -> str:
    return (
        'Leave `one_hot` out and compile with `loss="sparse_categorical_crossentropy"`, and with '
        "sparse metrics; with label smoothing the results would not be the same. "
        f"{call_name(op)} makes {part.bytes} bytes of each label of {part.ids_bytes}, "
        f"a number for each of {part.rows} classes, {megabytes:.1f} MB more in a step."
    )
