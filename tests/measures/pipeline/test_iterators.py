from __future__ import annotations

import pytest

from pipediag.measures.pipeline_iterators import NodeRate, node_rates, ran_iterators
from tests.measures.traces import make_activity, make_trace
from tests.recordings import make_node, make_snapshot

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


def test_without_a_model_the_profile_counts_per_batch() -> None:
    activity = make_activity("Root::Map", "m", calls=320, self_ns=50_000_000, parallelism=2)
    (iterator,) = ran_iterators([], make_trace(activity), {"m"}, set())
    assert (iterator.elements, iterator.self_ms, iterator.parallelism) == (32.0, 5.0, 2)


def test_two_branches_of_one_path_keep_their_own_numbers() -> None:
    trace = make_trace(
        make_activity(PATH, "a", self_ns=10_000_000), make_activity(PATH, "b", self_ns=30_000_000)
    )
    found = [i for i in ran_iterators(RATES, trace, {"a", "b"}, set()) if i.path == PATH]
    assert [(i.names, i.self_ms) for i in found] == [(("a",), 1.0), (("b",), 3.0)]


def test_another_pipeline_of_the_profile_is_left_out() -> None:
    trace = make_trace(make_activity("Root::Map", "validation"))
    assert ran_iterators([], trace, {"training"}, {"validation"}) == []


def test_so_is_one_whose_operations_are_recorded_no_more() -> None:
    trace = make_trace(make_activity("Root::Map", "pipediag_op7"))
    assert ran_iterators([], trace, {"pipediag_op1"}, set()) == []


def test_a_name_that_tensorflow_gave_is_none() -> None:
    trace = make_trace(make_activity("Root::Prefetch", "inject/prefetch_BatchDatasetV2/_10"))
    ran = {iterator.path: iterator for iterator in ran_iterators(RATES, trace, {"map"}, set())}
    assert ran["Root::Prefetch"].names == ()


def test_inside_the_function_of_a_flat_map_the_profile_counts() -> None:
    nodes = [
        make_node(1, "FlatMap", [2], num_elements=160, processing_time_ns=10_000_000),
        make_node(2, "Map", [], num_elements=3, processing_time_ns=1_000_000),
    ]
    trace = make_trace(make_activity("FlatMap::Map", "m", calls=160, self_ns=80_000_000))
    outer, inner = ran_iterators(node_rates([make_snapshot(10, nodes=nodes)]), trace, {"m"}, set())
    assert (outer.elements, outer.self_ms) == (16.0, 1.0)
    assert (inner.elements, inner.self_ms) == (16.0, 8.0)


def of_a_generator(elements: int) -> list[NodeRate]:
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


def test_within_two_functions_both_must_have_been_counted() -> None:
    nodes = [
        make_node(1, "FlatMap", [2], num_elements=160, processing_time_ns=10_000_000),
        make_node(2, "InterleaveV2", [3], num_elements=160, processing_time_ns=20_000_000),
        make_node(3, "TFRecord", [], num_elements=20, processing_time_ns=30_000_000),
    ]
    rates = node_rates([make_snapshot(10, nodes=nodes)])
    ran = ran_iterators(rates, None, set(), set())
    assert [iterator.self_ms for iterator in ran] == [1.0, 2.0, None]


def test_only_an_iterator_with_a_buffer_has_elements_in_it() -> None:
    nodes = [
        make_node(1, "Prefetch", [2], num_elements=10, buffered_elements=2, buffer_size=4),
        make_node(2, "BatchV2", [3], num_elements=10, buffered_elements=3),
        make_node(3, "Shuffle", [], num_elements=320, buffered_elements=100),
    ]
    ran = ran_iterators(node_rates([make_snapshot(10, nodes=nodes)]), None, set(), set())
    assert [iterator.buffered_elements for iterator in ran] == [2.0, None, 100.0]
    assert [iterator.buffer_size for iterator in ran] == [4, None, None]


def test_a_buffer_of_which_the_model_is_silent_is_as_large_as_the_profile_says() -> None:
    nodes = [make_node(1, "Prefetch", [], num_elements=10)]
    trace = make_trace(make_activity("Prefetch", "p", buffer_size=8, parallelism=2))
    (ran,) = ran_iterators(node_rates([make_snapshot(10, nodes=nodes)]), trace, {"p"}, set())
    assert (ran.buffer_size, ran.parallelism) == (8, None)


def test_inside_a_function_that_no_profile_saw_costs_are_not_known() -> None:
    """The model has counted the last of many iterators alone."""
    nodes = [
        make_node(1, "ParallelInterleaveV4", [2], num_elements=160, processing_time_ns=10_000_000),
        make_node(2, "Map", [], num_elements=3, processing_time_ns=1_000_000, bytes_produced=30),
    ]
    outer, inner = ran_iterators(node_rates([make_snapshot(10, nodes=nodes)]), None, set(), set())
    assert (outer.elements, outer.self_ms) == (16.0, 1.0)
    assert (inner.elements, inner.self_ms, inner.bytes_per_element) == (None, None, None)
    assert (inner.path, inner.kind, inner.names) == ("ParallelInterleaveV4::Map", "Map", None)


@pytest.mark.parametrize(
    ("known", "tunable"),
    [
        ({"parallelism": 4, "autotune": True}, True),
        ({"parallelism": 4, "autotune": False}, False),
        ({"buffer_size": 2, "autotune": True}, True),
        ({"autotune": True}, None),
    ],
)
def test_a_profile_tells_of_tuning_where_there_is_something_to_tune(
    known: dict[str, object], tunable: bool | None
) -> None:
    activity = make_activity("Root::Map", "m", buffered_elements=1.5, element_bytes=64.0, **known)
    (iterator,) = ran_iterators([], make_trace(activity), {"m"}, set())
    assert iterator.tunable is tunable
    assert iterator.buffer_size == known.get("buffer_size")
    assert (iterator.buffered_elements, iterator.bytes_per_element) == (1.5, 64.0)


def test_a_profile_without_a_batch_tells_no_rates() -> None:
    trace = make_trace(make_activity("Root::Map", "m", self_ns=10), get_next_calls=0)
    (iterator,) = ran_iterators([], trace, {"m"}, set())
    assert (iterator.elements, iterator.self_ms) == (None, None)
