"""Labels made one-hot over many classes, where the class itself would do."""

from __future__ import annotations

from pipediag.facts.amounts import exact_time
from pipediag.facts.embedding_cost import part_ms
from pipediag.facts.limits import INPUT_WAIT, OPERATION_SHARE
from pipediag.facts.pipeline import call_name
from pipediag.facts.step import class_percent
from pipediag.rules.pipeline.widened_ids import (
    COPIED,
    SHIPPED,
    judged,
    widened,
)
from pipediag.rules.relevance import weigh_input
from pipediag.rules.rule import Meta
from pipediag.session.findings import Finding
from pipediag.session.loops import Loop, Softmax
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation, Widening
from pipediag.vocabulary import Scalar

_LOSS = "categorical_crossentropy"
_NUMBER_BYTES = 4
_CLASS_BYTES = 8
"""Of an integer, at most."""
META = Meta(
    id="one-hot-labels",
    name="One-hot labels",
    title_failed="Labels are made one-hot over many classes",
    title_passed="Labels that are made one-hot are small",
    looks_at="The graph of each mapped function: whether what it hands out is one-hot, and its "
    "bytes; and whether the loss is `categorical_crossentropy`. And the graph of the traced step: "
    "whether the labels of a softmax loss come with the batch, a number for each class, as "
    "`to_categorical` makes them.",
    why="A label becomes a number for each class, which is batched, buffered and copied to the "
    "device. The loss takes the class itself as well. What the softmax over all classes costs "
    "stays as it is: measured, a loss of sparse labels computes no less.",
    edit='The class as an integer, and `loss="sparse_categorical_crossentropy"`.',
    cost="None without label smoothing and without metrics that want one-hot labels.",
    bound="None: labels of another form were not measured.",
    needs=("loop", "steps", "breakdown"),
    thresholds=(SHIPPED, INPUT_WAIT, OPERATION_SHARE, COPIED),
    severity="warn",
    effect_on_results="same results",
    frees=("input_wait", "device_copy"),
    untried="It changes the loss with the pipeline; pipediag can't do that for you.",
)


def check(session: Session) -> list[Finding]:
    """One finding for each map that hands out one-hot labels to this loss; or where no map makes
    them, for each loss whose labels are given so."""
    loop = session.diagnosed_loop()
    found = list(widened(session, "one-hot", labels_alone=True))
    of_this_loss = loop is not None and loop.keras is not None and loop.keras.loss == _LOSS
    if loop is not None and not (found and of_this_loss):
        given = [softmax for softmax in loop.softmaxes if softmax.labels_given]
        if given:
            return [_given(session, loop, one) for one in given]
    if not found or not of_this_loss:
        return [META.finding("not-applicable", f"No one-hot labels are made for `{_LOSS}`.")]
    stays = _stays(session)
    return [
        judged(META, session, op, part, lambda *made: f"{_advice(*made)}{stays}")
        for op, part in found
    ]


def _given(session: Session, loop: Loop, softmax: Softmax) -> Finding:
    """Nobody knows here whether they are one-hot, or say how much there is of each class."""
    examples = loop.batch_size or (session.steps.batch_size if session.steps else None)
    copied = class_percent(session, ["device_copy"])
    evidence: dict[str, Scalar] = {"classes": softmax.classes, "device_copy_percent": copied}
    if examples is None:
        unknown = "How many examples a step takes was not measured."
        return META.finding("inconclusive", unknown, evidence=evidence)
    labels = examples * (softmax.positions or 1)
    megabytes = labels * (softmax.classes * _NUMBER_BYTES - _CLASS_BYTES) / 1e6
    evidence["shipped_megabytes_per_step"] = megabytes
    if megabytes < SHIPPED.value:
        return META.finding("pass", "", evidence=evidence)
    weight = weigh_input(session)
    matters = (
        f"Copies to the device take {copied:.0f} % of the step."
        if copied >= COPIED.value
        else weight.sentence or "The step waits for input, of which they are a part."
    )
    return META.finding(
        "informative",
        f"If each label is one class, as `to_categorical` makes them, give the class as an integer "
        f"and take {_sparse_loss(loop)}; with label smoothing, or labels that say how much there "
        f"is of each class, the results would not be the same. A batch has a number for each of "
        f"{softmax.classes} classes, {megabytes:.1f} MB in a step. {matters}{_stays(session)}",
        place=(loop.file, loop.line),
        evidence={**evidence, **weight.evidence},
        title="Labels come with a number for each of many classes",
    )


def _sparse_loss(loop: Loop) -> str:
    if loop.keras is None:
        return "`tf.nn.sparse_softmax_cross_entropy_with_logits`, or your loss of sparse labels"
    return '`loss="sparse_categorical_crossentropy"`'


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
