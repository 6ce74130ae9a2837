"""The pipeline as written, the iterators that ran, and what each operation cost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pipediag.measures.pipeline import (
    SEVERAL_ITERATORS,
    measure_pipeline,
    plan_of,
    slowest,
    with_latency,
    with_python_calls,
)
from pipediag.measures.pipeline_iterators import (
    RanIterator,
    join,
    node_rates,
    ran_iterators,
)
from pipediag.session.pipeline import Operation
from pipediag.session.recording import EARLIER, ModelSnapshot, RecordedPythonCalls
from tests.measures.traces import make_activity, make_trace
from tests.recordings import (
    make_block,
    make_node,
    make_plan,
    make_recorded_function,
    make_recorded_loop,
    make_recorded_operation,
    make_recording,
    make_snapshot,
    make_window,
)
from tests.records import make_operation

MS = 1_000_000


def test_a_fused_map_carries_the_cost_and_counts_single_elements() -> None:
    recording = make_recording()
    pipeline = measure_pipeline(recording, recording.loops[0], None)[0]
    source, mapped, batch, prefetch = pipeline.ops
    assert (mapped.id, mapped.fused_from, batch.fused_into) == ("op2", ["op3"], "op2")
    assert (mapped.self_ms_per_step, mapped.latency_ms_per_step) == (9.0, 9.0)
    assert (mapped.elements, mapped.bytes_per_element) == (32.0, 128.0)
    assert (mapped.parallelism, mapped.autotuned) == (1, False)
    assert batch.self_ms_per_step is None
    assert source.self_ms_per_step == pytest.approx(0.64)
    assert (prefetch.elements, prefetch.self_ms_per_step) == (1.0, 0.01)
    assert (prefetch.autotuned, prefetch.buffer_size, prefetch.buffered_elements) == (True, 2, 0.0)
    assert (prefetch.name, prefetch.file, prefetch.bytes_per_element) == (None, None, None)
    assert pipeline.bottleneck_op_id == "op2"
    assert pipeline.missing is None


def test_a_step_that_draws_from_several_pipelines_has_none_with_a_reason() -> None:
    loop = make_recorded_loop(several_iterators=True)
    pipeline, operation_of = measure_pipeline(make_recording(loops=[loop]), loop, None)
    assert (pipeline.ops, pipeline.bottleneck_op_id, operation_of) == ([], None, {})
    assert pipeline.missing == SEVERAL_ITERATORS


def test_the_profile_stands_in_where_autotune_is_off() -> None:
    loop = make_recorded_loop(autotune_enabled=False)
    recording = make_recording(loops=[loop], snapshots=[])
    trace = make_trace(make_activity("Root::Map", "pipediag_op2", calls=320, self_ns=20_000_000))
    pipeline, operation_of = measure_pipeline(recording, loop, trace)
    assert pipeline.ops[1].self_ms_per_step == 2.0
    assert operation_of == {("Root::Map", ("pipediag_op2",)): "op2"}


def test_a_profile_that_lost_the_work_leaves_it_to_the_python_that_was_timed() -> None:
    """Elements without work are no operation that takes nothing: its thread ended meanwhile."""
    loop = make_recorded_loop(autotune_enabled=False)
    path = "Root::MapAndBatch"
    trace = make_trace(make_activity(path, "pipediag_op2", "pipediag_op3", calls=10, self_ns=0))
    timed = [RecordedPythonCalls("a", 320, 40 * MS, 10 * MS)]
    for calls, own in ((timed, pytest.approx(4.0)), ([], None)):
        plan = make_plan()
        plan[1] = replace(plan[1], function=make_recorded_function(python_tokens=["a"]))
        windows = [make_window("baseline", make_block(10, 5.0), python_calls=calls)]
        recording = make_recording(loops=[loop], snapshots=[], operations=plan, windows=windows)
        pipeline, _operation_of = measure_pipeline(recording, loop, trace)
        assert pipeline.ops[1].self_ms_per_step == own
        assert pipeline.bottleneck_op_id == ("op2" if calls else None)


def test_what_a_profile_counts_is_brought_to_the_pace_of_unprofiled_steps() -> None:
    """Its own steps took 18 ms in place of 10; a serial operation takes no longer than the step."""
    loop = make_recorded_loop(autotune_enabled=False)
    windows = [make_window("baseline"), make_window("profile", make_block(10, 18.0, None))]
    recording = make_recording(loops=[loop], snapshots=[], windows=windows)
    trace = make_trace(make_activity("Root::Map", "pipediag_op2", calls=320, self_ns=153_000_000))
    pipeline, _operation_of = measure_pipeline(recording, loop, trace)
    assert pipeline.ops[1].self_ms_per_step == pytest.approx(15.3 / 1.8)


def pipeline_of(*kinds: str, iterators: list[str]) -> list[Operation]:
    plan = [
        make_recorded_operation(f"op{n}", kind, parent_ids=[f"op{n - 1}"] if n > 1 else [])
        for n, kind in enumerate(kinds, start=1)
    ]
    nodes = [
        make_node(n, name, [n + 1], num_elements=10) for n, name in enumerate(iterators, start=1)
    ]
    loop = make_recorded_loop(root_op_id=plan[-1].id)
    snapshot = make_snapshot(10, nodes=nodes)
    recording = make_recording(operations=plan, loops=[loop], snapshots=[snapshot])
    return measure_pipeline(recording, loop, None)[0].ops


def test_what_lies_behind_a_cache_that_is_read_costs_nothing_now() -> None:
    ops = pipeline_of(
        "range", "map", "cache", "batch", iterators=["Root", "BatchV2", "MemoryCache"]
    )
    assert [(op.kind, op.elements) for op in ops[:2]] == [("range", 0.0), ("map", 0.0)]


def test_latency_divides_by_the_calls_in_flight_of_the_operation_and_those_around_it() -> None:
    ops = with_latency(
        [
            make_operation(
                "inner", self_ms_per_step=12.0, parallelism=2, inside_function_of="outer"
            ),
            make_operation("outer", "interleave", self_ms_per_step=3.0, parallelism=3),
            make_operation("unknown", self_ms_per_step=None),
        ]
    )
    assert [op.latency_ms_per_step for op in ops] == [2.0, 1.0, None]


def test_the_bottleneck_is_the_slowest_operation_that_a_user_wrote() -> None:
    ops = [
        make_operation("first", latency_ms_per_step=2.0),
        make_operation("second", latency_ms_per_step=2.0),
        make_operation("tf1", latency_ms_per_step=9.0, inserted_by_tensorflow=True),
    ]
    assert slowest(ops) == ["first", "second"]
    assert slowest([]) == []


@pytest.mark.parametrize("latencies", [(2.0, 1.9), (1.9, 2.0), (2.0, 2.0)])
def test_about_equals_keep_their_order_whichever_was_slower(latencies: tuple[float, float]) -> None:
    decode, augment = latencies
    ops = [
        make_operation("read", "TFRecordDataset", latency_ms_per_step=2.0),
        make_operation("decode", "map", latency_ms_per_step=decode, self_ms_per_step=decode),
        make_operation("augment", "map", latency_ms_per_step=augment, self_ms_per_step=2 * augment),
    ]
    assert slowest(ops) == ["decode", "augment", "read"]


def test_what_tensorflow_inserted_stands_behind_what_it_reads_from() -> None:
    ops = pipeline_of(
        "range",
        "shuffle",
        "batch",
        iterators=["Root", "Prefetch", "BatchV2", "MaxIntraOpParallelismV2", "Shuffle", "Range"],
    )
    assert [(op.id, op.kind, op.parent_ids, op.inserted_by_tensorflow) for op in ops] == [
        ("op1", "range", [], False),
        ("op2", "shuffle", ["op1"], False),
        ("tf1", "max_intra_op_parallelism", ["op2"], True),
        ("op3", "batch", ["op2"], False),
        ("tf2", "prefetch", ["op3"], True),
    ]


def test_what_each_replica_has_of_its_own_is_left_out() -> None:
    """Each of two replicas asks for half a batch a step."""
    plan = [
        make_recorded_operation("op1", "range"),
        make_recorded_operation("op2", "batch", parent_ids=["op1"]),
    ]
    loop = make_recorded_loop(root_op_id="op2", replicas=2)
    trace = make_trace(
        make_activity("Root::Prefetch", calls=20, self_ns=10_000_000),
        make_activity("Root::Prefetch", "device_prefetch", calls=20, self_ns=10_000_000),
        make_activity("Root::Prefetch::Generator", calls=20, self_ns=900_000_000),
        make_activity("Root::Prefetch::Rebatch", calls=20, self_ns=10_000_000),
        make_activity("Root::Prefetch::Rebatch::BatchV2", plan[1].name, self_ns=40_000_000),
        get_next_calls=20,
    )
    recording = make_recording(operations=plan, loops=[loop], snapshots=[])

    ops = measure_pipeline(recording, loop, trace)[0].ops

    assert [(op.kind, op.parent_ids, op.elements, op.self_ms_per_step) for op in ops[1:]] == [
        ("batch", ["op1"], 1.0, 4.0),
        ("rebatch", ["op2"], 2.0, 1.0),
        ("prefetch", ["tf1"], 2.0, 1.0),
    ]


def test_calls_belong_to_the_innermost_operation_that_makes_them() -> None:
    calls = [
        RecordedPythonCalls("a", 20, 40 * MS, 10 * MS),
        RecordedPythonCalls("b", 320, 160 * MS, 8 * MS),
        RecordedPythonCalls("of another pipeline", 1, MS, MS),
    ]
    outer = make_recorded_function(python_tokens=["a", "b"])
    inner = make_recorded_function(python_tokens=["b"])
    recording = make_recording(
        operations=[
            make_recorded_operation("op1", "flat_map", function=outer),
            make_recorded_operation("op2", "map", function=inner, inside_function_of="op1"),
            make_recorded_operation("op3", "batch"),
        ],
        windows=[make_window("baseline", make_block(10, 5.0), python_calls=calls)],
    )
    ops = [make_operation(op_id, "map") for op_id in ("op1", "op2", "op3")]
    outer, inner, batch = with_python_calls(ops, recording, make_recorded_loop())
    assert outer.python_calls_per_step == 2.0
    assert (outer.python_wall_ms_per_step, outer.python_cpu_ms_per_step) == (4.0, 1.0)
    assert inner.python_calls_per_step == 32.0
    assert inner.python_cpu_ms_per_step == pytest.approx(0.8)
    assert batch.python_calls_per_step is None


def test_a_function_that_was_traced_twice_counts_once() -> None:
    operations = [
        make_recorded_operation("op1", "from_tensor_slices"),
        make_recorded_operation("op2", "flat_map", parent_ids=["op1"]),
        make_recorded_operation("op3", "TFRecordDataset", line=5, inside_function_of="op2"),
        make_recorded_operation("op4", "TFRecordDataset", line=5, inside_function_of="op2"),
    ]
    assert [op.id for op in plan_of(operations, "op2")] == ["op1", "op4", "op2"]


RATES = node_rates([make_snapshot(10), make_snapshot(50)])
PATH = "Root::Prefetch::MapAndBatch"


def test_two_branches_of_one_path_keep_their_own_numbers() -> None:
    trace = make_trace(
        make_activity(PATH, "a", self_ns=10_000_000), make_activity(PATH, "b", self_ns=30_000_000)
    )
    found = [i for i in ran_iterators(RATES, trace, {"a", "b"}, set()) if i.path == PATH]
    assert [(i.names, i.self_ms_per_step) for i in found] == [(("a",), 1.0), (("b",), 3.0)]


def test_another_pipeline_of_the_profile_is_left_out() -> None:
    trace = make_trace(make_activity("Root::Map", "validation"))
    assert ran_iterators([], trace, {"training"}, {"validation"}) == []


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
    assert (outer.self_ms_per_step, inner.self_ms_per_step, inner.names) == (1.0, 40.0, ("g",))


def test_where_inner_iterators_are_forgotten_the_profile_counts_at_the_native_pace() -> None:
    trace = make_trace(make_activity("FlatMap::Generator", "g", calls=160, self_ns=900_000_000))
    _, _, inner = ran_iterators(of_a_generator(100), trace, {"g"}, set(), slowed=1.5)
    assert inner.self_ms_per_step == pytest.approx(60.0)


def ran(path: str, *names: str, **overrides: Any) -> RanIterator:
    usual = {"elements": 1.0, "self_ms_per_step": 1.0}
    return RanIterator(path=path, names=names, **{**usual, **overrides})


def test_what_a_source_is_made_of_belongs_to_it() -> None:
    plan = [make_recorded_operation("op1", "TFRecordDataset")]
    flat, files = ran("Root::FlatMap", "pipediag_op1"), ran("Root::FlatMap::TensorSlice")
    joined = join(plan, [flat, files])
    assert joined.of_operation["op1"] == [flat, files]
    assert joined.inserted == []


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


@pytest.mark.parametrize("names", [None, ()])
def test_all_that_an_earlier_dataset_reads_from_belongs_to_it(
    names: tuple[str, ...] | None,
) -> None:
    plan = [
        make_recorded_operation("op1", EARLIER, name=""),
        make_recorded_operation("op2", "batch", parent_ids=["op1"], name=""),
    ]
    ahead, batch, mapped, source = (
        replace(ran(path), names=names)
        for path in (
            "Prefetch",
            "Prefetch::BatchV2",
            "Prefetch::BatchV2::Map",
            "Prefetch::BatchV2::Map::Range",
        )
    )
    joined = join(plan, [ahead, batch, mapped, source])
    assert dict(joined.of_operation) == {"op2": [batch], "op1": [mapped, source]}
    assert [iterator for iterator, _ in joined.inserted] == [ahead]


def test_the_longest_pair_of_the_fullest_iterator_counts() -> None:
    late = make_snapshot(20, iterator=2)
    late.nodes = late.nodes[:2]
    early = [make_snapshot(10), make_snapshot(20), make_snapshot(30)]
    early[1].nodes[2].processing_time_ns = 10**12
    rates = node_rates([*early, make_snapshot(10, iterator=2), late])
    assert len(rates) == 4
    assert rates[2].self_ms_per_step == 9.0


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
