from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.pipeline import serial_flat_map
from pipediag.session.edits import AUTOTUNE, Replace, SetOptions
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from tests.factories import make_host, make_session
from tests.records import make_function, make_operation
from tests.rules.sessions import batch, keeps_up, only, run, session_of, source


def outer(kind: str = "flat_map", **overrides: Any) -> Operation:
    values: dict[str, Any] = {
        "self_ms_per_step": 8.0,
        "function": make_function(graph_ops={"ReadFile": 1, "DecodePng": 1}),
    }
    return make_operation("images", kind, line=5, **{**values, **overrides})


def session_with(*ops: Operation, **overrides: Any) -> Session:
    return session_of(source(), *ops, batch(), **overrides)


def edits(session: Session) -> list[tuple[Any, ...]]:
    return [one.edit.changes for one in run(serial_flat_map, session) if one.edit]


AS_CPUS = Replace(
    "images", "parallel_flat_map", {"cycle_length": 2, "num_parallel_calls": AUTOTUNE}
)
SIXTEEN = (
    Replace("images", "parallel_flat_map", {"cycle_length": 16, "num_parallel_calls": 16}),
    SetOptions({"threading.private_threadpool_size": 16}),
)


def test_files_opened_by_the_function_itself_are_opened_at_once_with_and_without_threads() -> None:
    assert edits(session_with(outer())) == [(AS_CPUS,), SIXTEEN]


def test_what_only_computes_gets_as_many_calls_as_there_are_cpus() -> None:
    decodes = outer(function=make_function(graph_ops={"DecodePng": 1}))
    assert edits(session_with(decodes)) == [(AS_CPUS,)]


@pytest.mark.parametrize("host", [None, make_host(threads={"tf_data": 95.0})])
@pytest.mark.parametrize("reader", [[], [make_operation("r", "TFRecordDataset")]])
def test_python_gets_sixteen_calls_and_threads_whatever_is_thought_of_it(
    host: Any, reader: list[Operation]
) -> None:
    inner = [one.model_copy(update={"inside_function_of": "images"}) for one in reader]
    python = outer(function=make_function(graph_ops={"PyFunc": 1}))
    session = session_with(*inner, python, host=host)
    (finding,) = run(serial_flat_map, session)
    assert finding.status == "fail"
    assert edits(session) == [SIXTEEN]


def test_python_of_an_operation_within_is_for_other_rules() -> None:
    function = make_function(graph_ops={"PyFunc": 1})
    inner = make_operation("inner", "map", inside_function_of="images", function=function)
    assert only(serial_flat_map, session_with(inner, outer(function=function))).status == "pass"


def test_an_interleave_of_one_call_is_no_better() -> None:
    assert edits(session_with(outer("interleave"))) == [(AS_CPUS,), SIXTEEN]


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
