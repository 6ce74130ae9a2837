"""What each kind of change does to the forecast."""

from __future__ import annotations

import pytest

from pipediag.forecast import forecast
from pipediag.session.edits import (
    AUTOTUNE,
    Insert,
    Move,
    Remove,
    Replace,
    SetModel,
    SetOptions,
    SetParameters,
    SkipCallback,
)
from pipediag.session.host import HotLine
from pipediag.session.loops import Callback
from pipediag.session.model import Session
from pipediag.session.run import Device
from pipediag.session.steps import Differential
from tests.factories import (
    make_compute_bound_session,
    make_host,
    make_keras,
    make_loop,
    make_session,
)
from tests.forecast.sessions import FACTOR, IDLE, edit, fused, stateless, stateless_ops
from tests.records import (
    make_breakdown,
    make_environment,
    make_operation,
    make_pipeline,
    make_pipeline_ops,
)


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


def with_callback(input_wait: float, **overrides: float) -> Session:
    """A step of 10 ms, 60 % of the stack samples of which are in a callback."""
    hook = "on_train_batch_end"
    callback = Callback(name="Logger", file="train.py", line=30, batch_hooks=[hook])
    hot = HotLine(file="train.py", line=33, function=hook, thread="main", percent=60.0)
    return make_compute_bound_session(
        ceiling=None,
        breakdown=make_breakdown(input_wait=input_wait, python=100.0 - input_wait),
        host=make_host(cores_busy=0.0, threads={}, hot_python=[hot]),
        loops=[make_loop(keras=make_keras(callbacks=[callback]))],
        pipeline=make_pipeline(ops=[make_operation("batch", "batch", **overrides)]),
    )


LOGGER = SkipCallback("Logger", "train.py", 30)


def test_a_callback_left_out_takes_its_part_of_the_stack_samples_with_it() -> None:
    found = forecast(with_callback(1.0), edit(LOGGER))
    assert found.speedup == pytest.approx(10 / 4, abs=0.01)
    assert found.limit == "consumer"


def test_of_a_callback_left_out_the_pipeline_leaves_what_it_allows() -> None:
    """Beside its consumer it takes 7.5 of 10 ms, which nothing waits for until then."""
    found = forecast(with_callback(10.0, self_ms_per_step=7.5), edit(LOGGER))
    assert found.speedup is not None
    assert found.speedup < 10 / 4
    assert found.limit == "input"


@pytest.mark.parametrize(
    "callback", [SkipCallback("Meter", "train.py", 30), SkipCallback("Logger", "train.py", 31)]
)
def test_of_another_callback_nothing_is_known(callback: SkipCallback) -> None:
    found = forecast(with_callback(1.0), edit(callback))
    assert (found.speedup, found.missing) == (None, "What the callback costs was not measured.")


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
