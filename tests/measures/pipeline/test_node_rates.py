from __future__ import annotations

import pytest

from pipediag.measures.pipeline_iterators import node_rates
from pipediag.session.recorded_model import ModelSnapshot
from tests.recordings import make_node, make_snapshot


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


def test_counters_of_another_iterator_are_not_subtracted() -> None:
    rates = node_rates([make_snapshot(90, iterator=1), make_snapshot(20, iterator=2)])
    assert rates[1].elements == 1.0


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


def test_a_cache_that_was_hardly_read_yet_is_one_that_fills() -> None:
    snapshots = [*(cached(n, fills=True) for n in range(3)), cached(3, fills=False)]
    assert len(node_rates(snapshots)) == 3


def test_branches_of_one_path_are_summed() -> None:
    nodes = [
        make_node(1, "ParallelInterleaveV4", [2, 3]),
        make_node(2, "TFRecord[0]", [], num_elements=30),
        make_node(3, "TFRecord[1]", [], num_elements=10),
    ]
    rates = node_rates([make_snapshot(10, nodes=nodes)])
    assert [(rate.path, rate.elements) for rate in rates[1:]] == [
        ("ParallelInterleaveV4::TFRecord", 4.0)
    ]


def test_no_batches_no_rates() -> None:
    assert node_rates([]) == []
    assert node_rates([make_snapshot(0)]) == []


@pytest.mark.parametrize(
    ("parallelism", "buffer", "tunable"),
    [(None, None, None), (False, None, False), (False, True, True), (True, False, True)],
)
def test_what_has_nothing_to_tune_is_not_said_to_be_fixed(
    parallelism: bool | None, buffer: bool | None, tunable: bool | None
) -> None:
    node = make_node(1, "Map", [], parallelism_tunable=parallelism, buffer_size_tunable=buffer)
    (rate,) = node_rates([make_snapshot(10, nodes=[node])])
    assert rate.tunable is tunable


def test_a_buffer_is_as_full_as_in_the_mean_of_the_two_snapshots() -> None:
    def read(batches: int, **counted: int) -> ModelSnapshot:
        return make_snapshot(batches, nodes=[make_node(1, "Prefetch", [], **counted)])

    first, last = read(10, buffered_elements=1), read(20, buffered_elements=4)
    assert node_rates([first, last])[0].buffered_elements == 2.5
    assert node_rates([last])[0].buffered_elements == 4.0


def test_one_element_of_one_byte_has_a_size() -> None:
    node = make_node(1, "Map", [], num_elements=1, bytes_produced=1)
    assert node_rates([make_snapshot(1, nodes=[node])])[0].bytes_per_element == 1.0
    empty = make_node(1, "Map", [], num_elements=0, bytes_produced=8)
    assert node_rates([make_snapshot(1, nodes=[empty])])[0].bytes_per_element is None


def test_a_node_that_began_anew_between_two_snapshots_is_no_negative_rate() -> None:
    def read(batches: int, elements: int, spent_ns: int) -> ModelSnapshot:
        node = make_node(1, "Map", [], num_elements=elements, processing_time_ns=spent_ns)
        return make_snapshot(batches, nodes=[node])

    (rate,) = node_rates([read(10, 500, 9_000_000), read(20, 20, 1_000_000)])
    assert (rate.elements, rate.self_ms) == (0.0, 0.0)
