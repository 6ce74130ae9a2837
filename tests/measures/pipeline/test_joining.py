from __future__ import annotations

from typing import Any

import pytest

from pipediag.measures.pipeline_iterators import RanIterator, join, may_be
from tests.recordings import make_plan, make_recorded_operation


def ran(path: str, *names: str, **overrides: Any) -> RanIterator:
    values: dict[str, Any] = {
        "path": path,
        "names": names,
        "elements": 1.0,
        "self_ms": 1.0,
        "bytes_per_element": None,
        "parallelism": None,
        "tunable": None,
        "buffer_size": None,
        "buffered_elements": None,
    }
    return RanIterator(**{**values, **overrides})


def unnamed(path: str) -> RanIterator:
    return ran(path, names=None)


def test_names_tie_fused_operations_to_the_one_with_the_function() -> None:
    fused = ran("Root::MapAndBatch", "pipediag_op2", "pipediag_op3")
    source = ran("Root::MapAndBatch::TensorSlice", "pipediag_op1")
    joined = join(make_plan(), [fused, source])
    assert dict(joined.of_operation) == {"op2": [fused], "op1": [source]}
    assert joined.fused == {"op2": ["op3"]}
    assert joined.operation_of[fused.key] == "op2"


def test_an_injected_prefetch_reads_from_the_operation_below() -> None:
    prefetch = ran("Root::Prefetch")
    joined = join(make_plan(), [prefetch, ran("Root::Prefetch::BatchV2", "pipediag_op3")])
    assert joined.inserted == [(prefetch, "op3")]


def test_what_a_source_is_made_of_belongs_to_it() -> None:
    plan = [make_recorded_operation("op1", "TFRecordDataset")]
    flat, files = ran("Root::FlatMap", "pipediag_op1"), ran("Root::FlatMap::TensorSlice")
    joined = join(plan, [flat, files])
    assert joined.of_operation["op1"] == [flat, files]
    assert joined.inserted == []


def test_without_a_profile_kinds_tie_them() -> None:
    fused, source = unnamed("Root::MapAndBatch"), unnamed("Root::MapAndBatch::TensorSlice")
    joined = join(make_plan(), [fused, source])
    assert joined.operation_of == {fused.key: "op2", source.key: "op1"}
    assert joined.fused == {"op2": ["op3"]}


def test_two_maps_are_told_apart_by_their_order() -> None:
    plan = [
        make_recorded_operation("op1", "map"),
        make_recorded_operation("op2", "map", parent_ids=["op1"]),
    ]
    outer, inner = unnamed("Root::ParallelMapV2"), unnamed("Root::ParallelMapV2::Map")
    assert join(plan, [outer, inner]).operation_of == {outer.key: "op2", inner.key: "op1"}


def test_one_name_for_two_operations_goes_round() -> None:
    plan = [
        make_recorded_operation("op1", "map", name="same"),
        make_recorded_operation("op2", "map", name="same", parent_ids=["op1"]),
    ]
    outer, inner = ran("Root::Map", "same"), ran("Root::Map::Map", "same")
    assert join(plan, [outer, inner]).operation_of == {outer.key: "op2", inner.key: "op1"}


@pytest.mark.parametrize(
    ("operation", "iterator", "fits"),
    [
        ("map", "ParallelMap", True),
        ("map", "FlatMap", False),
        ("padded_batch", "PaddedBatch", True),
        ("from_tensor_slices", "TensorSlice", True),
        ("TFRecordDataset", "TFRecord", True),
        ("cache", "MemoryCache", True),
        ("repeat", "ForeverRepeat", True),
        ("interleave", "ParallelInterleave", True),
        ("batch", "PaddedBatch", False),
    ],
)
def test_which_iterator_runs_an_operation(operation: str, iterator: str, fits: bool) -> None:
    assert may_be(operation, iterator) is fits


def test_a_call_that_takes_no_name_is_tied_by_its_kind_where_names_are_seen() -> None:
    """As `map_and_batch` and the reader of CSV files take none."""
    plan = [
        make_recorded_operation("op1", "CsvDataset", name=""),
        make_recorded_operation("op2", "map_and_batch", name=""),
        make_recorded_operation("op3", "batch"),
    ]
    above, fused = ran("Root::BatchV2", "pipediag_op3"), ran("Root::BatchV2::MapAndBatch")
    read = ran("Root::BatchV2::MapAndBatch::CSV")
    joined = join(plan, [above, fused, read])
    assert joined.operation_of == {above.key: "op3", fused.key: "op2", read.key: "op1"}
    assert joined.inserted == []


def test_what_tensorflow_puts_in_is_none_of_the_calls_with_names() -> None:
    prefetch = ran("Root::Prefetch")
    plan = [*make_plan(), make_recorded_operation("op4", "prefetch")]
    joined = join(plan, [prefetch, ran("Root::Prefetch::BatchV2", "pipediag_op3")])
    assert joined.inserted == [(prefetch, "op3")]
