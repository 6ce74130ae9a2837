"""Layers that look up, hash or encode the inputs, in every step of the model."""

from __future__ import annotations

from pipediag.facts.limits import INPUT_BOUND
from pipediag.facts.pipeline import call_name, last_before_prefetch, place_name
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
    "Discretization; Normalization beside one of these.",
    why="Within the model they run in the step, on the CPU where they take strings or look "
    "something up, and an accelerator waits. In the pipeline they run beside the step before. How "
    "much of the step they take is not measured: a trial tells.",
    edit="`dataset.map(layers, num_parallel_calls=tf.data.AUTOTUNE)` behind the batch, and a model "
    "that begins behind these layers.",
    cost="The model that is trained no longer takes the inputs as they are; the one that it was "
    "cut out of does, and shares its weights.",
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
_ARITHMETIC = frozenset({"Normalization"})
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
    if all(layer.kind in _ARITHMETIC for layer in layers):
        quick = "Normalizing is arithmetic, which is quick where the model runs."
        return [META.finding("pass", quick, place=place, evidence=evidence)]
    if waits := input_first(session):
        return [META.finding("pass", waits, place=place, evidence=evidence)]
    after = last_before_prefetch(session)
    why_untried = _why_untried(keras) or (None if after else _NOWHERE)
    edit = _edit(layers, after) if after is not None and why_untried is None else None
    advice = f"{_advice(layers, after)} {why_untried or _code(layers)}"
    return [META.finding("informative", advice, place=place, evidence=evidence, edit=edit)]


def _advice(layers: list[InputLayer], after: Operation | None) -> str:
    names = " and ".join(f"`{layer.name}` ({layer.kind})" for layer in layers)
    behind = f"behind {call_name(after)}" if after is not None else "behind the batch"
    if len(layers) == 1:
        return f"{names} runs in every step. In the pipeline, {behind}, it would run beside it."
    return f"{names} run in every step. In the pipeline, {behind}, they would run beside it."


def _code(layers: list[InputLayer]) -> str:
    """To paste, with the names of the user's layers."""
    ends = [layer.name for layer in layers if layer.handed_on]
    if len(ends) == 1:
        prepared, call = f'model.get_layer("{ends[0]}").output', "prepare(x)"
    else:
        listed = ", ".join(f'"{name}"' for name in ends)
        prepared = f"[model.get_layer(name).output for name in ({listed})]"
        call = "tuple(prepare(x))"
    return (
        f"With `prepared = {prepared}` and `prepare = keras.Model(model.inputs, prepared)`, map "
        f"`dataset.map(lambda x, y: ({call}, y), num_parallel_calls=tf.data.AUTOTUNE)` and train "
        "`keras.Model(prepared, model.outputs[0])`, compiled as `model` is. Both share their "
        "layers and weights with `model`, which still takes the inputs as they are. List inputs "
        "that go on unprepared in `prepared`, too."
    )


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
