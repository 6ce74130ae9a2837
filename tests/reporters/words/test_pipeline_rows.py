from __future__ import annotations

import pytest

from pipediag.reporters.words import pipeline_rows
from pipediag.reporters.words.quantities import NOTHING
from pipediag.reporters.words.source_names import SourceNames
from pipediag.session.pipeline import Operation, Pipeline
from tests import factories, records


def rows_of(
    *operations: Operation, bottleneck: str | None = None
) -> list[pipeline_rows.PipelineRow]:
    pipeline = Pipeline(ops=list(operations), bottleneck_op_id=bottleneck)
    session = factories.make_session(pipeline=pipeline)
    return pipeline_rows.pipeline_rows(pipeline, SourceNames(session))


def test_rows_keep_the_order_of_the_data_and_share_the_time() -> None:
    rows = rows_of(
        records.make_operation("a", "range", self_ms_per_step=1.0),
        records.make_operation("b", "map", self_ms_per_step=3.0, parent_ids=["a"]),
        bottleneck="b",
    )

    assert [row.op.id for row in rows] == ["a", "b"]
    assert [row.share_percent for row in rows] == [25.0, 75.0]
    assert [row.bottleneck for row in rows] == [False, True]
    assert [row.reads_from for row in rows] == [[], []]


def test_an_operation_without_a_time_has_no_share() -> None:
    rows = rows_of(records.make_operation("a", self_ms_per_step=None))

    assert rows[0].share_percent is None


def test_branches_say_what_they_read() -> None:
    rows = rows_of(
        records.make_operation("a", "range"),
        records.make_operation("b", "TextLineDataset"),
        records.make_operation("c", "zip", parent_ids=["a", "b"]),
    )

    assert rows[2].reads_from == ["range", "TextLineDataset"]


def test_what_tensorflow_did_is_said_in_words() -> None:
    fused = records.make_operation(
        "a", "map", fused_into="b", function=records.make_function(name="pad")
    )
    rows = rows_of(fused, records.make_operation("b", "batch", fused_from=["a"]))

    assert rows[0].notes == ["fused into batch, counted there"]
    assert rows[1].notes == ["fused from map(pad)"]


def test_the_dearest_rows_include_the_bottleneck_in_data_order() -> None:
    operations = [
        records.make_operation(f"op_{index}", self_ms_per_step=float(index)) for index in range(9)
    ]
    rows = rows_of(*operations, bottleneck="op_1")

    assert [row.op.id for row in pipeline_rows.dearest(rows, 3)] == ["op_1", "op_7", "op_8"]


@pytest.mark.parametrize(
    ("fields", "parallel", "buffer"),
    [
        ({}, NOTHING, NOTHING),
        ({"parallelism": 1, "autotuned": False}, "1, serial", NOTHING),
        ({"parallelism": 4, "autotuned": False}, "4, fixed", NOTHING),
        ({"parallelism": 2, "autotuned": True}, "2, tuned", NOTHING),
        ({"autotuned": True, "buffer_size": 2, "buffered_elements": 0.1}, NOTHING, "0.10 of 2"),
        ({"buffer_size": 1000}, NOTHING, "1,000 slots"),
        ({"buffered_elements": 3.0}, NOTHING, "3 held"),
    ],
)
def test_parallelism_and_buffers_in_words(
    fields: dict[str, object], parallel: str, buffer: str
) -> None:
    op = records.make_operation(**fields)

    assert pipeline_rows.parallel_calls(op) == parallel
    assert pipeline_rows.buffer_fill(op).replace("\xa0", " ") == buffer


def test_a_lambda_is_called_lambda() -> None:
    op = records.make_operation(function=records.make_function(name="<module>.<lambda>"))

    assert pipeline_rows.operation_title(op) == "map(lambda)"


def test_a_function_within_others_is_called_by_its_own_name() -> None:
    name = "ArrayDataAdapter.get_tf_dataset.<locals>.slice_inputs.<locals>.grab_batch"
    op = records.make_operation("op", "map", function=records.make_function(name=name))
    assert pipeline_rows.operation_title(op) == "map(grab_batch)"


def test_the_share_of_the_step_stands_beside_that_of_the_pipeline() -> None:
    operations = [
        records.make_operation("a", "range", self_ms_per_step=None),
        records.make_operation("b", "map", self_ms_per_step=30.0),
    ]
    pipeline = Pipeline(ops=operations, bottleneck_op_id=None)
    places = SourceNames(factories.make_session(pipeline=pipeline))

    rows = pipeline_rows.pipeline_rows(pipeline, places, step_ms=20.0)

    assert [row.step_percent for row in rows] == [None, 150.0]
    assert [row.step_percent for row in rows_of(*operations)] == [None, None]
