"""A loss that takes a softmax over all classes of a large vocabulary for a few labels."""

from __future__ import annotations

from functools import partial

from pipediag.facts.embeddings import hidden, part_ms
from pipediag.facts.limits import INPUT_BOUND, OPERATION_SHARE, Threshold
from pipediag.facts.step import class_ms, keras_3
from pipediag.rules.embeddings import computed_percent, judged_by_compute
from pipediag.rules.model_edits import drawn_classes
from pipediag.rules.rule import Meta
from pipediag.session.findings import Finding
from pipediag.session.loops import Loop
from pipediag.session.model import Session
from pipediag.session.recorded_loops import Softmax
from pipediag.vocabulary import Scalar, TablePart

CLASSES = Threshold(
    "classes of a vocabulary", 5000.0, "classes", "own choice: ten times as many as are drawn"
)
SAMPLED = 512
"""Own choice of classes to draw: as few as leave the products small beside those of a vocabulary of
ten thousands."""
_NUMBER_BYTES = 4
FULL_SOFTMAX = Meta(
    id="full-softmax",
    name="Full softmax",
    title_failed="Train with a softmax over a few drawn classes",
    title_passed="No softmax over a large vocabulary takes a part of the step that matters",
    why="The logits of all classes, their gradient and that of all weights are computed for one "
    "right class an example, in time that grows with the vocabulary.",
    edit="`tf.nn.sampled_softmax_loss` in training, with a few hundred drawn classes beside the "
    "right ones, and the full softmax to evaluate; docs/embeddings.md has the code.",
    cost="What is learned differs: the loss is an estimate whose gradient is biased, the more so "
    "the fewer are drawn. What that does to accuracy, no trial measures.",
    needs=("loop", "steps", "breakdown"),
    thresholds=(CLASSES, OPERATION_SHARE, INPUT_BOUND),
    effect_on_results="changes a hyper-parameter",
    frees=("device_compute",),
    tried_when_informing=True,
)


def check_full_softmax(session: Session) -> list[Finding]:
    """Return a finding on each such loss of the diagnosed loop."""
    loop = session.diagnosed_loop()
    if loop is None or not loop.softmaxes:
        reason = "No softmax loss was seen in a traced step."
        return [FULL_SOFTMAX.finding("not-applicable", reason)]
    return [_finding(session, loop, one) for one in loop.softmaxes if one.classes > SAMPLED]


def _finding(session: Session, loop: Loop, softmax: Softmax) -> Finding:
    several = len(loop.softmaxes) > 1
    took_ms = None if several else part_ms(session, "vocabulary") or None
    weight_bytes = softmax.classes * softmax.features * _NUMBER_BYTES
    edit = None if several else drawn_classes(session, FULL_SOFTMAX.id, SAMPLED, weight_bytes)
    advice = (
        f"Train with `tf.nn.sampled_softmax_loss(weights, biases, labels, inputs, {SAMPLED}, "
        f"{softmax.classes})`, and evaluate with the full softmax. The weights are then of the "
        f"shape ({softmax.classes}, {softmax.features}); docs/embeddings.md has the code. The loss "
        "is then another one, an estimate: what is learned differs, and what that does to accuracy "
        "was not measured, so validate it. Now each step multiplies by all "
        f"{softmax.classes} classes of `{softmax.weights}`, forwards and for two gradients."
    )
    evidence: dict[str, Scalar] = {
        "weights": softmax.weights,
        "classes": softmax.classes,
        "features": softmax.features,
        "labels": softmax.labels,
        "device_compute_percent": computed_percent(session),
    }
    informs = partial(FULL_SOFTMAX.finding, "informative", evidence=evidence, edit=edit)
    if took_ms is None:
        return informs(f"{advice} How much of the step that takes was not measured.")
    if softmax.classes < CLASSES.value:
        return informs(advice)
    untried = (
        "Its loss is the script's own code, or that of another Keras than 3: pipediag can't change "
        "it for you."
        if keras_3(session) is None
        else "There is no memory for a second set of these weights and of the optimizer's slots, "
        "which a trial needs."
    )
    return judged_by_compute(
        FULL_SOFTMAX,
        session,
        None,
        advice,
        evidence,
        took_ms=took_ms,
        gone_ms=_gone_ms(session, softmax, took_ms),
        edit=edit,
        untried=untried,
    )


_ROWS: tuple[TablePart, ...] = ("gradient", "update")


def _gone_ms(session: Session, softmax: Softmax, took_ms: float) -> float | None:
    """Return the time of a step that goes with it at most: gradient and update of the weights, too.

    A sampled softmax gives rows, which an optimizer may update alone. All that is computed where
    the update of the weights was not told apart.
    """
    cost = session.embedding_cost
    if cost is None:
        return None
    names = {(softmax.weights, softmax.weights)} | {
        (table.layer, table.variable)
        for table in session.embeddings
        if (table.variable or "").removesuffix(":0") == softmax.weights
        and {table.rows, table.dim} == {softmax.classes, softmax.features}
    }
    own = [one.ms for one in cost.parts if (one.layer, one.variable) in names and one.part in _ROWS]
    if not own or hidden(cost, {(part, *name) for part in _ROWS for name in names}):
        return class_ms(session, ["device_compute"])
    return took_ms + sum(own)
