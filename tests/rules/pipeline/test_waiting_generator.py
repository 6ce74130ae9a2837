from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.pipeline import python_source_lock, waiting_generator
from pipediag.session.edits import Replace, SetOptions, SetParameters
from pipediag.session.findings import Finding
from pipediag.session.host import HotLine
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.session.steps import Differential
from tests.factories import make_host, make_session
from tests.records import make_function, make_input_wait, make_operation
from tests.rules.sessions import batch, keeps_up, only, session_of

LINE = HotLine(file="data.py", line=7, function="rows", percent=80.0, thread="source")
IDLE = make_host(threads={"tf_data": 10.0}, python_source_cpu_ms_per_step=0.0, hot_python=[LINE])
BUSY = make_host(threads={"tf_data": 95.0}, python_source_cpu_ms_per_step=0.0)
HALF = make_host(threads={"tf_data": 45.0}, python_source_cpu_ms_per_step=0.0)
ALONE = Differential(step_ms=1.5, ci95_ms=(1.4, 1.6), steps=30, input_share_percent=85.0)
POOL = SetOptions({"threading.private_threadpool_size": 16})


def generator(**overrides: Any) -> Operation:
    values: dict[str, Any] = {"elements": 32.0, "self_ms_per_step": 8.0}
    return make_operation("rows", "from_generator", **{**values, **overrides})


def within(kind: str, cardinality: int | None = 8, **parameters: Any) -> tuple[Operation, ...]:
    shards = make_operation("shards", "range", cardinality=cardinality)
    outer = make_operation("outer", kind, parent_ids=["shards"], parameters=parameters)
    return shards, outer, generator(inside_function_of="outer")


def session_with(*ops: Operation, **overrides: Any) -> Session:
    return session_of(*ops, batch(), **{"host": IDLE, **overrides})


def found(*ops: Operation, **overrides: Any) -> Finding:
    return only(waiting_generator, session_with(*ops, **overrides))


def test_a_generator_within_a_flat_map_is_interleaved() -> None:
    finding = found(*within("flat_map"))
    assert finding.status == "fail"
    assert finding.edit is not None
    parameters = {"cycle_length": 8, "num_parallel_calls": 8}
    assert finding.edit.changes == (Replace("outer", "interleave", parameters), POOL)
    assert "cycle_length=8" in finding.advice


@pytest.mark.parametrize(("cardinality", "count"), [(100, 16), (1, 2), (None, 16), (-2, 16)])
def test_no_more_are_open_than_there_are(cardinality: int | None, count: int) -> None:
    edit = found(*within("flat_map", cardinality)).edit
    assert edit is not None
    change = edit.changes[0]
    assert isinstance(change, Replace)
    assert change.parameters["cycle_length"] == count


def test_an_interleave_of_one_call_gets_more() -> None:
    finding = found(*within("interleave", cycle_length=4))
    assert finding.edit is not None
    assert finding.edit.changes == (SetParameters("outer", {"num_parallel_calls": 4}), POOL)


def test_parallel_calls_pass() -> None:
    assert found(*within("interleave", num_parallel_calls=-1)).status == "pass"


def test_a_single_generator_is_tried_as_two_copies() -> None:
    finding = found(generator())
    assert finding.status == "fail"
    assert "args=(part,)" in finding.advice
    assert finding.edit is not None
    two = Replace("rows", "interleave", {"cycle_length": 2, "num_parallel_calls": 2})
    assert finding.edit.changes == (two, POOL)
    assert "left to you" in str(finding.edit.caveat)
    # 8 ms in two; a step of 3 ms besides.
    assert finding.speedup_at_most == pytest.approx(10 / 4)


def test_one_that_waits_half_of_its_time_is_divided_before_it_is_rewritten() -> None:
    both = [generator(), batch()]
    session = session_of(*both, host=HALF, differential=ALONE)
    finding = only(waiting_generator, session)
    assert finding.status == "fail"
    assert "waits for 47 % and computes in the rest" in finding.advice
    other = only(python_source_lock, session)
    assert (other.status, other.needs_first) == ("fail", "waiting-generator")
    # Computing its 4.5 ms on two CPUs leaves the waits as they are.
    assert other.speedup_at_most == pytest.approx(10 / (4.5 / 2 + 4.0), abs=0.001)


@pytest.mark.parametrize(("native", "status"), [(75.0, "fail"), (30.0, "informative")])
def test_a_loop_that_is_seen_to_wait_does_not_fight_its_generator(
    native: float, status: str
) -> None:
    """The repeated batch says 85 %: 75 of them waiting is a wait, 30 are a fight for the lock."""
    wait = make_input_wait(native_percent=native, method="differential", contention="lock")
    session = session_of(generator(), batch(), host=HALF, differential=ALONE, input_wait=wait)
    assert only(waiting_generator, session).status == status


def test_a_single_one_that_computes_is_tried_too() -> None:
    finding = found(generator(), host=BUSY)
    assert finding.status == "informative"
    assert finding.edit is not None
    assert "releases the interpreter lock" in finding.advice


def test_one_that_computes_is_not_waited_for() -> None:
    session = session_of(generator(), batch(), host=BUSY, differential=ALONE)
    assert only(python_source_lock, session).needs_first is None


def test_one_that_computes_passes() -> None:
    assert found(*within("flat_map"), host=BUSY).status == "pass"


def test_without_host_samples_it_is_open() -> None:
    assert found(*within("flat_map"), host=None).status == "inconclusive"


def test_one_that_keeps_up_passes() -> None:
    assert found(generator(), **keeps_up()).status == "pass"


def test_other_sources() -> None:
    assert only(waiting_generator, make_session()).status == "not-applicable"


def test_the_line_is_the_generators_own_where_no_other_python_makes_input() -> None:
    alone = found(generator(line=20))
    assert (alone.file, alone.line) == ("data.py", 7)
    beside = make_operation(
        "lookup",
        "map",
        function=make_function(graph_ops={"PyFunc": 1}),
    )
    several = found(generator(line=20), beside)
    assert several.line == 20
