"""Code to paste in by hand is code that exists: no setting of a trial is an argument there."""

from __future__ import annotations

from typing import Any

import pytest

from pipediag.patching.snippets import snippet
from pipediag.session.edits import AUTOTUNE, Change, Insert, Move, Replace, SetModel, SetParameters
from pipediag.vocabulary import Scalar
from tests.factories import make_keras, make_loop, make_session
from tests.records import make_function, make_operation, make_pipeline

SHOWN = 1600
"""Characters of such code that the page shows."""


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


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"jit_compile": True}, "model.compile(..., jit_compile=True)"),
        ({"optimizer": "sgd"}, "model.compile(..., optimizer='sgd')"),
        (
            {"optimizer": "row_wise"},
            "from pipediag.optimizers import LazyAdam\n"
            "model.compile(LazyAdam(...), ...)  # with the arguments it had",
        ),
    ],
)
def test_settings_are_arguments_and_a_row_wise_optimizer_is_imported(
    settings: dict[str, Scalar], code: str
) -> None:
    session = make_session(loops=[make_loop(keras=make_keras(optimizer="Adam"))])
    assert snippet(session, [SetModel(settings)]) == code


def test_an_argument_that_the_trial_left_out_is_named() -> None:
    keras = make_keras(optimizer_settings={"use_ema": True})
    session = make_session(loops=[make_loop(keras=keras)])
    assert "but `use_ema`" in (snippet(session, [SetModel({"optimizer": "row_wise"})]) or "")


@pytest.mark.parametrize(
    ("file", "code"),
    [
        ("rows.py", "super().__init__(workers=2, max_queue_size=20)"),
        (None, "data.workers = 2\ndata.max_queue_size = 20"),
    ],
)
def test_workers_are_set_on_an_object_whose_class_is_keras_s_own(
    file: str | None, code: str
) -> None:
    session = make_session(loops=[make_loop(keras=make_keras(source_file=file))])
    change = Replace("rows", "PyDataset", {"workers": 2, "max_queue_size": 20})
    assert snippet(session, [change]) == code


def of_a_pipeline(*changes: Change, **of_map: Any) -> str:
    ops = [
        make_operation("shuffle", "shuffle", line=37),
        make_operation("map", "map", line=38, parent_ids=["shuffle"], **of_map),
        make_operation("batch", "batch", line=39, parent_ids=["map"]),
    ]
    code = snippet(make_session(pipeline=make_pipeline(ops=ops)), changes)
    assert code is not None
    return code


def test_a_copy_to_the_device_stands_behind_what_is_moved_to_the_same_place() -> None:
    code = of_a_pipeline(
        Insert("map", "prefetch_to_device", {"device": "/GPU:0"}),
        Move("shuffle", "map"),
        Insert("batch", "cache", {}),
        Insert("map", "cache", {}),
    )

    assert code.splitlines() == [
        ".cache()  # after the batch on line 39",
        ".cache()  # after the map on line 38",
        ".shuffle(...)  # after that cache",
        ".apply(tf.data.experimental.prefetch_to_device('/GPU:0'))  # after that shuffle",
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
