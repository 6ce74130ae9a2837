"""Forecasts from hand-made sessions: 10 ms a step, 7 of them input wait, unless said otherwise."""

from __future__ import annotations

from typing import Any

import pytest

from pipediag.forecast import forecast
from pipediag.forecast.calibration import network_of
from pipediag.session.edits import (
    AUTOTUNE,
    Change,
    Edit,
    Insert,
    Move,
    Remove,
    Replace,
    SetModel,
    SetOptions,
    SetParameters,
)
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.session.run import Device
from pipediag.session.steps import Differential, StepRow
from tests.factories import make_compute_bound_session, make_host, make_session
from tests.records import (
    make_breakdown,
    make_environment,
    make_function,
    make_input_wait,
    make_operation,
    make_pipeline,
    make_pipeline_ops,
    make_steps,
)

PARALLEL = SetParameters("map_0", {"num_parallel_calls": AUTOTUNE})
FACTOR = 10 / 9.2
"""The factories' stage: source 0.1, map 9 and batch 0.1 ms by tf.data's clock, 10 ms in truth."""
IDLE = make_host(cores_busy=0.0, threads={})


def edit(*changes: Change) -> Edit:
    return Edit(id="rule:map_0", label="an edit", changes=changes)


def stateless_ops() -> list[Operation]:
    source, mapped, batch, prefetch = make_pipeline_ops()
    return [source, mapped.model_copy(update={"function": make_function()}), batch, prefetch]


def stateless(**overrides: Any) -> Session:
    return make_session(**{"pipeline": make_pipeline(ops=stateless_ops()), **overrides})


def fused(**overrides: Any) -> Session:
    """source 1 ms -> MapAndBatch 8 ms with one call, 32 elements a step."""
    ops = [
        make_operation("source", "from_tensor_slices", elements=32.0, self_ms_per_step=1.0),
        make_operation(
            "map",
            parent_ids=["source"],
            elements=32.0,
            self_ms_per_step=8.0,
            parallelism=1,
            function=make_function(),
            iterator_name="MapAndBatch",
            fused_from=["batch"],
        ),
        make_operation(
            "batch",
            "batch",
            parent_ids=["map"],
            elements=None,
            self_ms_per_step=None,
            fused_into="map",
            parameters={"batch_size": 32},
        ),
    ]
    return make_session(**{"pipeline": make_pipeline(ops=ops), "host": IDLE, **overrides})


def test_the_tf_data_papers_pipeline_from_71_to_25_ms_a_batch() -> None:
    ops = [
        make_operation("read", "interleave", elements=10.0, self_ms_per_step=50.0),
        make_operation("map", parent_ids=["read"], elements=10.0, self_ms_per_step=20.0),
        make_operation("batch", "batch", parent_ids=["map"], self_ms_per_step=1.0),
    ]
    options = {
        "threading.private_threadpool_size": 10,
        "optimization.apply_default_optimizations": False,
    }
    session = make_session(
        pipeline=make_pipeline(ops=ops, options=options),
        steps=make_steps(mean_ms=72.0),
        breakdown=make_breakdown(72.0, input_wait=100 * 71 / 72),
        ceiling=None,
        differential=None,
        host=IDLE,
        step_rows=[],
    )
    found = forecast(
        session,
        edit(
            SetParameters("read", {"num_parallel_calls": 2}),
            SetParameters("map", {"num_parallel_calls": 10}),
            Insert("batch", "prefetch", {"buffer_size": AUTOTUNE}),
        ),
    )
    assert found.speedup == pytest.approx(72 / 25, abs=0.001)
    assert found.limit == "input"


def test_parallel_calls_are_bound_by_the_cpus() -> None:
    """1.2 CPUs busy for 10 ms are 12 ms of CPU, 6 on two; the map alone would take 9.78 / 2."""
    found = forecast(stateless(), edit(PARALLEL))
    assert found.speedup == pytest.approx(10 / 6, abs=0.001)
    assert (found.limit, found.missing) == ("cpu", None)


def test_cpus_that_share_a_core_do_less_together() -> None:
    """The same 12 ms of CPU where two CPUs do the work of 1.5."""
    shared = stateless(environment=make_environment(cpu_capacity=1.5))
    assert forecast(shared, edit(PARALLEL)).speedup == pytest.approx(10 / 8, abs=0.001)


def test_the_run_itself_shows_what_the_cpus_do_at_least() -> None:
    """1.2 CPUs were busy, whatever a short measurement says: 12 ms of CPU took 10."""
    shared = stateless(environment=make_environment(cpu_capacity=1.0))
    assert forecast(shared, edit(PARALLEL)).speedup == pytest.approx(1.0)


def test_where_cpus_are_free_the_map_is_divided_by_its_calls() -> None:
    found = forecast(stateless(host=IDLE), edit(PARALLEL))
    assert found.speedup == pytest.approx(10 / (9 * FACTOR / 2), abs=0.001)
    assert found.limit == "input"


def test_calls_that_wait_need_a_pool_of_that_size() -> None:
    calls = SetParameters("map_0", {"num_parallel_calls": 16})
    pool = SetOptions({"threading.private_threadpool_size": 16})
    waiting = make_session(host=make_host(cores_busy=0.2, threads={"tf_data": 10.0}))
    assert forecast(waiting, edit(calls)).speedup == pytest.approx(20 / (9 * FACTOR), abs=0.001)
    both = forecast(waiting, edit(calls, pool))
    assert both.speedup == pytest.approx(10 / 3, abs=0.01)
    assert both.limit == "consumer"


def test_what_hangs_on_the_interpreter_lock_is_left_out() -> None:
    found = forecast(make_session(), edit(PARALLEL))
    assert found.speedup is None
    assert found.missing is not None
    assert "interpreter lock" in found.missing


BUSY = make_host(cores_allowed=8.0, cores_busy=1.9, threads={"tf_data": 170.0})
"""More than one of tf.data's threads computes."""


def test_threads_beside_a_serial_python_map_do_not_show_that_it_releases_the_lock() -> None:
    assert forecast(make_session(host=BUSY), edit(PARALLEL)).speedup is None


def test_parallel_python_calls_that_compute_at_once_do_not_hold_the_lock() -> None:
    source, mapped, *rest = make_pipeline_ops()
    parallel = mapped.model_copy(update={"parallelism": 2})
    session = make_session(host=BUSY, pipeline=make_pipeline(ops=[source, parallel, *rest]))
    calls = SetParameters("map_0", {"num_parallel_calls": 4})
    assert forecast(session, edit(calls)).speedup is not None


def test_a_serial_python_map_holds_the_lock_for_no_longer_than_it_runs() -> None:
    """Other threads' CPU time is not its own: what changes nothing of it can be foretold."""
    fewer_calls = forecast(make_session(host=BUSY), edit(SetModel({"steps_per_execution": 16})))
    assert fewer_calls.speedup == pytest.approx(1.0)


def test_a_cache_frees_the_consumer_of_the_pipelines_cpu_time() -> None:
    """What is left: batch (stretched) and prefetch, and 32 elements of 1 µs out of the cache.

    The pipeline's 9.5 ms of CPU are shared out over 10 ms in its stage and 0.1 in the prefetch.
    """
    alone = Differential(step_ms=2.0, ci95_ms=(1.9, 2.1), steps=30, input_share_percent=80.0)
    session = stateless(differential=alone)
    left_cpu = 9.5 / 10.1 * (0.1 * FACTOR + 0.1) + 0.032
    consumer = 2.0 + (10 / 3.33 - 2.0) * left_cpu / 9.5
    found = forecast(session, edit(Insert("map_0", "cache")))
    assert found.speedup == pytest.approx(10 / consumer, abs=0.001)
    assert found.limit == "consumer"


def test_a_cache_behind_a_map_that_was_fused_with_its_batch() -> None:
    """The batch is made by itself then: 32 elements of 1 µs from the cache and as many into it."""
    session = fused(ceiling=None, breakdown=make_breakdown(input_wait=99.9), differential=None)
    found = forecast(session, edit(Insert("map", "cache")))
    assert found.speedup == pytest.approx(10 / 0.064, rel=0.001)


def test_a_map_behind_its_batch_is_called_once_for_all_its_elements() -> None:
    """The source keeps its 1 ms, the batch takes 32 elements of 1 µs, the map 10 / 19 ms."""
    session = fused(ceiling=None, breakdown=make_breakdown(input_wait=99.9), differential=None)
    found = forecast(session, edit(Move("map", "batch")))
    assert found.speedup == pytest.approx(10 / 1.032, abs=0.01)
    assert found.limit == "input"


def test_maps_that_move_behind_their_batch_together_keep_their_order() -> None:
    ops = [
        make_operation("source", "from_tensor_slices", elements=32.0, self_ms_per_step=0.2),
        make_operation("first", parent_ids=["source"], elements=32.0, self_ms_per_step=3.8),
        make_operation("second", parent_ids=["first"], elements=32.0, self_ms_per_step=5.7),
        make_operation("batch", "batch", parent_ids=["second"], self_ms_per_step=0.3),
    ]
    session = make_session(pipeline=make_pipeline(ops=ops), host=IDLE, ceiling=None)
    session = session.model_copy(update={"breakdown": make_breakdown(input_wait=99.9)})
    found = forecast(session, edit(Move("first", "batch"), Move("second", "first")))
    assert found.speedup == pytest.approx(10 / (0.2 + 3.8 / 19 + 5.7 / 19 + 0.3), abs=0.01)


def test_a_shuffle_moves_behind_the_cache_at_no_cost() -> None:
    ops = [
        make_operation("source", "from_tensor_slices", elements=32.0, self_ms_per_step=1.0),
        make_operation("shuffle", "shuffle", parent_ids=["source"], elements=32.0),
        make_operation("map", parent_ids=["shuffle"], elements=32.0, self_ms_per_step=8.9),
    ]
    session = make_session(pipeline=make_pipeline(ops=ops), host=IDLE, ceiling=None)
    session = session.model_copy(update={"breakdown": make_breakdown(input_wait=99.9)})
    moved = forecast(session, edit(Move("shuffle", "map"), Insert("map", "cache")))
    assert moved.speedup == pytest.approx(10 / (0.1 + 0.032), rel=0.001)


def test_a_prefetch_lets_pipeline_and_consumer_overlap() -> None:
    ops = make_pipeline_ops()[:-1]
    options = {"optimization.apply_default_optimizations": False}
    session = make_session(
        pipeline=make_pipeline(ops=ops, options=options), host=IDLE, step_rows=[]
    )
    prefetch = forecast(session, edit(Insert("batch_0", "prefetch", {"buffer_size": AUTOTUNE})))
    assert prefetch.speedup == pytest.approx(10 / 7, abs=0.01)


@pytest.mark.parametrize(
    ("kind", "compute", "dispatch", "fixed_ms"),
    [
        ("CPU", 24.0, 50.0, 7.5 + 2.4 / 3),
        # Few operations are dispatched: their own price is no more than half of that.
        ("CPU", 70.0, 4.0, 2.9 + 0.2),
        ("GPU", 24.0, 50.0, 7.5),
    ],
)
def test_a_larger_batch_shares_what_a_step_costs_anyway(
    kind: str, compute: float, dispatch: float, fixed_ms: float
) -> None:
    """A quarter of it is left with four times as many rows."""
    python = 99.0 - compute - dispatch
    session = make_compute_bound_session(
        ceiling=None,
        breakdown=make_breakdown(
            input_wait=1.0, device_compute=compute, dispatch=dispatch, python=python
        ),
        host=IDLE,
        environment=make_environment(devices=[Device(name=f"/device:{kind}:0", kind=kind)]),
    )
    batch = make_operation("batch", "batch", parameters={"batch_size": 32})
    session = session.model_copy(update={"pipeline": make_pipeline(ops=[batch])})
    found = forecast(session, edit(SetParameters("batch", {"batch_size": 128})))
    assert found.speedup == pytest.approx(10 / (10 - 0.75 * fixed_ms), abs=0.01)


@pytest.mark.parametrize(("kind", "shared_ms"), [("CPU", 3.0 + 5.0 * 0.88), ("GPU", 3.0)])
def test_steps_that_share_a_call_share_python_and_on_a_cpu_dispatch(
    kind: str, shared_ms: float
) -> None:
    session = make_compute_bound_session(
        ceiling=None,
        breakdown=make_breakdown(input_wait=1.0, device_compute=19.0, dispatch=50.0, python=30.0),
        environment=make_environment(devices=[Device(name="device", kind=kind)]),
        host=IDLE,
        pipeline=make_pipeline(ops=[make_operation("batch", "batch")]),
    )
    found = forecast(session, edit(SetModel({"steps_per_execution": 16})))
    assert found.speedup == pytest.approx(10 / (10 - shared_ms * 15 / 16), abs=0.01)


def test_defaults_switched_on_make_stateless_maps_parallel_and_append_a_prefetch() -> None:
    ops = stateless_ops()[:-1]
    options = {"optimization.apply_default_optimizations": False}
    session = make_session(
        pipeline=make_pipeline(ops=ops, options=options), host=IDLE, step_rows=[]
    )
    defaults = SetOptions({"optimization.apply_default_optimizations": True})
    stretched = 7.0 / 9.2
    found = forecast(session, edit(defaults))
    assert found.speedup == pytest.approx(10 / (9 * stretched / 2), abs=0.01)


def test_an_injected_prefetch_makes_pipeline_and_consumer_overlap() -> None:
    options = {"optimization.inject_prefetch": False}
    session = make_session(
        pipeline=make_pipeline(ops=make_pipeline_ops()[:-1], options=options), host=IDLE
    )
    found = forecast(session, edit(SetOptions({"optimization.inject_prefetch": True})))
    assert found.speedup == pytest.approx(10 / 7, abs=0.01)


def test_packed_files_are_read_in_parallel_and_plain_ones_not_foretold() -> None:
    def session(compression: str) -> Session:
        reader = make_operation(
            "files",
            "TFRecordDataset",
            self_ms_per_step=9.0,
            parameters={"compression_type": compression, "file_count": 8},
        )
        return make_session(pipeline=make_pipeline(ops=[reader]), host=IDLE)

    several = edit(SetParameters("files", {"num_parallel_reads": AUTOTUNE}))
    assert forecast(session("GZIP"), several).speedup == pytest.approx(2.0)
    assert forecast(session(""), several).speedup is None


def test_an_interleave_of_packed_files_reads_as_many_as_its_cycle() -> None:
    ops = [
        make_operation("files", "from_tensor_slices", self_ms_per_step=0.0),
        make_operation(
            "reader",
            "TFRecordDataset",
            self_ms_per_step=8.0,
            inside_function_of="flat",
            parameters={"compression_type": "GZIP", "file_count": 1},
        ),
        make_operation("flat", "flat_map", parent_ids=["files"], self_ms_per_step=2.0),
    ]
    session = make_session(pipeline=make_pipeline(ops=ops), host=IDLE)
    interleave = Replace("flat", "interleave", {"cycle_length": 2, "num_parallel_calls": AUTOTUNE})
    assert forecast(session, edit(interleave)).speedup == pytest.approx(2.0)


def test_without_an_operation_its_time_goes() -> None:
    ops = stateless_ops()
    found = forecast(stateless(host=IDLE), edit(Remove("map_0")))
    assert found.speedup == pytest.approx(10 / 3, abs=0.01)
    assert found.limit == "consumer"
    assert len(ops) == 4


def waiting_rows(waits_ms: list[float]) -> list[StepRow]:
    """Steps of 10 ms, each with its input wait."""
    return [
        StepRow(
            index=index,
            window="baseline",
            block=0,
            start_ms=10.0 * index,
            duration_ms=10.0,
            input_wait_ms=wait_ms,
            batches=1,
        )
        for index, wait_ms in enumerate(waits_ms)
    ]


def test_a_consumer_that_sets_half_of_the_steps_gains_in_half_of_them() -> None:
    rows = waiting_rows([4.0 * (index % 2) for index in range(10)])
    session = stateless(
        breakdown=make_breakdown(input_wait=20.0, device_compute=40.0, python=40.0),
        ceiling=None,
        differential=None,
        step_rows=rows,
        host=IDLE,
    )
    found = forecast(session, edit(SetModel({"steps_per_execution": 16})))
    assert found.speedup == pytest.approx(10 / (10 - 0.5 * 4.0 * 15 / 16), abs=0.01)


@pytest.mark.parametrize(
    "change",
    [
        SetModel({"jit_compile": True}),
        SetModel({"run_eagerly": False}),
        SetOptions({"deterministic": False}),
        SetParameters("map_0", {"seed": 3}),
        SetParameters("map_0", {"batch_size": 3}),
        SetParameters("gone", {"num_parallel_calls": 2}),
        Insert("map_0", "shuffle"),
        Insert("gone", "cache"),
        Move("batch_0", "from_tensor_slices_0"),
        Remove("from_tensor_slices_0"),
        Remove("gone"),
        Replace("batch_0", "rebatch"),
        Replace("batch_0", "bucket_by_sequence_length"),
    ],
)
def test_what_measurements_do_not_tell_has_a_reason_in_place_of_a_figure(change: Change) -> None:
    found = forecast(make_session(), edit(change))
    assert found.speedup is None
    assert found.limit is None
    assert found.missing is not None
    assert found.missing.endswith(".")


@pytest.mark.parametrize("section", ["steps", "breakdown", "pipeline"])
def test_without_the_measurement_there_is_no_forecast(section: str) -> None:
    session = make_session(**{section: None})
    assert forecast(session, edit(PARALLEL)).missing


@pytest.mark.parametrize(("map_ms", "speedup"), [(3.0, 10 / 3.1), (8.0, 1.0)])
def test_short_waits_of_a_pipeline_that_rests_are_not_its_pace(
    map_ms: float, speedup: float
) -> None:
    """All steps wait 1 of 10 ms: with 3.1 ms of work that is the hand-over, with 8.1 the pace."""
    rows = waiting_rows([1.0] * 10)
    ops = [
        make_operation("source", "from_tensor_slices", elements=32.0, self_ms_per_step=0.1),
        make_operation("map", parent_ids=["source"], elements=32.0, self_ms_per_step=map_ms),
        make_operation("prefetch", "prefetch", parent_ids=["map"], self_ms_per_step=0.1),
    ]
    session = make_session(
        breakdown=make_breakdown(input_wait=10.0, dispatch=60.0, python=30.0),
        pipeline=make_pipeline(ops=ops),
        ceiling=None,
        differential=None,
        step_rows=rows,
        host=IDLE,
    )
    found = forecast(session, edit(SetModel({"steps_per_execution": 16})))
    assert found.speedup == pytest.approx(speedup, abs=0.01)


def test_where_cpus_are_shared_the_consumer_is_the_step_less_what_get_next_waited() -> None:
    """Its own time alone is half of that: the ceiling counts from there, the model does not."""
    wait = make_input_wait(native_percent=20.0, method="differential", contention="cpu")
    session = make_compute_bound_session(
        input_wait=wait,
        breakdown=make_breakdown(input_wait=60.0, device_compute=40.0),
        pipeline=make_pipeline(ops=stateless_ops()),
        step_rows=[],
    )
    assert network_of(session).consumer_ms == pytest.approx(8.0)


def test_an_edit_of_what_does_not_hold_the_step_up_buys_nothing() -> None:
    ops = stateless_ops()
    cheap = [op.model_copy(update={"self_ms_per_step": 0.5}) for op in ops]
    session = make_compute_bound_session(pipeline=make_pipeline(ops=cheap), host=IDLE, step_rows=[])
    assert forecast(session, edit(PARALLEL)).speedup == pytest.approx(1.0)
