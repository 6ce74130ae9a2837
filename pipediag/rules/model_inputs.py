"""Inputs that the model prepares in every step, or that are padded."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import NamedTuple

from pipediag.facts.embeddings import AT_ENDS, padded_percent
from pipediag.facts.limits import INPUT_BOUND, Threshold
from pipediag.facts.names import memory_size
from pipediag.facts.pipeline import (
    call_name,
    downstream,
    last_before_prefetch,
    operations,
    place_name,
)
from pipediag.facts.step import class_percent, lengths_to_cut, lengths_vary
from pipediag.rules.reading import reordering
from pipediag.rules.relevance import at_most_without, input_first
from pipediag.rules.rule import Rule, known
from pipediag.session.edits import (
    APART,
    BUCKETS,
    CUT_PADDING,
    Change,
    Edit,
    Insert,
    Replace,
    SetModel,
)
from pipediag.session.findings import Finding
from pipediag.session.loops import Loop
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.session.recorded_loops import InputLayer, KerasUse
from pipediag.tensorflow_names import REDUCING
from pipediag.vocabulary import Scalar

TEXT_WORK = Threshold("text work in a step", 10.0, "% of the step", "own choice")
PREPROCESSING_IN_MODEL = Rule(
    id="preprocessing-in-model",
    title="Prepare inputs in the pipeline, not in the model",
    why="Layers that prepare inputs run in the step; in the pipeline, beside the previous step.",
    fix="Use `dataset.map(layers, num_parallel_calls=tf.data.AUTOTUNE)` after the batch, and a "
    "model that begins after these layers. The original model still takes the raw inputs.",
    needs=("loop", "steps"),
    thresholds=(INPUT_BOUND, TEXT_WORK),
    untried="The model has to be built without these layers, and saved with them.",
)


@PREPROCESSING_IN_MODEL.found_by
def _check_preprocessing_in_model(session: Session) -> Iterator[Finding]:
    loop, work = known(session.diagnosed_loop()), session.text_work
    weighs = work is not None and work.percent >= TEXT_WORK.value
    waits, after = input_first(session), last_before_prefetch(session)
    if after is not None and after.made_by_framework and after.helper is None:
        after = None  # all of it is made of arrays
    evidence: dict[str, Scalar] = {}
    if work is not None:
        evidence = {"text_work_percent_of_step": work.percent, "text_work_ms_per_step": work.ms}
    behind = f"after {call_name(after)}" if after is not None else "after the batch"
    if loop.keras is not None and loop.keras.input_layers:
        movable = [layer for layer in loop.keras.input_layers if layer.behind_input]
        layers = movable or loop.keras.input_layers
        if all(layer.kind == "Normalization" for layer in layers):
            return  # quick where the model runs
        listed = " and ".join(f"`{layer.name}` ({layer.kind})" for layer in layers)
        evidence["layers"] = listed.replace("`", "")
        untried = None
        if loop.keras.inseparable:
            untried = "Move the calls of these layers out of the model's own code by hand."
        elif not movable:
            untried = "Also move what is called before them, if it is not trained."
        advice = f"Move {listed} into the pipeline, {behind}, to run in parallel with the steps. "
        advice = f"{waits or ''} {advice}{untried or _code(layers)}".lstrip()
    elif weighs and waits is None:
        untried = "The text work is in the script's own code: move it out of the step by hand."
        advice = (
            f"Prepare the text in the pipeline, {behind}: `dataset.map(lambda x, y: (prepare(x), "
            "y), num_parallel_calls=tf.data.AUTOTUNE)`, where `prepare` does what the step now "
            "does to its text."
        )
    else:
        return
    yield PREPROCESSING_IN_MODEL.finding(
        "fail" if weighs and waits is None else "informative",
        advice,
        place=(loop.file, loop.line),
        evidence=evidence,
        speedup_at_most=None if work is None else at_most_without(session, work.percent),
        untried=untried,
    )


def _code(layers: list[InputLayer]) -> str:
    ends = [f'model.get_layer("{layer.name}").output' for layer in layers if layer.handed_on]
    prepared, call = f"[{', '.join(ends)}]", "tuple(prepare(x))"
    if len(ends) == 1:
        prepared, call = ends[0], "prepare(x)"
    return (
        f"With `prepared = {prepared}` and `prepare = keras.Model(model.inputs, prepared)`, use "
        f"`dataset.map(lambda x, y: ({call}, y), num_parallel_calls=tf.data.AUTOTUNE)` to train "
        "`keras.Model(prepared, model.outputs[0])`, compiled as `model` is. Both share their "
        "weights with `model`. Also add inputs that are used unprepared to `prepared`."
    )


AT_MOST = Threshold("compute spent on padding", 5.0, "% of the step", "own choice")
MOSTLY = Threshold("padding, to fail", 50.0, "% of the ids", "own choice: most of the work")
PADDING = Rule(
    id="padding",
    title="Batch examples of similar length",
    why="A model computes on padding as on data; batches of similar lengths hold less of it.",
    fix="Use `bucket_by_sequence_length(...)` instead of `padded_batch`, which mixes less. If the "
    "length is fixed, cut each batch to its longest example, with an `Input` of shape `(None,)`.",
    needs=("loop", "pipeline", "steps", "breakdown"),
    thresholds=(AT_MOST, AT_ENDS, MOSTLY, INPUT_BOUND),
    severity="info",
    effect="same up to order or rounding",
    untried="The length of an example is known only where its padding is added.",
)
_IF_MIXED_LESS = "if the model learns as well from batches of similar lengths"
_HOW_MANY = 4
"""Buckets of similar length. Own choice."""


@PADDING.found_by
def _check_padding(session: Session) -> Iterator[Finding]:
    ops, spec = operations(session, "padded_batch"), known(session.diagnosed_loop()).element_spec
    op, waits = ops[-1] if ops else None, input_first(session)
    padded, compute = padded_percent(session), class_percent(session, ["device_compute"])
    wasted = compute * (padded or 0.0) / 100.0
    # The step may compute little on padding, however much of it that is.
    little = (compute if padded is None else wasted) < AT_MOST.value
    mostly = (padded or 0.0) >= MOSTLY.value and wasted >= INPUT_BOUND.value
    finding = partial(
        PADDING.finding,
        "fail" if mostly and not waits else "informative",
        op=op,
        evidence={"device_compute_percent_of_step": compute, "padding_percent": padded},
        speedup_at_most=at_most_without(session, wasted),
    )
    keras = known(session.diagnosed_loop()).keras
    kinds = [one.kind for one in keras.input_layers] if keras is not None else []
    if padded is not None and "TextVectorization" in kinds:
        # It pads within the model, and is to be moved into the pipeline first.
        return
    share = "" if padded is None else f" {padded:.0f} % of the ids are padding."
    if padded is not None and spec is not None and not lengths_vary(spec):
        if not little and not waits:
            yield from _of_one_length(session, op, share, finding)
    elif op is not None and spec is None:
        yield PADDING.finding("inconclusive", "The shapes of the batches are not known.", op=op)
    elif op is not None and not little and lengths_vary(spec or ""):
        buckets = Replace(op.id, BUCKETS, {"buckets": _HOW_MANY})
        advice = (
            f"{waits or ''} Use `bucket_by_sequence_length` instead of {call_name(op)}, so that "
            f"batches hold examples of similar length.{share}".lstrip()
        )
        edit = PADDING.edit(op, _bucket_label(op), buckets, check="shape")
        yield finding(**reordering(session, op, advice, edit), condition=_IF_MIXED_LESS)


def _of_one_length(
    session: Session, op: Operation | None, share: str, finding: Callable[..., Finding]
) -> Iterator[Finding]:
    loop, last = known(session.diagnosed_loop()), last_before_prefetch(session)
    keras = loop.keras if loop.kind == "keras" else None
    at = op or (last if last is not None and last.file is not None else None)
    label = "rows of ids cut to the longest of each batch"
    cut = partial(
        finding,
        op=at,
        place=(loop.file, loop.line) if at is None else None,
        title="Pad to a shorter length, or to the longest example of each batch",
        severity="warn",
        condition="if the model ignores padding",
    )
    otherwise = (
        "or pad to a shorter length (`maxlen`, `output_sequence_length`, `padded_shapes`), which "
        f"also cuts the longest examples.{share}"
    )
    apart = edit = None
    if last is not None and keras is not None:
        edit = _shorter(last.id, label, Insert(last.id, CUT_PADDING), keras)
        lengths = lengths_to_cut(_first_part(loop.element_spec or ""))
        if len(set(lengths)) < len(lengths):
            # Ids and their mask need one length; a query and a title do not.
            each = Insert(last.id, CUT_PADDING, APART)
            apart = _shorter(f"{last.id}:apart", f"{label}, each input by itself", each, keras)
            edit = replace(edit, instead_of=apart.id)
    if apart is not None:
        yield cut(f"Cut each input to its own longest row of a batch, {otherwise}", edit=apart)
    yield cut(f"Cut each batch to its own longest example, {otherwise}", edit=edit)
    if op is not None:
        buckets = Replace(op.id, BUCKETS, {"buckets": _HOW_MANY, "to_longest": True})
        advice = (
            f"Use `bucket_by_sequence_length` instead of {call_name(op)}, without a fixed length, "
            f"so that batches hold examples of similar length.{share}"
        )
        bucketed = _shorter("buckets", _bucket_label(op), buckets, keras) if keras else None
        yield finding(
            **reordering(session, op, advice, bucketed),
            condition=_IF_MIXED_LESS,
        )


def _bucket_label(op: Operation) -> str:
    return f"{_HOW_MANY} length buckets instead of the {place_name(op)}"


def _shorter(about: str, label: str, change: Change, keras: KerasUse) -> Edit:
    """Return an edit with which batches have different lengths."""
    if not keras.jit_compile:
        return PADDING.edit(about, label, change, check="outputs")
    # XLA would compile the step for each length, in the middle of what is timed.
    plain = SetModel({"jit_compile": False})
    return PADDING.edit(about, f"{label}, without XLA", change, plain, check="outputs")


_WIDE = 256
"""Values of a one-hot row. Own choice: a narrow one may be a class, or a letter."""
_FEATURES = Threshold("one-hot rows", 1.0, "MB a batch", "own choice: less is little work")
ONE_HOT_INPUT = Rule(
    id="one-hot-input",
    title="Use an `Embedding` instead of one-hot rows",
    why="A dense layer on a one-hot row multiplies all of its weights to read one row of them.",
    fix="Yield the ids, and begin the model with `keras.layers.Embedding(rows, width)` instead of "
    "the dense layer: its table is that layer's kernel, with the same gradients. In front of "
    "another layer, such as an LSTM, it makes another model.",
    needs=("loop", "steps", "pipeline"),
    thresholds=(_FEATURES,),
    effect="same up to order or rounding",
    untried="The model needs a different first layer, and the pipeline has to yield ids.",
)


@ONE_HOT_INPUT.found_by
def _check_one_hot_input(session: Session) -> Iterator[Finding]:
    features = _features(known(session.diagnosed_loop()))
    if features is None or features.bytes < _FEATURES.value * 1e6:
        return
    functions = [(op, op.function) for op in known(session.pipeline).ops if op.function is not None]
    # Another width is one of labels, say.
    maker = next((op for op, one in functions if features.width in one.one_hot_widths), None)
    if maker is None:
        return
    later = [one.function.graph_ops for one in downstream(session, maker) if one.function]
    if not REDUCING.keys().isdisjoint(chain.from_iterable(later)):
        return  # one row of several ones, such as a bag of words
    yield ONE_HOT_INPUT.finding(
        "fail",
        f"Let {call_name(maker)} yield ids, and begin the model with an `Embedding` of "
        f"{features.width:,} rows in place of a dense layer on one-hot rows. In front of another "
        "layer, such as an LSTM, it makes another model. Each batch holds "
        f"{memory_size(features.bytes)} of one-hot values for {features.ids:,} ids.",
        op=maker,
        condition="if a dense layer takes the one-hot rows",
        evidence={"one_hot_bytes_of_a_batch": features.bytes, "width": features.width},
        # No more than all that is computed can be on these rows.
        speedup_at_most=at_most_without(session, class_percent(session, ["device_compute"])),
    )


class _Rows(NamedTuple):
    """The largest of the wide tensors of floats in a batch."""

    ids: int
    """Rows of one batch, each of which an id may stand for."""
    width: int

    @property
    def bytes(self) -> float:
        return 4.0 * self.ids * self.width


def _features(loop: Loop) -> _Rows | None:
    """Return the largest of the wide rows of floats, of known dimensions, among the features."""
    spec, found = _first_part(loop.element_spec or ""), []
    # Of each batch, all dimensions but its own have to be known.
    for sizes in re.findall(r"shape=\([^,)]*,((?: \d+,?)+)\), dtype=tf.float", spec):
        *others, width = map(int, re.findall(r"\d+", sizes))
        if width >= _WIDE:
            found.append(_Rows((loop.batch_size or 1) * math.prod(others), width))
    return max(found, key=lambda rows: rows.bytes, default=None)


def _first_part(spec: str) -> str:
    """Return the first part of a tuple of batches: what follows are targets and weights."""
    depth = 0
    for place, character in enumerate(spec):
        depth += (character in "([{") - (character in ")]}")
        if depth == 1 and character == "," and spec.startswith("("):
            return spec[:place]
    return spec
