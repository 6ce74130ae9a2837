"""Code to paste in by hand is code that exists: no setting of a trial is an argument there."""

from __future__ import annotations

from typing import Any

import pytest

from pipediag.patching.snippets import snippet
from pipediag.session.edits import AUTOTUNE, Change, Insert, Move, Replace, SetModel, SetParameters
from pipediag.session.recorded_loops import KerasUse, Softmax
from pipediag.vocabulary import Scalar, SparseOrDense
from tests.factories import make_keras, make_loop, make_session
from tests.records import make_function, make_operation, make_pipeline

SHOWN = 1500
"""Characters of such code that the page shows."""


ADAM = make_keras(optimizer="Adam")


def by_hand(keras: KerasUse = ADAM, **settings: Scalar) -> str:
    session = make_session(loops=[make_loop(keras=keras)])
    code = snippet(session, [SetModel(settings)])
    assert code is not None
    return code


@pytest.mark.parametrize(
    "change",
    [
        Insert("batch", "cut_padding"),
        Replace("batch", "bucket_by_sequence_length", {"to_longest": True}),
    ],
)
def test_inputs_that_declare_a_length_are_named_with_rows_of_other_lengths(change: Change) -> None:
    keras = make_keras(fixed_lengths={"ids": 200, "user": 64})
    spec = "TensorSpec(shape=(None, 200), dtype=tf.int64, name=None)"
    loop = make_loop(keras=keras, element_spec=spec)
    code = snippet(make_session(loops=[loop]), [change]) or ""
    assert "keras.Input((None,), ...)  # in place of 200, the length of ids" in code[:SHOWN]
    assert "user" not in code


def sgd_for_embeddings(keras: KerasUse) -> str:
    return by_hand(keras, optimizer="sgd_for_tables")


def test_a_table_without_its_terms() -> None:
    code = by_hand(table_terms_left_out=True, optimizer="row_wise")

    assert "without its embeddings_regularizer" in code
    assert "from pipediag.optimizers import LazyAdam\nmodel.compile(LazyAdam(...), ...)" in code
    assert "table_terms_left_out" not in code
    assert "row_wise" not in code


@pytest.mark.parametrize(
    ("settings", "argument"),
    [
        ({"jit_compile": True, "table_terms_left_out": False}, "jit_compile=True"),
        ({"optimizer": "sgd"}, "optimizer='sgd'"),
    ],
)
def test_plain_settings_are_arguments(settings: dict[str, Scalar], argument: str) -> None:
    assert by_hand(**settings) == f"model.compile(..., {argument})"


def test_sgd_for_embeddings_is_a_class_of_the_optimizer_s_own() -> None:
    code = sgd_for_embeddings(ADAM)

    assert code.startswith("class SgdForTables(keras.optimizers.Adam):")
    assert "optimizer = SgdForTables(...)  # with its arguments, except `use_ema`" in code
    assert code.endswith("model.compile(optimizer, ...)  # slots of the tables stay allocated")
    assert "decay" not in code


@pytest.mark.parametrize(
    ("optimizer", "settings"), [("AdamW", {}), ("Adam", {"weight_decay": 0.01})]
)
def test_sgd_for_embeddings_does_not_decay_them(
    optimizer: str, settings: dict[str, Scalar]
) -> None:
    keras = make_keras(optimizer=optimizer, optimizer_settings=settings)
    code = sgd_for_embeddings(keras)

    excluded = code.index('\noptimizer.exclude_from_weight_decay(var_names=["embeddings"])\n')
    assert excluded < code.index("model.compile(optimizer")


@pytest.mark.parametrize(
    ("own", "derived"),
    [
        ("Nadam", "keras.optimizers.Nadam"),
        ("LazyAdam", "pipediag.optimizers.LazyAdam"),
        ("LossScaleOptimizer", "keras.optimizers.Adam"),
    ],
)
def test_sgd_for_embeddings_derives_from_a_class_that_there_is(own: str, derived: str) -> None:
    code = sgd_for_embeddings(make_keras(optimizer=own))
    assert code.startswith(f"class SgdForTables({derived}):")


@pytest.mark.parametrize("labels", ["sparse", "dense"])
def test_drawn_classes_are_a_model_in_the_place_of_the_user_s(labels: SparseOrDense) -> None:
    words = Softmax(weights="dense/kernel", classes=3_000_000, features=64, labels=labels)
    session = make_session(loops=[make_loop(keras=make_keras(), softmaxes=[words])])
    code = snippet(session, [SetModel({"sampled_softmax": 512, "jit_compile": False})])

    assert code is not None
    assert "model = SampledSoftmax(vectors, 3000000, 512)\n" in code
    assert code.endswith("model.compile(..., jit_compile=False)")
    assert len(code) < SHOWN


def of_a_pipeline(*changes: Change, **of_map: Any) -> str:
    ops = [
        make_operation("shuffle", "shuffle", line=37),
        make_operation("map", "map", line=38, parent_ids=["shuffle"], **of_map),
        make_operation("batch", "batch", line=39, parent_ids=["map"]),
    ]
    code = snippet(make_session(pipeline=make_pipeline(ops=ops)), changes)
    assert code is not None
    return code


@pytest.mark.parametrize("turned", [False, True])
def test_calls_behind_the_same_one_are_in_the_order_that_was_measured(turned: bool) -> None:
    """A cache behind a shuffle would freeze one order for all epochs."""
    changes = [Move("shuffle", "map"), Insert("map", "cache", {"elements": 20_000})]

    assert of_a_pipeline(*(reversed(changes) if turned else changes)) == (
        ".cache()  # after the map on line 38\n.shuffle(...)  # after that cache"
    )


def test_a_prefetch_stands_behind_what_is_moved_to_the_same_place() -> None:
    code = of_a_pipeline(
        Insert("map", "prefetch", {"buffer_size": 2}),
        Move("shuffle", "map"),
        Insert("batch", "cache", {}),
        Insert("map", "cache", {}),
    )

    assert code.splitlines() == [
        ".cache()  # after the batch on line 39",
        ".cache()  # after the map on line 38",
        ".shuffle(...)  # after that cache",
        ".prefetch(buffer_size=2)  # after that shuffle",
    ]


def test_python_behind_a_batch_comes_with_the_function_that_calls_it_for_rows() -> None:
    python = make_function(stateful=True, graph_ops={"PyFunc": 1})
    code = of_a_pipeline(Move("map", "batch"), function=python)

    assert code.startswith(".map(...)  # after the batch on line 39\n")
    assert "def for_each_row(function):" in code
    assert "for_each_row" not in of_a_pipeline(Move("shuffle", "map"), function=python)


def test_what_tensorflow_adapts_is_written_as_users_write_it() -> None:
    adapted = SetParameters("map", {"cycle_length": AUTOTUNE, "num_parallel_calls": AUTOTUNE})

    assert of_a_pipeline(adapted) == (
        ".map(..., cycle_length=tf.data.AUTOTUNE, num_parallel_calls=tf.data.AUTOTUNE)"
    )
