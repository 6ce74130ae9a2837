from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.pipeline import serial_stateful_map
from pipediag.session.edits import Edit, SetOptions, SetParameters
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from tests.factories import make_host, make_session
from tests.records import make_function, make_operation
from tests.rules.sessions import batch, keeps_up, only, session_of, source, straddles


def stateful_map(graph_ops: dict[str, int] | None = None, **overrides: Any) -> Operation:
    values: dict[str, Any] = {
        "elements": 32.0,
        "self_ms_per_step": 9.0,
        "function": make_function(stateful=True, graph_ops=graph_ops or {"LookupTableFindV2": 1}),
    }
    return make_operation("map", "map", **{**values, **overrides})


def session_with(op: Operation, **overrides: Any) -> Session:
    return session_of(source(), op, batch(), **overrides)


@pytest.mark.parametrize(
    ("graph_ops", "words"),
    [
        ({"LookupTableFindV2": 1}, "a table lookup"),
        ({"RandomUniform": 1}, "random numbers"),
        ({"StatelessRandomUniformV2": 1, "ReadVariableOp": 1}, "random numbers"),
        ({"ReadVariableOp": 1, "Mul": 1}, "a variable"),
        ({"PyFunc": 1}, "Python (PyFunc)"),
        ({"Unheard": 1}, "a stateful operation"),
    ],
)
def test_says_what_makes_it_stateful(graph_ops: dict[str, int], words: str) -> None:
    finding = only(serial_stateful_map, session_with(stateful_map(graph_ops)))
    assert finding.status == "fail"
    assert words in finding.advice
    assert "num_parallel_calls=tf.data.AUTOTUNE" in finding.advice
    assert (finding.file, finding.line, finding.op_id) == ("train.py", 12, "map")


def test_a_lookup_gives_the_same_results_and_random_numbers_do_not() -> None:
    lookup = only(serial_stateful_map, session_with(stateful_map()))
    assert lookup.effect_on_results == "same results"
    drawn = only(serial_stateful_map, session_with(stateful_map({"RandomUniform": 1})))
    assert drawn.effect_on_results == "same up to order or rounding"


def test_predicts_two_calls_on_two_cpus_and_no_less_than_the_cpu_time() -> None:
    # 9 ms x (1 - 1/2) of 10 ms leaves 5.5 ms, but 1.2 of 2 CPUs were busy: 6 ms at least.
    finding = only(serial_stateful_map, session_with(stateful_map()))
    assert finding.speedup_at_most == pytest.approx(10 / 6, abs=0.001)


def test_prediction_without_a_busy_cpu() -> None:
    host = make_host(cores_busy=0.5)
    finding = only(serial_stateful_map, session_with(stateful_map(), host=host))
    assert finding.speedup_at_most == pytest.approx(10 / 5.5, abs=0.001)


def test_python_that_waits_gets_calls_and_a_pool() -> None:
    host = make_host(threads={"tf_data": 4.0}, lock_percent=1.0, cores_busy=0.2)
    finding = only(serial_stateful_map, session_with(stateful_map({"PyFunc": 1}), host=host))
    assert finding.status == "fail"
    assert "private_threadpool_size = 16" in finding.advice
    # All 7 ms of the wait would go: the ceiling.
    assert finding.speedup_at_most == pytest.approx(3.33)


def test_python_that_holds_the_lock_is_left_to_the_other_rule() -> None:
    host = make_host(lock_percent=60.0)
    finding = only(serial_stateful_map, session_with(stateful_map({"PyFunc": 1}), host=host))
    assert finding.status == "informative"
    assert "python-map-lock" in finding.advice


def test_without_the_host_python_gets_no_prediction() -> None:
    session = session_with(stateful_map({"PyFunc": 1}), host=None)
    finding = only(serial_stateful_map, session)
    assert finding.status == "fail"
    assert finding.speedup_at_most is None


def test_cost_is_read_where_tensorflow_fused_it() -> None:
    fused = stateful_map(self_ms_per_step=None, fused_into="batch")
    session = session_of(source(), fused, batch(self_ms_per_step=8.0))
    finding = only(serial_stateful_map, session)
    assert finding.status == "fail"
    assert finding.evidence["delay_ms_per_step"] == 8.0


@pytest.mark.parametrize("calls", [-1, 4])
def test_parallel_calls_pass(calls: int) -> None:
    op = stateful_map(parameters={"num_parallel_calls": calls})
    assert only(serial_stateful_map, session_with(op)).status == "pass"


def test_a_stateless_map_passes() -> None:
    op = stateful_map(function=make_function(stateful=False))
    assert only(serial_stateful_map, session_with(op)).status == "pass"


def test_does_not_fail_where_the_step_does_not_wait() -> None:
    finding = only(serial_stateful_map, session_with(stateful_map(), **keeps_up()))
    assert finding.status == "informative"
    assert "1.0 %" in finding.advice


def test_does_not_fail_where_the_interval_straddles_the_limit() -> None:
    finding = only(serial_stateful_map, session_with(stateful_map(), **straddles()))
    assert finding.status == "informative"
    assert "straddles" in finding.advice


def test_does_not_fail_where_another_operation_is_waited_for() -> None:
    finding = only(serial_stateful_map, session_with(stateful_map(self_ms_per_step=0.2)))
    assert finding.status == "informative"
    assert "elsewhere" in finding.advice


def test_unmeasured_cost_is_inconclusive_unless_it_is_the_bottleneck() -> None:
    op = stateful_map(self_ms_per_step=None)
    assert only(serial_stateful_map, session_with(op)).status == "inconclusive"
    named = session_with(op, pipeline={"bottleneck_op_id": "map"})
    assert only(serial_stateful_map, named).status == "fail"


def test_missing_sections() -> None:
    session = make_session(pipeline=None, pipeline_missing="The dataset came from elsewhere.")
    finding = only(serial_stateful_map, session)
    assert finding.status == "inconclusive"
    assert finding.advice == "The dataset came from elsewhere."


def test_tries_autotuned_calls() -> None:
    finding = only(serial_stateful_map, session_with(stateful_map()))
    assert finding.edit == Edit(
        id="serial-stateful-map:map",
        label="num_parallel_calls=AUTOTUNE on the map in line 12",
        changes=(SetParameters("map", {"num_parallel_calls": -1}),),
    )


SLEEPS = make_host(threads={"tf_data": 4.0}, lock_percent=1.0, cores_busy=0.2)
CALLS = SetParameters("map", {"num_parallel_calls": 16})


@pytest.mark.parametrize(
    ("options", "changes", "label"),
    [
        (
            {},
            (CALLS, SetOptions({"threading.private_threadpool_size": 16})),
            "16 parallel calls on the map in line 12, on 16 threads",
        ),
        (
            {"threading.private_threadpool_size": 32},
            (CALLS,),
            "16 parallel calls on the map in line 12",
        ),
    ],
)
def test_tries_as_many_threads_as_waiting_calls(
    options: dict[str, int], changes: tuple[object, ...], label: str
) -> None:
    op = stateful_map({"PyFunc": 1})
    session = session_with(op, host=SLEEPS, pipeline={"options": options})
    assert only(serial_stateful_map, session).edit == Edit(
        id="serial-stateful-map:map",
        label=label,
        changes=changes,  # type: ignore[arg-type]
    )


def test_tries_nothing_where_it_only_informs() -> None:
    assert only(serial_stateful_map, session_with(stateful_map(), **keeps_up())).edit is None


@pytest.mark.parametrize("graph_op", ["PyFunc", "ReadVariableOp", "RandomUniform"])
def test_a_lookup_beside_what_changes_state_promises_nothing(graph_op: str) -> None:
    op = stateful_map({"LookupTableFindV2": 1, graph_op: 1})
    finding = only(serial_stateful_map, session_with(op))
    assert finding.effect_on_results == "same up to order or rounding"


@pytest.mark.parametrize(("cores", "calls"), [(0.72, 16), (0.721, -1)])
def test_calls_that_wait_for_a_fifth_of_their_time_are_worth_overlapping(
    cores: float, calls: int
) -> None:
    """The call is in flight for nine tenths of the step, of which the threads work the rest."""
    host = make_host(threads={"tf_data": 100 * cores}, lock_percent=1.0, cores_busy=cores)
    op = stateful_map({"PyFunc": 1})
    edit = only(serial_stateful_map, session_with(op, host=host)).edit
    assert edit is not None
    assert edit.changes[0] == SetParameters("map", {"num_parallel_calls": calls})


def test_a_pool_that_is_large_enough_is_left_alone() -> None:
    options = {"threading.private_threadpool_size": 16}
    session = session_with(stateful_map({"PyFunc": 1}), host=SLEEPS, pipeline={"options": options})
    edit = only(serial_stateful_map, session).edit
    assert edit is not None
    assert edit.changes == (CALLS,)


def test_calls_that_wait_take_no_cpu_that_would_bound_them() -> None:
    """15 of 16 parts of 9 ms go, of which 7 ms are waited for; all CPUs are busy meanwhile."""
    host = make_host(threads={"tf_data": 4.0}, lock_percent=1.0, cores_busy=2.0)
    finding = only(serial_stateful_map, session_with(stateful_map({"PyFunc": 1}), host=host))
    assert finding.speedup_at_most == pytest.approx(10 / 3, abs=0.004)


def test_a_pipeline_without_maps() -> None:
    assert only(serial_stateful_map, session_of(source(), batch())).status == "not-applicable"
