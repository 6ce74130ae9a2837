"""Layers that look up, hash or encode the inputs, in every step of the model."""

from __future__ import annotations

import math

from pipediag.facts.amounts import memory_size
from pipediag.facts.limits import INPUT_BOUND, Threshold
from pipediag.facts.pipeline import call_name, last_before_prefetch, passes_over_data, place_name
from pipediag.rules.pipeline.cache_size import MEMORY
from pipediag.rules.relevance import input_first
from pipediag.rules.rule import Meta, Place
from pipediag.rules.step.kept_inputs import KeptInputs, kept_inputs
from pipediag.session.edits import Edit, MoveLayers
from pipediag.session.findings import Finding
from pipediag.session.loops import InputLayer, KerasUse
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.vocabulary import Scalar

TEXT_WORK = Threshold(
    "work on text in a step",
    10.0,
    "% of the step",
    "own choice: beside the step before it costs nothing, and less than this is seldom noticed",
)
META = Meta(
    id="preprocessing-in-model",
    name="Preprocessing in the model",
    title_failed="The model prepares its inputs in every step",
    title_passed="The model leaves the preparing of its inputs to the pipeline",
    looks_at="Layers of a Keras model that are not trained and see nothing but its inputs: "
    "TextVectorization, StringLookup, IntegerLookup, Hashing, HashedCrossing, CategoryEncoding, "
    "Discretization; Normalization beside one of these. And operations of the step's own graph "
    "that split, hash, look up or decode text, by their types in the profile, whoever wrote them.",
    why="Within the model they run in the step, on the CPU where they take strings or look "
    "something up, and an accelerator waits. In the pipeline they run beside the step before. Of "
    "the step they take at least what the profile has of text work; a trial tells what moving them "
    "buys.",
    edit="`dataset.map(layers, num_parallel_calls=tf.data.AUTOTUNE)` behind the batch, and a model "
    "that begins behind these layers. Where the data is read more than once and what the layers "
    "give fits in memory, the same above shuffle and repeat with `.cache()` behind it, as a second "
    "change: it does the work once instead of elsewhere.",
    cost="The model that is trained no longer takes the inputs as they are; the one that it was "
    "cut out of does, and shares its weights. A cache takes memory for every example.",
    bound="At most what the step is without its text work: the pipeline needs CPUs for it.",
    needs=("loop", "steps"),
    thresholds=(INPUT_BOUND, TEXT_WORK, MEMORY),
    severity="warn",
    effect_on_results="same results",
    tried_when_informing=True,
)

CAVEAT = (
    "Measured with the user's layers and weights in a model without these layers, compiled as the "
    "user's is."
)
KEPT_TITLE = "The model prepares the same inputs anew in every pass over the data"
_MOST_TYPES = 3
_ALL_PERCENT = 99.0
"""Nothing is said of a step of which hardly anything would be left."""
_ARITHMETIC = frozenset({"Normalization"})
_OWN_CODE = (
    "The text work is in the script's own code and in no layer that can be moved: take it out of "
    "the step by hand."
)
_NOWHERE = "The operations that hand the batches to `fit` were not recorded, so no trial was made."


def check(session: Session) -> list[Finding]:
    """A finding on the model of the diagnosed `fit`; two where what is prepared can be kept."""
    loop = session.diagnosed_loop()
    keras = loop.keras if loop is not None else None
    assert loop is not None
    place: Place = (loop.file, loop.line)
    if keras is None or not keras.input_layers:
        return [_of_own_code(session, place)]
    layers = [layer for layer in keras.input_layers if layer.behind_input] or keras.input_layers
    evidence: dict[str, Scalar] = {
        "layers": ", ".join(_said(layer) for layer in layers),
        **_measured(session),
    }
    if all(layer.kind in _ARITHMETIC for layer in layers):
        quick = "Normalizing is arithmetic, which is quick where the model runs."
        return [META.finding("pass", quick, place=place, evidence=evidence)]
    waits, after = input_first(session), last_before_prefetch(session)
    movable = [layer for layer in layers if layer.behind_input]
    kept = kept_inputs(session, movable, after) if keras.unsplit is None and movable else None
    why_untried = _why_untried(keras) or (None if after else _NOWHERE)
    edit = _edit(layers, after) if after is not None and why_untried is None else None
    advice = f"{_advice(layers, after)} {why_untried or _code(layers)}"
    moved = META.finding(
        "fail" if _weighs(session) and waits is None else "informative",
        advice if waits is None else f"{waits} {advice}",
        place=place,
        evidence=evidence,
        edit=edit,
        untried=why_untried,
        speedup_at_most=_at_most(session),
    )
    return [moved] if kept is None else [_of_kept(session, moved, movable, kept), moved]


def _of_kept(
    session: Session, moved: Finding, layers: list[InputLayer], kept: KeptInputs
) -> Finding:
    """The same layers with a cache behind them: the work is not only elsewhere, but done once."""
    names = " and ".join(f"`{layer.name}` ({layer.kind})" for layer in layers)
    advice = (
        f"Let the pipeline prepare the inputs once, by {names} behind {call_name(kept.after)}, and "
        f"keep what they give: about {memory_size(kept.bytes)} in memory. {_code(layers, kept)}"
    )
    return META.finding(
        moved.status,
        advice,
        title=KEPT_TITLE,
        place=(moved.file, moved.line),
        evidence={
            **moved.evidence,
            "cache_bytes": kept.bytes,
            "passes_over_data": _passes(session),
        },
        edit=Edit(
            id=f"{META.id}:{kept.after.id}",
            label=f"{', '.join(f'`{layer.name}`' for layer in layers)} in {kept.place()}, and not "
            "in the model",
            changes=(kept.change(layers),),
            caveat=f"{CAVEAT} Measured once the cache is full.",
        ),
        speedup_at_most=_at_most(session),
    )


def _passes(session: Session) -> Scalar:
    passes = passes_over_data(session)
    return "unlimited" if passes == math.inf else passes


def _of_own_code(session: Session, place: Place) -> Finding:
    """Where no layer of Keras' prepares inputs, but the step's graph works on text all the same."""
    if not _weighs(session):
        return META.finding("not-applicable", "The model has no layers that prepare inputs.")
    evidence = _measured(session)
    if waits := input_first(session):
        return META.finding("pass", waits, place=place, evidence=evidence)
    after = last_before_prefetch(session)
    behind = f"behind {call_name(after)}" if after is not None else "behind the batch"
    advice = (
        f"Prepare the text in the pipeline, {behind}, where that runs beside the step before: "
        "`dataset.map(lambda x, y: (prepare(x), y), num_parallel_calls=tf.data.AUTOTUNE)`, with "
        "`prepare` what the step does to its text now. "
        f"{evidence['text_operations']} take {evidence['text_work_percent_of_step']:.0f} % of each "
        "step."
    )
    return META.finding(
        "fail",
        advice,
        place=place,
        evidence=evidence,
        untried=_OWN_CODE,
        speedup_at_most=_at_most(session),
    )


def _weighs(session: Session) -> bool:
    return session.text_work is not None and session.text_work.percent >= TEXT_WORK.value


def _measured(session: Session) -> dict[str, Scalar]:
    work = session.text_work
    if work is None:
        return {}
    most = ", ".join(f"`{kind}`" for kind in list(work.operations)[:_MOST_TYPES])
    found: dict[str, Scalar] = {
        "text_work_percent_of_step": work.percent,
        "text_work_ms_per_step": work.ms,
    }
    return {**found, "text_operations": most} if most else found


def _at_most(session: Session) -> float | None:
    """The step without its text work, where that is all that is gained."""
    work = session.text_work
    if work is None or work.percent >= _ALL_PERCENT:
        return None
    return 100.0 / (100.0 - work.percent)


def _advice(layers: list[InputLayer], after: Operation | None) -> str:
    names = " and ".join(f"`{layer.name}` ({layer.kind})" for layer in layers)
    behind = f"behind {call_name(after)}" if after is not None else "behind the batch"
    if len(layers) == 1:
        return f"Move {names} into the pipeline, {behind}, beside the steps: it runs in every one."
    return f"Move {names} into the pipeline, {behind}, beside the steps: they run in every one."


def _code(layers: list[InputLayer], kept: KeptInputs | None = None) -> str:
    """To paste, with the names of the user's layers."""
    ends = [layer.name for layer in layers if layer.handed_on]
    if len(ends) == 1:
        prepared, call = f'model.get_layer("{ends[0]}").output', "prepare(x)"
    else:
        listed = ", ".join(f'"{name}"' for name in ends)
        prepared = f"[model.get_layer(name).output for name in ({listed})]"
        call = "tuple(prepare(x))"
    mapped = f"map(lambda x, y: ({call}, y), num_parallel_calls=tf.data.AUTOTUNE)"
    written = mapped if kept is None else kept.code(mapped)
    return (
        f"With `prepared = {prepared}` and `prepare = keras.Model(model.inputs, prepared)`, map "
        f"`dataset.{written}` and train "
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
    )


def _said(layer: InputLayer) -> str:
    return f"{layer.name} ({layer.kind})"
