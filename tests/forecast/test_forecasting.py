"""Forecasts from hand-made sessions: 10 ms a step, 7 of them input wait, unless said otherwise."""

from __future__ import annotations

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
from pipediag.session.steps import StepRow
from tests.factories import make_compute_bound_session, make_host, make_session
from tests.forecast.sessions import FACTOR, IDLE, PARALLEL, edit, stateless, stateless_ops
from tests.records import (
    make_breakdown,
    make_environment,
    make_input_wait,
    make_operation,
    make_pipeline,
    make_pipeline_ops,
    make_steps,
)


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


def test_what_another_loop_reads_was_not_measured() -> None:
    of_evaluation = Edit("a", "a", (PARALLEL,), loop_id="loop_1")
    found = forecast(make_session(), of_evaluation)
    assert found.speedup is None
    assert found.missing == "It changes the pipeline of another loop, which was not measured."
