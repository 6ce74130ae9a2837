"""Layers that look up, hash or encode the inputs, in every step of the model."""

from __future__ import annotations

from pipediag.facts.limits import INPUT_BOUND
from pipediag.facts.pipeline import call_name, last_operation, place_name
from pipediag.rules.relevance import input_first
from pipediag.rules.rule import Meta, Place
from pipediag.session.edits import Edit, MoveLayers
from pipediag.session.findings import Finding
from pipediag.session.loops import InputLayer, KerasUse
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.vocabulary import Scalar

META = Meta(
    id="preprocessing-in-model",
    name="Preprocessing in the model",
    title_failed="The model prepares its inputs in every step",
    title_passed="The model leaves the preparing of its inputs to the pipeline",
    looks_at="Layers of a Keras model that are not trained and see nothing but its inputs: "
    "TextVectorization, StringLookup, IntegerLookup, Hashing, HashedCrossing, CategoryEncoding, "
    "Discretization, Normalization.",
    why="Within the model they run in the step, on the CPU where they take strings or look "
    "something up, and an accelerator waits. In the pipeline they run beside the step before. How "
    "much of the step they take is not measured: a trial tells.",
    edit="`dataset.map(layers, num_parallel_calls=tf.data.AUTOTUNE)` behind the batch, and a model "
    "that begins behind these layers.",
    cost="Whoever uses the model later has to prepare its inputs alike; a model for that, with the "
    "layers in front, is one line.",
    prediction="None: what the layers take of the step was not measured.",
    needs=("loop", "keras", "steps"),
    thresholds=(INPUT_BOUND,),
    severity="info",
    effect_on_results="same results",
    tried_when_informing=True,
)

CAVEAT = (
    "Measured with the user's layers and weights in a model without these layers, compiled as the "
    "user's is."
)
_NOWHERE = "The operations that hand the batches to `fit` were not recorded, so no trial was made."


def check(session: Session) -> list[Finding]:
    """One finding on the model of the diagnosed `fit`."""
    loop = session.diagnosed_loop()
    keras = loop.keras if loop is not None else None
    if loop is None or keras is None or not keras.input_layers:
        return [META.finding("not-applicable", "The model has no layers that prepare inputs.")]
    place: Place = (loop.file, loop.line)
    layers = [layer for layer in keras.input_layers if layer.behind_input] or keras.input_layers
    evidence: dict[str, Scalar] = {"layers": ", ".join(_said(layer) for layer in layers)}
    if waits := input_first(session):
        return [META.finding("pass", waits, place=place, evidence=evidence)]
    after = _last_before_prefetch(session)
    why_untried = _why_untried(keras) or (None if after else _NOWHERE)
    edit = _edit(layers, after) if after is not None and why_untried is None else None
    advice = f"{_advice(layers, after)} {why_untried or _HOW_WITH_KERAS}"
    return [META.finding("informative", advice, place=place, evidence=evidence, edit=edit)]


def _advice(layers: list[InputLayer], after: Operation | None) -> str:
    names = " and ".join(f"`{layer.name}` ({layer.kind})" for layer in layers)
    one = len(layers) == 1
    behind = f"behind {call_name(after)}" if after is not None else "behind the batch"
    mapped = f"lambda x, y: ({_called(layers)}, y)"
    return (
        f"{names} {'runs' if one else 'run'} in every step. In the pipeline, {behind}, "
        f"{'it' if one else 'they'} would run beside the step: "
        f"`dataset.map({mapped}, num_parallel_calls=tf.data.AUTOTUNE)`."
    )


_HOW_WITH_KERAS = (
    "The model to train then takes what they give: build it from an `Input` of that shape and "
    "dtype. For use afterwards, put them in front of it again: "
    "`keras.Sequential([*layers, trained_model])`."
)


def _called(layers: list[InputLayer]) -> str:
    if len(layers) == 1:
        return f"{layers[0].name}(x)"
    return "prepare(x)"


def _why_untried(keras: KerasUse) -> str | None:
    if keras.unsplit is not None:
        return (
            f"{keras.unsplit} So no trial was made: take the calls of these layers out of its "
            "code, and let it begin with what they give."
        )
    if not any(layer.behind_input for layer in keras.input_layers):
        return (
            "They do not stand directly behind the model's inputs, so no trial was made: move what "
            "stands before them, too, if it is not trained."
        )
    return None


def _last_before_prefetch(session: Session) -> Operation | None:
    """Behind which the layers belong: a prefetch at the end is to stay there."""
    op = last_operation(session)
    while op is not None and op.kind == "prefetch" and len(op.parent_ids) == 1:
        op = session.operation(op.parent_ids[0])
    return op


def _edit(layers: list[InputLayer], after: Operation) -> Edit:
    names = ", ".join(f"`{layer.name}`" for layer in layers)
    return Edit(
        id=META.id,
        label=f"{names} in a map behind the {place_name(after)}, and not in the model",
        changes=(MoveLayers(tuple(layer.name for layer in layers), after.id),),
        caveat=CAVEAT,
        once=True,
    )


def _said(layer: InputLayer) -> str:
    return f"{layer.name} ({layer.kind})"
