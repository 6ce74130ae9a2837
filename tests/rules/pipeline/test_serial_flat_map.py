from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.pipeline import serial_flat_map
from pipediag.session.edits import Replace, SetOptions
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from tests.factories import make_host, make_session
from tests.records import make_function, make_operation
from tests.rules.sessions import batch, keeps_up, only, session_of, source

IDLE = make_host(threads={"tf_data": 5.0}, hot_python=[])


def outer(kind: str = "flat_map", **overrides: Any) -> Operation:
    values: dict[str, Any] = {
        "self_ms_per_step": 8.0,
        "function": make_function(graph_ops={"ReadFile": 1, "DecodePng": 1}),
    }
    return make_operation("images", kind, line=5, **{**values, **overrides})


def session_with(*ops: Operation, **overrides: Any) -> Session:
    return session_of(source(), *ops, batch(), **overrides)


def test_files_opened_by_the_function_itself_are_opened_at_once() -> None:
    finding = only(serial_flat_map, session_with(outer()))
    assert finding.status == "fail"
    assert finding.edit is not None
    parameters = {"cycle_length": 2, "num_parallel_calls": -1}
    assert finding.edit.changes == (Replace("images", "parallel_flat_map", parameters),)
    assert "opens and decodes its files" in finding.advice
    # 8 ms on two CPUs.
    assert finding.predicted_speedup == pytest.approx(10 / 6, abs=0.001)


def test_one_that_waits_in_python_gets_more_calls_and_threads() -> None:
    waiting = outer(function=make_function(graph_ops={"PyFunc": 1}))
    finding = only(serial_flat_map, session_with(waiting, host=IDLE))
    assert finding.edit is not None
    parameters = {"cycle_length": 16, "num_parallel_calls": 16}
    pool = SetOptions({"threading.private_threadpool_size": 16})
    assert finding.edit.changes == (Replace("images", "parallel_flat_map", parameters), pool)
    assert "private_threadpool_size = 16" in finding.advice


def test_an_interleave_of_one_call_is_no_better() -> None:
    finding = only(serial_flat_map, session_with(outer("interleave")))
    assert finding.edit is not None
    parameters = {"cycle_length": 2, "num_parallel_calls": -1}
    assert finding.edit.changes == (Replace("images", "parallel_flat_map", parameters),)
    assert "from_tensors(x).flat_map(f)" in finding.advice


def test_parallel_calls_pass() -> None:
    several = outer("interleave", parameters={"num_parallel_calls": -1})
    assert only(serial_flat_map, session_with(several)).status == "pass"


@pytest.mark.parametrize("kind", ["TFRecordDataset", "from_generator", "map"])
def test_what_other_rules_look_at_is_theirs(kind: str) -> None:
    inner = make_operation("inner", kind, inside_function_of="images")
    assert only(serial_flat_map, session_with(outer(), inner)).status == "pass"


def test_a_cheap_one_only_informs() -> None:
    finding = only(serial_flat_map, session_with(outer(self_ms_per_step=0.3)))
    assert (finding.status, finding.edit) == ("informative", None)


def test_where_the_step_does_not_wait_it_only_informs() -> None:
    finding = only(serial_flat_map, session_with(outer(), **keeps_up()))
    assert finding.status == "informative"


def test_other_pipelines_are_none_of_its_business() -> None:
    assert only(serial_flat_map, make_session()).status == "not-applicable"


def test_one_that_those_call_who_read_passes() -> None:
    around = make_operation("around", "interleave", parameters={"num_parallel_calls": 16})
    inner = outer(inside_function_of="around")
    assert only(serial_flat_map, session_with(around, inner)).status == "pass"
