"""The iterators that ran, their rates, and their operations."""

from __future__ import annotations

from typing import Any

import pytest

from pipediag.measures.pipeline_iterators import (
    RanIterator,
    join,
    may_be,
    node_rates,
    ran_iterators,
)
from pipediag.session.recording import ModelSnapshot
from tests.measures.traces import make_activity, make_trace
from tests.recordings import make_node, make_plan, make_recorded_operation, make_snapshot

RATES = node_rates([make_snapshot(10), make_snapshot(50)])
PATH = "Root::Prefetch::MapAndBatch"


def test_the_model_has_the_numbers_and_the_profile_the_names() -> None:
    trace = make_trace(make_activity(PATH, "map", "batch", self_ns=10**9))
    ran = {
        iterator.path: iterator for iterator in ran_iterators(RATES, trace, {"map", "batch"}, set())
    }
    assert ran[PATH].names == ("map", "batch")
    assert ran[PATH].self_ms == 9.0
    assert ran["Root::Prefetch"].names is None
    assert "Root" not in ran


def test_two_branches_of_one_path_keep_their_own_numbers() -> None:
    trace = make_trace(
        make_activity(PATH, "a", self_ns=10_000_000), make_activity(PATH, "b", self_ns=30_000_000)
    )
    found = [i for i in ran_iterators(RATES, trace, {"a", "b"}, set()) if i.path == PATH]
    assert [(i.names, i.self_ms) for i in found] == [(("a",), 1.0), (("b",), 3.0)]


def test_another_pipeline_of_the_profile_is_left_out() -> None:
    trace = make_trace(make_activity("Root::Map", "validation"))
    assert ran_iterators([], trace, {"training"}, {"validation"}) == []


def test_inside_the_function_of_a_flat_map_the_profile_counts() -> None:
    nodes = [
        make_node(1, "FlatMap", [2], num_elements=160, processing_time_ns=10_000_000),
        make_node(2, "Map", [], num_elements=3, processing_time_ns=1_000_000),
    ]
    trace = make_trace(make_activity("FlatMap::Map", "m", calls=160, self_ns=80_000_000))
    outer, inner = ran_iterators(node_rates([make_snapshot(10, nodes=nodes)]), trace, {"m"}, set())
    assert (outer.elements, outer.self_ms) == (16.0, 1.0)
    assert (inner.elements, inner.self_ms) == (16.0, 8.0)


def of_a_generator(elements: int) -> list[RanIterator]:
    """Rates of 10 batches of 16 from a generator, of whose elements the model has counted some."""
    nodes = [
        make_node(1, "FlatMap", [2, 3], num_elements=160, processing_time_ns=10_000_000),
        make_node(2, "FromTensor", [], num_elements=1, processing_time_ns=1_000),
        make_node(3, "Generator", [], num_elements=elements, processing_time_ns=400_000_000),
    ]
    return node_rates([make_snapshot(10, nodes=nodes)])


def test_the_one_iterator_of_a_generator_is_the_models_to_count() -> None:
    """A profile makes each of its calls longer, and with it a serial source than the step."""
    trace = make_trace(make_activity("FlatMap::Generator", "g", calls=160, self_ns=900_000_000))
    outer, _, inner = ran_iterators(of_a_generator(160), trace, {"g"}, set(), slowed=1.5)
    assert (outer.self_ms, inner.self_ms, inner.names) == (1.0, 40.0, ("g",))


def test_where_inner_iterators_are_forgotten_the_profile_counts_at_the_native_pace() -> None:
    trace = make_trace(make_activity("FlatMap::Generator", "g", calls=160, self_ns=900_000_000))
    _, _, inner = ran_iterators(of_a_generator(100), trace, {"g"}, set(), slowed=1.5)
    assert inner.self_ms == pytest.approx(60.0)


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


def test_rates_are_differences_of_two_snapshots() -> None:
    rates = {rate.path: rate for rate in node_rates([make_snapshot(10), make_snapshot(50)])}
    assert list(rates) == [
        "Root",
        "Root::Prefetch",
        "Root::Prefetch::MapAndBatch",
        "Root::Prefetch::MapAndBatch::TensorSlice",
    ]
    mapped = rates["Root::Prefetch::MapAndBatch"]
    assert (mapped.elements, mapped.self_ms) == (1.0, 9.0)
    assert mapped.bytes_per_element == 4096.0
    assert (mapped.parallelism, mapped.tunable) == (1, False)
    source = rates["Root::Prefetch::MapAndBatch::TensorSlice"]
    assert (source.elements, source.self_ms) == (32.0, pytest.approx(0.64))
    assert source.bytes_per_element is None


def test_the_longest_pair_of_the_fullest_iterator_counts() -> None:
    late = make_snapshot(20, iterator=2)
    late.nodes = late.nodes[:2]
    early = [make_snapshot(10), make_snapshot(20), make_snapshot(30)]
    early[1].nodes[2].processing_time_ns = 10**12
    rates = node_rates([*early, make_snapshot(10, iterator=2), late])
    assert len(rates) == 4
    assert rates[2].self_ms == 9.0


def test_a_whole_pipeline_seen_once_counts_before_the_end_of_one_seen_twice() -> None:
    whole = make_snapshot(12, iterator=1)
    ending = [make_snapshot(steps, iterator=2) for steps in (38, 40)]
    for snapshot in ending:
        snapshot.nodes = snapshot.nodes[:2]
    rates = node_rates([whole, *ending])
    assert len(rates) == 4
    assert rates[2].elements == 1.0


def cached(iterator: int, *, fills: bool) -> ModelSnapshot:
    nodes = [make_node(1, "BatchV2", [2]), make_node(2, "MemoryCacheImpl", [3] if fills else [])]
    if fills:
        nodes.append(make_node(3, "Map", [], num_elements=320))
    return make_snapshot(10, iterator=iterator, nodes=nodes)


@pytest.mark.parametrize(("read", "operations"), [(1, 2), (2, 2), (0, 3)])
def test_what_fills_a_cache_is_no_rate_of_what_reads_it(read: int, operations: int) -> None:
    snapshots = [cached(1, fills=True), *(cached(2 + n, fills=False) for n in range(read))]
    assert len(node_rates(snapshots)) == operations
