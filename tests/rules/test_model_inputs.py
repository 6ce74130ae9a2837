"""Inputs that the model prepares in every step, or that are padded."""

from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.model_inputs import ONE_HOT_INPUT, PADDING, PREPROCESSING_IN_MODEL
from pipediag.session.edits import BUCKETS as BUCKETED
from pipediag.session.edits import Insert, Replace, SetModel
from pipediag.session.loops import TextWork
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.session.recorded_loops import InputLayer
from tests.factories import make_embedding, make_keras, make_loop
from tests.records import make_breakdown, make_function, make_operation
from tests.rules.sessions import (
    batch,
    changes,
    decides,
    keeps_up,
    make_ids,
    only,
    run,
    session_of,
    source,
)


def layer(name: str, kind: str, *, behind: bool = True, handed_on: bool = True) -> InputLayer:
    return InputLayer(name=name, kind=kind, behind_input=behind, handed_on=handed_on)


WORDS, CODES = layer("to_ids", "TextVectorization"), layer("codes", "CategoryEncoding")
DEEP = layer("deep", "Hashing", behind=False, handed_on=False)
SCALED = layer("scaled", "Normalization")
SPLITS = TextWork(percent=40.0, ms=4.0)
LITTLE = TextWork(percent=3.0, ms=0.3)


def prepared(*layers: InputLayer, inseparable: bool = False, **more: Any) -> Session:
    keras = make_keras(input_layers=list(layers), inseparable=inseparable)
    ops = (
        make_operation("op1", "from_tensor_slices"),
        make_operation("op2", "batch", line=22),
        make_operation("op3", "prefetch"),
    )
    return session_of(*ops, **{"loops": [make_loop(keras=keras)], **keeps_up(), **more})


OWN_CODE = {"loops": [make_loop(keras=None, kind="tf_function")]}


test_layers_that_prepare_inputs = decides(
    PREPROCESSING_IN_MODEL,
    {
        "one": (prepared(WORDS), "informative"),
        "arithmetic alone": (prepared(SCALED), "pass"),
        "behind others": (prepared(DEEP), "informative"),
        "input first": (prepared(WORDS, breakdown=make_breakdown()), "informative"),
        "much of the step": (prepared(WORDS, text_work=SPLITS), "fail"),
        "own code": (prepared(text_work=SPLITS, **OWN_CODE), "fail"),
        "own code, little": (prepared(text_work=LITTLE, **OWN_CODE), "pass"),
        "no layers": (prepared(), "pass"),
    },
)


# Padding

VARYING = (
    "(TensorSpec(shape=(None, None), dtype=tf.int32, name=None), "
    "TensorSpec(shape=(None,), dtype=tf.float32, name=None))"
)
FIXED = "TensorSpec(shape=(None, 40), dtype=tf.int32, name=None)"
PADS = make_operation("padded", "padded_batch", line=7, parameters={"batch_size": 32})


def padded(
    spec: str | None = VARYING,
    compute: float = 80.0,
    wait: float = 5.0,
    zeros: float | None = None,
    last: Operation = PADS,
    **table: Any,
) -> Session:
    of_ids: dict[str, Any] = {"zeros_within": table.pop("zeros_within", 0), "batches": 8}
    of_ids["lookups"] = 8 * table.pop("per_batch", 1_000)
    ids = None if zeros is None else make_ids(zero_percent=zeros, **of_ids)
    tables = [make_embedding(**{"mask_zero": True, "ids": ids, **table})]
    return session_of(
        source(),
        last,
        breakdown=make_breakdown(input_wait=wait, device_compute=compute),
        loops=[make_loop(element_spec=spec)],
        embeddings=[] if ids is None else tables,
    )


def unpadded(spec: str | None = "TensorSpec(shape=(64, 200))", **overrides: Any) -> Session:
    """Batches that no operation of the pipeline pads."""
    return padded(spec, **{"zeros": 40.0, "last": batch(), **overrides})


def zipped(session: Session) -> Session:
    """The session with its batches zipped with others."""
    ops = [*session.pipeline.ops, make_operation("zip", "zip", parent_ids=["padded"])]
    pipeline = session.pipeline.but(ops=ops)
    return session.but(pipeline=pipeline)


LONG_ROWS: dict[str, Any] = {"mask_zero": False, "lookups": 1, "per_batch": 6_400}
CUT, CUT_PADDED = (Insert("batch", "cut_padding"),), (Insert("padded", "cut_padding"),)
BUCKETS = ("informative", (Replace("padded", "bucket_by_sequence_length", {"buckets": 4}),))
ADVICE, NOTHING = ("informative", None), ("pass", None)


test_batches_that_are_padded = decides(
    PADDING,
    {
        "varying": (padded(), BUCKETS),
        "input first": (padded(compute=40.0, wait=60.0), BUCKETS),
        "zipped": (zipped(padded()), ADVICE),
        "fixed": (padded(FIXED), "pass"),
        "little compute": (padded(compute=4.9), "pass"),
        "many zeros": (padded(zeros=42.0), BUCKETS),
        "mostly zeros": (padded(zeros=62.0), ("fail", BUCKETS[1])),
        "mostly zeros, input first": (padded(compute=40.0, wait=60.0, zeros=62.0), BUCKETS),
        "no spec": (padded(None), "inconclusive"),
        "no padding": (session_of(source(), batch()), NOTHING),
        "one length": (unpadded(), ("informative", CUT)),
        "one length, input first": (unpadded(compute=40.0, wait=60.0), NOTHING),
        "one length, little compute": (unpadded(compute=12.4), "pass"),
        "zeros at the ends of long rows, no mask": (unpadded(**LONG_ROWS), ("informative", CUT)),
        "one length, a token": (unpadded(zeros_within=500), NOTHING),
    },
)


@pytest.mark.parametrize(
    ("session", "status"),
    [
        (padded(FIXED, zeros=42.0), "informative"),
        (padded(FIXED, zeros=62.0), "fail"),
        (padded(FIXED, 30.0, zeros=62.0), "informative"),
    ],
)
def test_batches_that_are_padded_to_one_length(session: Session, status: str) -> None:
    buckets = Replace("padded", BUCKETED, {"buckets": 4, "to_longest": True})
    cut, bucketed = run(PADDING, session)
    assert (cut.status, changes(cut)) == (status, CUT_PADDED)
    assert (bucketed.status, changes(bucketed)) == (status, (buckets,))
    assert {one.edit.check for one in (cut, bucketed) if one.edit} == {"outputs"}
    assert len({one.edit.id for one in (cut, bucketed) if one.edit}) == 2


def test_batches_of_several_lengths_are_tried_without_xla() -> None:
    session = padded(FIXED, zeros=62.0)
    loop = make_loop(element_spec=FIXED, keras=make_keras(jit_compile=True))
    compiled = session.but(loops=[loop])
    for one in run(PADDING, compiled):
        assert SetModel({"jit_compile": False}) in (changes(one) or ())
        assert "without XLA" in one.edit.label


def test_inputs_of_one_length_are_cut_apart_before_they_are_cut_alike() -> None:
    pair = f"(({FIXED}, {FIXED}), TensorSpec(shape=(None,), dtype=tf.int32, name=None))"
    apart, alike, _ = run(PADDING, padded(pair, zeros=62.0))
    assert changes(apart) == (Insert("padded", "cut_padding", {"together": False}),)
    assert changes(alike) == CUT_PADDED
    assert alike.edit.instead_of == apart.edit.id


def test_nothing_is_said_of_what_a_layer_pads_until_it_is_in_the_pipeline() -> None:
    session = padded(zeros=62.0)
    loop = make_loop(element_spec=VARYING, keras=make_keras(input_layers=[WORDS]))
    moved = session.but(loops=[loop])
    assert only(PADDING, moved).status == "pass"
    assert only(PREPROCESSING_IN_MODEL, moved).status == "informative"


def one_hot(shape: str, *widths: int, targets: bool = True, then: str = "Cast") -> Session:
    words = f"{{'words': TensorSpec(shape={shape}, dtype=tf.float32, name=None)}}"
    rows = "TensorSpec(shape=(None, 20, 3000), dtype=tf.float64, name=None)"
    function = make_function(one_hot_widths=list(widths or (64, 300, 4500)))
    return session_of(
        source(),
        make_operation("rows", "map", function=function),
        make_operation("then", "map", function=make_function(graph_ops={then: 1})),
        make_operation("batched", "batch"),
        loops=[make_loop(element_spec=f"({words}, {rows})" if targets else words, batch_size=32)],
        **keeps_up(),
    )


@pytest.mark.parametrize(
    ("session", "fails"),
    [
        (one_hot("(None, 30, 4500)"), True),
        (one_hot("(None, 30, 4500)", targets=False), True),
        (one_hot("(None, 30, 4500)", 10), False),
        (one_hot("(None, 30, 64)"), False),
        (one_hot("(None, None, 4500)"), False),
        (one_hot("(None, 300)"), False),
        (one_hot("(None, 30, 4500)", then="Max"), False),
    ],
)
def test_wide_one_hot_features_are_ids_for_an_embedding(session: Session, fails: bool) -> None:
    failed = [one.op_id for one in run(ONE_HOT_INPUT, session) if one.status == "fail"]
    assert failed == (["rows"] if fails else [])
