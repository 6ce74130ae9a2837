"""Inputs that the model prepares in every step, or that are padded."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pipediag.facts.embeddings import padded_percent
from pipediag.facts.limits import INPUT_BOUND, Threshold
from pipediag.facts.names import memory_size
from pipediag.facts.pipeline import (
    call_name,
    calls_python,
    differs_by_pass,
    last_before_prefetch,
    operations,
    passes_over_data,
    place_name,
    upstream,
)
from pipediag.facts.step import class_percent, lengths_vary
from pipediag.rules.bounds import at_most_without
from pipediag.rules.caching import (
    MEMORY,
    against,
    bytes_each,
    elements_of_a_pass,
    elements_to_cache,
    fits_in_memory,
)
from pipediag.rules.relevance import input_first
from pipediag.rules.rule import Meta, Place
from pipediag.session.edits import Edit, MoveLayers, Replace
from pipediag.session.findings import Finding
from pipediag.session.loops import InputLayer, KerasUse
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.tensorflow_names import CACHES
from pipediag.vocabulary import Scalar

_HANDS_ON = ("prefetch", "with_options", "ignore_errors")
_MIXES = ("shuffle", "repeat")


@dataclass(frozen=True)
class KeptInputs:
    """Where prepared inputs can be kept for later passes."""

    after: Operation
    """What gives the data as it is in every pass."""
    rows: int | None
    """Examples of a batch that are prepared at once, where `after` gives single ones."""
    elements: int
    """Of the cache of a trial."""
    bytes: float
    """Of all that is prepared in one pass."""

    def change(self, layers: list[InputLayer]) -> MoveLayers:
        """The layers there, and a cache behind them."""
        names = tuple(layer.name for layer in layers)
        return MoveLayers(names, self.after.id, self.rows, self.elements)

    def place(self) -> str:
        """Where that is, as a part of an edit's label."""
        return f"a map with a cache behind the {place_name(self.after)}"

    def code(self, mapped: str) -> str:
        """What to write there around a call of `map`."""
        if self.rows is None:
            return f"{mapped}.cache()"
        return f"batch({self.rows}).{mapped}.unbatch().cache()"


def kept_inputs(
    session: Session, layers: list[InputLayer], last: Operation | None
) -> KeptInputs | None:
    """Where what these layers give would fit in memory and serve more than one pass, or None.

    Args:
        layers: those that can be moved.
        last: the last operation before the steps, but for a prefetch.
    """
    found = _place(session, last)
    size = session.steps.batch_size if session.steps is not None else None
    each = [layer.row_bytes for layer in layers if layer.handed_on]
    if found is None or size is None or not each or None in each:
        return None
    after, rows = found
    count, held = elements_of_a_pass(session, after), elements_to_cache(session, after)
    if count is None or held is None:
        return None
    prepared = sum(one for one in each if one is not None) * (1 if rows is not None else size)
    total = float(count * (prepared + (bytes_each(session, after) or 0.0)))
    passes = passes_over_data(session)
    if against(session, passes, total, count) is not None or not fits_in_memory(session, total):
        return None
    return KeptInputs(after, rows, held, total)


def _place(session: Session, last: Operation | None) -> tuple[Operation, int | None] | None:
    """The last operation that gives the same in every pass, and how many examples make a batch."""
    at = _above(session, last, (*_HANDS_ON, *_MIXES))
    if at is None:
        return None
    rows: int | None = None
    if at.kind == "batch" and any(op.kind in _MIXES for op in upstream(session, at)):
        size = at.parameters.get("batch_size")
        rows = size if isinstance(size, int) else None
        source = _only_parent(session, at)
        at = _above(session, source, (*_HANDS_ON, *_MIXES)) if rows is not None else None
    if at is None:
        return None
    whole = [at, *upstream(session, at)]
    return None if any(map(_may_differ, whole)) else (at, rows)


def _may_differ(op: Operation) -> bool:
    """Whether a cache behind it could hold other elements than a later pass would have."""
    mixed = op.kind in (*_MIXES, *CACHES, "from_generator")
    return mixed or differs_by_pass(op) or calls_python(op)


def _above(session: Session, op: Operation | None, kinds: tuple[str, ...]) -> Operation | None:
    """The operation itself, or the next one above it that is of none of these kinds."""
    while op is not None and op.kind in kinds:
        op = _only_parent(session, op)
    return op


def _only_parent(session: Session, op: Operation) -> Operation | None:
    return session.operation(op.parent_ids[0]) if len(op.parent_ids) == 1 else None


TEXT_WORK = Threshold(
    "work on text in a step",
    10.0,
    "% of the step",
    "own choice: beside the step before it costs nothing, and less than this is seldom noticed",
)
PREPROCESSING_IN_MODEL = Meta(
    id="preprocessing-in-model",
    name="Preprocessing in the model",
    title_failed="The model prepares its inputs in every step",
    title_passed="The model leaves the preparing of its inputs to the pipeline",
    why="Within the model they run in the step, on the CPU where they take strings or look "
    "something up, and an accelerator waits. In the pipeline they run beside the step before.",
    edit="`dataset.map(layers, num_parallel_calls=tf.data.AUTOTUNE)` behind the batch, and a model "
    "that begins behind these layers. Where the data is read more than once and what the layers "
    "give fits in memory, the same above shuffle and repeat with `.cache()` behind it, as a second "
    "change: it does the work once instead of elsewhere.",
    cost="The model that is trained no longer takes the inputs as they are; the one that it was "
    "cut out of does, and shares its weights. A cache takes memory for every example.",
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
_ARITHMETIC = frozenset({"Normalization"})
_OWN_CODE = (
    "The text work is in the script's own code and in no layer that can be moved: take it out of "
    "the step by hand."
)
_NOWHERE = "The operations that hand the batches to `fit` were not recorded, so no trial was made."


def check_preprocessing_in_model(session: Session) -> list[Finding]:
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
        return [PREPROCESSING_IN_MODEL.finding("pass", quick, place=place, evidence=evidence)]
    waits, after = input_first(session), last_before_prefetch(session)
    movable = [layer for layer in layers if layer.behind_input]
    kept = kept_inputs(session, movable, after) if keras.unsplit is None and movable else None
    why_untried = _why_untried(keras) or (None if after else _NOWHERE)
    edit = _layers_edit(layers, after) if after is not None and why_untried is None else None
    advice = f"{_advice(layers, after)} {why_untried or _code(layers)}"
    moved = PREPROCESSING_IN_MODEL.finding(
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
    return PREPROCESSING_IN_MODEL.finding(
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
            id=f"{PREPROCESSING_IN_MODEL.id}:{kept.after.id}",
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
        return PREPROCESSING_IN_MODEL.finding(
            "not-applicable", "The model has no layers that prepare inputs."
        )
    evidence = _measured(session)
    if waits := input_first(session):
        return PREPROCESSING_IN_MODEL.finding("pass", waits, place=place, evidence=evidence)
    after = last_before_prefetch(session)
    behind = f"behind {call_name(after)}" if after is not None else "behind the batch"
    advice = (
        f"Prepare the text in the pipeline, {behind}, where that runs beside the step before: "
        "`dataset.map(lambda x, y: (prepare(x), y), num_parallel_calls=tf.data.AUTOTUNE)`, with "
        "`prepare` what the step does to its text now. "
        f"{evidence['text_operations']} take {evidence['text_work_percent_of_step']:.0f} % of each "
        "step."
    )
    return PREPROCESSING_IN_MODEL.finding(
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
    """Return the bound without text work, and without dispatch where both share the CPUs."""
    work = session.text_work
    return None if work is None else at_most_without(session, work.percent)


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


def _layers_edit(layers: list[InputLayer], after: Operation) -> Edit:
    names = ", ".join(f"`{layer.name}`" for layer in layers)
    return Edit(
        id=PREPROCESSING_IN_MODEL.id,
        label=f"{names} in a map behind the {place_name(after)}, and not in the model",
        changes=(MoveLayers(tuple(layer.name for layer in layers), after.id),),
        caveat=CAVEAT,
    )


def _said(layer: InputLayer) -> str:
    return f"{layer.name} ({layer.kind})"


AT_MOST = Threshold(
    "compute on padding",
    5.0,
    "% of the step: the part that is compute, times the part of the ids that is padding",
    "own choice: the most that batches without padding can save, equal to the limit on input wait",
)
PADDING = Meta(
    id="padding",
    name="Padding",
    title_failed="Batches are padded to their longest example",
    title_informative="Batches are padded to their longest example; how far was not measured",
    title_passed="Padding hardly weighs",
    why="A model computes on padding as on data. Batches of similar lengths hold less of it, which "
    "is worth the other order only if lengths differ much: a trial tells.",
    edit="`bucket_by_sequence_length(...)` in place of `padded_batch`; where the length is fixed, "
    "a shorter one.",
    cost="Examples of similar length stand together in a batch, so that batches are mixed less; "
    "one batch is gathered for each bucket, in memory. A shorter fixed length cuts "
    "longer examples.",
    needs=("loop", "pipeline", "steps", "breakdown"),
    thresholds=(AT_MOST, INPUT_BOUND),
    severity="info",
    effect_on_results="same up to order or rounding",
    tried_when_informing=True,
)

BUCKETS = 4


def check_padding(session: Session) -> list[Finding]:
    """One finding on the last padded_batch, or on batches that are padded to one fixed length."""
    padded = operations(session, "padded_batch")
    loop = session.diagnosed_loop()
    spec = loop.element_spec if loop else None
    if padded and (spec is None or lengths_vary(spec)):
        return [_finding(session, padded[-1])]
    zeros = padded_percent(session)
    if zeros is not None and spec is not None and not lengths_vary(spec):
        return [_of_one_length(session, zeros, padded[-1] if padded else None)]
    if padded:
        return [_finding(session, padded[-1])]
    return [PADDING.finding("not-applicable", "The pipeline pads no batches.")]


def _of_one_length(session: Session, zeros: float, op: Operation | None) -> Finding:
    """Nothing is tried: how long examples are without their padding is not recorded."""
    percent = class_percent(session, ["device_compute"])
    evidence = {"device_compute_percent": percent, "padding_percent": zeros}
    if _is_little(percent, zeros) or input_first(session):
        return PADDING.finding("pass", "", op=op, evidence=evidence)
    loop = session.diagnosed_loop()
    return PADDING.finding(
        "informative",
        f"{zeros:.0f} % of the ids are padding, which the model computes on: pad to a shorter "
        "length (`maxlen`, `output_sequence_length`, `padded_shapes`), which cuts the longest "
        "examples, so that the model learns from less, or pad each batch to its own longest "
        "by `bucket_by_sequence_length`, which cuts none.",
        op=op,
        place=None if op else (loop.file, loop.line) if loop else None,
        evidence=evidence,
        title="Examples are padded to one fixed length",
    )


def _finding(session: Session, op: Operation) -> Finding:
    loop = session.diagnosed_loop()
    spec = loop.element_spec if loop else None
    percent = class_percent(session, ["device_compute"])
    padded = padded_percent(session)
    evidence = {"device_compute_percent": percent, "element_spec": spec, "padding_percent": padded}
    if spec is None:
        advice = "The shapes of the batches are not known."
        return PADDING.finding("inconclusive", advice, op=op, evidence=evidence)
    if not lengths_vary(spec):
        advice = "Every batch has the same length, which bucketing would change."
        return PADDING.finding("pass", advice, op=op, evidence=evidence)
    if _is_little(percent, padded):
        return PADDING.finding("pass", "", op=op, evidence=evidence)
    known = (
        "If lengths differ much," if padded is None else f"{padded:.0f} % of the ids are padding:"
    )
    advice = (
        f"{known} give `bucket_by_sequence_length` to the data in place of "
        f"{call_name(op)}, so that batches hold examples of similar length and less padding."
    )
    if waits := input_first(session):
        advice = f"{waits} {advice}"
    title = None if padded is None else PADDING.title_failed
    return PADDING.finding(
        "informative", advice, op=op, evidence=evidence, edit=_padding_edit(op), title=title
    )


def _is_little(compute_percent: float, padded_percent: float | None) -> bool:
    """Return True where the step computes little on padding, however much of it that is."""
    padded = 100.0 if padded_percent is None else padded_percent
    return compute_percent * padded / 100.0 < AT_MOST.value


def _padding_edit(op: Operation) -> Edit:
    return Edit(
        id=f"{PADDING.id}:{op.id}",
        label=f"{BUCKETS} buckets of lengths in place of the {place_name(op)}",
        changes=(Replace(op.id, "bucket_by_sequence_length", {"buckets": BUCKETS}),),
        check="shape",
    )
