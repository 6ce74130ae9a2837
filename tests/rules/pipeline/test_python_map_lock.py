from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.pipeline import python_map_lock
from pipediag.session.host import Host, HotLine
from pipediag.session.model import Session
from tests.factories import make_host
from tests.records import make_function, make_operation
from tests.rules.sessions import batch, keeps_up, only, session_of, source


def session_with(host: Any, function: Any = None, **overrides: Any) -> Session:
    op = make_operation(
        "map",
        "map",
        elements=32.0,
        self_ms_per_step=9.0,
        latency_ms_per_step=0.5,
        parallelism=16,
        parameters={"num_parallel_calls": 16},
        function=function or make_function(stateful=True, graph_ops={"PyFunc": 1}),
    )
    return session_of(source(), op, batch(), host=host, **overrides)


def met(percent: float) -> list[HotLine]:
    return [HotLine(file="train.py", line=6, function="parse", percent=percent, thread="source")]


def test_long_calls_that_make_others_wait_fail_and_the_hot_line_is_named() -> None:
    finding = only(python_map_lock, session_with(make_host(lock_percent=50.0)))
    assert finding.status == "fail"
    assert "train.py:6 in parse" in finding.advice
    assert "num_parallel_calls=16" in finding.advice
    # 7 ms of input in two processes; 1.2 of two cores are busy.
    assert finding.speedup_at_most == pytest.approx(10 / 6.5, abs=0.001)


@pytest.mark.parametrize(
    ("names", "called"),
    [
        (["/home/me/train.py:6 parse"], "pool.submit(parse, *x)"),
        (["/home/me/train.py:6 Reader.parse"], "pool.submit(parse, *x)"),
        (["/home/me/train.py:6 main.<locals>.<lambda>"], "pool.submit(f, *x)"),
        ([], "pool.submit(f, *x)"),
    ],
)
def test_the_pool_is_written_out_with_the_functions_name(names: list[str], called: str) -> None:
    function = make_function(graph_ops={"PyFunc": 1}, python_function_names=names)
    finding = only(python_map_lock, session_with(make_host(lock_percent=50.0), function))
    assert called in finding.advice
    assert 'ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn"))' in (
        finding.advice
    )
    assert "top level of a module" in finding.advice
    assert finding.edit is None
    assert "starts no process" in str(finding.trial.reason)


@pytest.mark.parametrize("hot", [[], met(1.0)])
def test_short_calls_that_no_sampler_meets_fail(hot: list[HotLine]) -> None:
    host = make_host(lock_percent=11.0, hot_python=hot)
    assert only(python_map_lock, session_with(host)).status == "fail"


@pytest.mark.parametrize(
    ("host", "work"),
    [
        (make_host(lock_percent=2.0, threads={"tf_data": 3.0}), "waits"),
        (make_host(lock_percent=5.0, hot_python=met(80.0)), "releases the lock"),
        # More than one thread computes at once, which the lock would not allow.
        (make_host(lock_percent=38.0, threads={"tf_data": 170.0}), "releases the lock"),
    ],
)
def test_python_that_waits_or_releases_the_lock_passes(host: Host, work: str) -> None:
    finding = only(python_map_lock, session_with(host))
    assert finding.status == "pass"
    assert finding.evidence["python"] == work


def test_does_not_fail_where_the_step_does_not_wait() -> None:
    finding = only(python_map_lock, session_with(make_host(lock_percent=70.0), **keeps_up()))
    assert finding.status == "informative"


def test_is_inconclusive_without_stacks_or_host() -> None:
    assert (
        only(python_map_lock, session_with(make_host(lock_percent=None))).status == "inconclusive"
    )
    assert only(python_map_lock, session_with(None)).status == "inconclusive"


def test_a_map_without_python_is_none_of_its_business() -> None:
    op = make_operation("map", "map", function=make_function())
    assert only(python_map_lock, session_of(source(), op, batch())).status == "not-applicable"


def test_on_a_busy_machine_a_held_lock_is_not_taken_for_waiting() -> None:
    host = make_host(lock_percent=16.0, threads={"tf_data": 30.0}, hot_python=met(12.0))
    assert only(python_map_lock, session_with(host)).status == "fail"


def test_a_call_that_waits_inside_a_library_is_seen_by_its_idle_cpu() -> None:
    host = make_host(lock_percent=3.0, threads={"tf_data": 4.0}, hot_python=[])
    finding = only(python_map_lock, session_with(host))
    assert (finding.status, finding.evidence["python"]) == ("pass", "waits")


@pytest.mark.parametrize(("calls_ms", "status"), [(15.0, "fail"), (14.0, "pass")])
def test_several_calls_that_compute_on_one_core_hold_the_lock_at_a_lower_limit(
    calls_ms: float, status: str
) -> None:
    """Steps take 10 ms: from 15 ms of calls in each, one and a half are in flight."""
    host = make_host(lock_percent=24.0, threads={"tf_data": 107.0}, hot_python=met(80.0))
    session = session_with(host)
    assert session.pipeline is not None
    ops = [
        op.model_copy(update={"self_ms_per_step": calls_ms}) if op.id == "map" else op
        for op in session.pipeline.ops
    ]
    changed = session.pipeline.model_copy(update={"ops": ops})
    found = only(python_map_lock, session.model_copy(update={"pipeline": changed}))
    assert found.status == status


def test_cores_beyond_one_are_not_those_of_a_serial_map() -> None:
    host = make_host(lock_percent=6.0, threads={"tf_data": 133.0}, hot_python=[])
    session = session_with(host)
    assert session.pipeline is not None
    serial = [op.model_copy(update={"parallelism": 1}) for op in session.pipeline.ops]
    changed = session.pipeline.model_copy(update={"ops": serial})
    assert only(python_map_lock, session).evidence["python"] == "releases the lock"
    found = only(python_map_lock, session.model_copy(update={"pipeline": changed}))
    assert found.status == "fail"
