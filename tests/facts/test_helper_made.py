from __future__ import annotations

import math

import pytest

from pipediag.facts.pipeline import by_hand, call_name, operations, passes_over_data, place_name
from pipediag.rules.registry import run_rules
from pipediag.session.pipeline import Operation
from tests.factories import make_keras, make_loop, make_session
from tests.records import make_function, make_operation, make_pipeline
from tests.rules.sessions import chain


def decoded_images() -> list[Operation]:
    made = {"helper": "image_dataset_from_directory", "made_by_framework": True, "line": 7}
    return chain(
        make_operation("source", "from_tensor_slices", cardinality=1000, elements=32.0, **made),
        make_operation(
            "map",
            "map",
            elements=32.0,
            self_ms_per_step=8.0,
            element_bytes=1000,
            function=make_function(),
            **made,
        ),
        make_operation("batch", "batch", parameters={"batch_size": 32}, **made),
    )


def test_what_helpers_make_is_the_users_and_what_keras_makes_for_itself_is_not() -> None:
    kerass = make_operation("own", "map", made_by_framework=True)
    session = make_session(pipeline=make_pipeline(ops=[*decoded_images(), kerass]))
    assert [op.id for op in operations(session)] == ["source", "map", "batch"]


def test_names_say_whose_call_it_is() -> None:
    _, decoding, _ = decoded_images()
    assert call_name(decoding) == "`map` of `image_dataset_from_directory` at line 7"
    assert place_name(decoding) == "map of image_dataset_from_directory in line 7"


def test_a_helper_that_is_called_as_what_it_makes_is_named_once() -> None:
    loaded = make_operation("load", "load", helper="load", made_by_framework=True, line=3)
    assert call_name(loaded) == "`load` at line 3"
    assert place_name(loaded) == "load in line 3"


def test_a_rule_speaks_of_it_and_says_how_to_follow_its_advice() -> None:
    session = make_session(
        pipeline=make_pipeline(ops=decoded_images(), bottleneck_op_id="map"),
        loops=[make_loop(keras=make_keras(epochs=10))],
        differential=None,
    )
    (finding,) = [found for found in run_rules(session) if found.rule == "missing-cache"]
    assert finding.status == "fail"
    assert finding.edit is not None
    assert "`map` of `image_dataset_from_directory` at line 7" in finding.advice
    assert "`batch_size=None, shuffle=False`" in finding.advice


@pytest.mark.parametrize(
    ("helper", "said"),
    [
        (None, None),
        ("make_csv_dataset", "`num_parallel_reads`"),
        ("make_batched_features_dataset", "`parser_num_threads`"),
        ("map_and_batch", "`map_and_batch` makes it"),
        ("tfds.load", "`read_config=tfds.ReadConfig(...)`"),
        ("as_dataset", "`.cache()`"),
    ],
)
def test_how_to_change_what_a_helper_makes(helper: str | None, said: str | None) -> None:
    how = by_hand(make_operation("map", "map", helper=helper))
    assert how is None if said is None else said in (how or "")


def test_an_endless_repeat_that_is_zipped_with_an_end_is_no_endless_pass() -> None:
    """As `timeseries_dataset_from_array` repeats the whole array beside its windows."""
    repeat = make_operation("repeat", "repeat", cardinality=-1)
    zipped = make_operation("zip", "zip", parent_ids=["repeat"], cardinality=20)
    loop = make_loop(keras=make_keras(epochs=3))
    ended = make_session(pipeline=make_pipeline(ops=[repeat, zipped]), loops=[loop])
    assert passes_over_data(ended) == 3
    endless = make_session(pipeline=make_pipeline(ops=[repeat]), loops=[loop])
    assert passes_over_data(endless) == math.inf
