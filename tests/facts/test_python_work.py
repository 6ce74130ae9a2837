from __future__ import annotations

from typing import Any

import pytest

from pipediag.facts.python_work import (
    computes_at_once,
    data_cores,
    hot_line,
    hottest_line_sentence,
    input_share,
    python_is_busy,
    python_use,
    source_cpu_ms,
)
from pipediag.session.host import HotLine
from pipediag.session.model import Session
from pipediag.session.steps import Differential
from tests.factories import make_host, make_session
from tests.records import make_breakdown, make_input_wait, make_operation, make_pipeline


def line(number: int, thread: str, percent: float) -> HotLine:
    return HotLine(file="train.py", line=number, function="work", percent=percent, thread=thread)


HOST = make_host(
    hot_python=[line(1, "main", 90.0), line(2, "source", 20.0), line(3, "other", 30.0)]
)


def test_the_hottest_line_is_of_the_threads_asked_for() -> None:
    assert hot_line(HOST, "main") == line(1, "main", 90.0)
    assert hot_line(HOST, "source") == line(2, "source", 20.0)
    assert hot_line(HOST, "source", "other") == line(3, "other", 30.0)
    assert hot_line(None, "main") is None


def test_advice_names_no_line_of_the_training_loop() -> None:
    assert (
        hottest_line_sentence(make_session(host=HOST)) == " The hottest line is train.py:3 in work."
    )
    only_main = make_host(hot_python=[line(1, "main", 90.0)])
    assert hottest_line_sentence(make_session(host=only_main)) == ""


def test_cores_of_the_data_threads_leave_out_the_loop_and_the_model() -> None:
    pools = {"tf_data": 120.0, "python_other": 30.0, "python_main": 100.0, "eigen": 200.0}
    assert data_cores(make_host(threads=pools)) == 1.5
    assert data_cores(None) == 0.0


def test_only_of_parallel_calls_busy_threads_say_that_they_compute_at_once() -> None:
    session = make_session(host=make_host(threads={"tf_data": 170.0}))
    assert computes_at_once(session, make_operation("map", parallelism=2))
    assert not computes_at_once(session, make_operation("map", parallelism=1))
    calm = make_session(host=make_host(threads={"tf_data": 110.0}))
    assert not computes_at_once(calm, make_operation("map", parallelism=2))


def test_just_above_one_core_calls_compute_at_once() -> None:
    op = make_operation("map", parallelism=2)
    at_limit = make_session(host=make_host(threads={"tf_data": 120.0}))
    assert computes_at_once(at_limit, op)
    below = make_session(host=make_host(threads={"tf_data": 119.0}))
    assert not computes_at_once(below, op)
    assert not computes_at_once(at_limit, make_operation("map", parallelism=None))


def test_a_fused_map_computes_at_once_where_what_it_was_fused_into_does() -> None:
    fused = make_operation("map", parallelism=1, fused_into="both")
    ops = [fused, make_operation("both", "batch", parallelism=4)]
    session = make_session(
        pipeline=make_pipeline(ops=ops), host=make_host(threads={"tf_data": 170.0})
    )
    assert computes_at_once(session, fused)


def used(
    wall_ms: float | None = 10.0,
    *,
    cores: float,
    seen: float = 0.0,
    lock: float | None = 0.0,
    parallelism: int = 1,
) -> Any:
    """Of a map whose calls take so much of a step of 10 ms."""
    hot = [line(1, "main", 95.0), line(2, "source", seen / 2), line(3, "other", seen / 2)]
    host = make_host(threads={"tf_data": 100.0 * cores}, hot_python=hot, lock_percent=lock)
    op = make_operation("map", self_ms_per_step=wall_ms, parallelism=parallelism)
    return python_use(make_session(host=host), op)


@pytest.mark.parametrize(
    ("known", "work"),
    [
        # Met by most stack samples.
        ({"seen": 50.0, "cores": 0.499}, "waits"),
        ({"seen": 50.0, "cores": 0.5, "lock": 29.0}, "releases the lock"),
        ({"seen": 50.0, "cores": 0.5, "lock": 30.0}, "holds the lock"),
        ({"seen": 50.0, "cores": 0.5, "lock": None}, "unclear"),
        ({"seen": 50.0, "cores": 1.2, "lock": 30.0, "parallelism": 2}, "releases the lock"),
        # Several calls in flight ask for less of the lock, and for no more than one core.
        ({"wall_ms": 15.0, "seen": 50.0, "cores": 0.5, "lock": 18.0}, "holds the lock"),
        ({"wall_ms": 15.0, "seen": 50.0, "cores": 0.5, "lock": 17.0}, "releases the lock"),
        ({"wall_ms": 14.0, "seen": 50.0, "cores": 0.5, "lock": 18.0}, "releases the lock"),
        # Met by few of them.
        ({"seen": 49.0, "cores": 0.24, "lock": 50.0}, "waits"),
        ({"seen": 49.0, "cores": 0.25, "lock": 0.0}, "holds the lock"),
        ({"seen": 49.0, "cores": 0.25, "lock": None}, "unclear"),
        ({"seen": 49.0, "cores": 1.2, "lock": 0.0, "parallelism": 2}, "releases the lock"),
        # A call in flight half of the time can be met, and can compute, only then.
        ({"wall_ms": 5.0, "seen": 25.0, "cores": 0.25, "lock": 0.0}, "releases the lock"),
        ({"wall_ms": 5.0, "seen": 25.0, "cores": 0.24, "lock": 0.0}, "waits"),
        ({"wall_ms": 5.0, "seen": 24.0, "cores": 0.13, "lock": 0.0}, "holds the lock"),
        ({"wall_ms": 5.0, "seen": 24.0, "cores": 0.12, "lock": 0.0}, "waits"),
    ],
)
def test_what_python_does_is_told_by_who_was_seen_what_it_took_and_who_waited(
    known: dict[str, Any], work: str
) -> None:
    assert used(**known).work == work


def test_the_work_is_told_with_what_it_rests_on() -> None:
    use = used(20.0, cores=0.4, seen=60.0, lock=3.0)

    assert use.evidence == {
        "calls_in_flight": 2.0,
        "data_threads_cores": 0.4,
        "seen_in_stacks_percent": 60.0,
        "lock_percent": 3.0,
    }


@pytest.mark.parametrize(
    ("wall_ms", "cores", "percent"),
    [(10.0, 0.25, 75.0), (5.0, 0.25, 50.0), (40.0, 0.25, 75.0), (10.0, 3.0, 0.0), (0.0, 0.5, 0.0)],
)
def test_a_call_waits_while_it_is_in_flight_and_takes_no_cpu(
    wall_ms: float, cores: float, percent: float
) -> None:
    assert used(wall_ms, cores=cores).waits_percent == pytest.approx(percent)


@pytest.mark.parametrize("lacking", [{"host": None}, {"steps": None}])
def test_without_samples_or_steps_the_work_is_unclear(lacking: dict[str, None]) -> None:
    use = python_use(make_session(**lacking), make_operation("map", self_ms_per_step=3.0))

    assert (use.work, use.evidence) == ("unclear", {"wall_ms_per_step": 3.0})
    assert use.waits_percent == 0.0


def test_without_its_wall_time_the_work_is_unclear() -> None:
    assert used(None, cores=1.0).work == "unclear"


def test_input_costs_what_the_consumer_alone_says_before_what_was_waited() -> None:
    alone = Differential(step_ms=3.0, ci95_ms=(2.9, 3.1), steps=30, input_share_percent=42.0)
    waited = make_breakdown(input_wait=60.0)

    assert input_share(make_session(differential=alone, breakdown=waited)) == 42.0
    assert input_share(make_session(differential=None, breakdown=waited)) == 60.0
    assert input_share(make_session(differential=None, breakdown=None)) is None


def making_batches(
    cpu_ms: float | None, *, cost: float | None, lock: float | None = 0.0, **overrides: Any
) -> Session:
    """A step of 10 ms, of which input costs so many percent."""
    host = make_host(threads={}, python_source_cpu_ms_per_step=cpu_ms, lock_percent=lock)
    breakdown = make_breakdown(input_wait=cost) if cost is not None else None
    return make_session(**{"host": host, "breakdown": breakdown, "differential": None, **overrides})


@pytest.mark.parametrize(
    ("session", "busy"),
    [
        # Half of what input costs.
        (making_batches(3.0, cost=60.0), True),
        (making_batches(2.9, cost=60.0), False),
        # But no less than a twentieth of the step.
        (making_batches(0.5, cost=1.0), True),
        (making_batches(0.4, cost=1.0), False),
        (making_batches(0.5, cost=None), True),
        # Whoever fights for the lock is busy.
        (making_batches(0.0, cost=60.0, lock=30.0), True),
        (making_batches(0.0, cost=60.0, lock=29.0), False),
        (making_batches(0.0, cost=60.0, lock=None), False),
        (making_batches(None, cost=60.0), False),
        # Not measured.
        (making_batches(9.0, cost=60.0, host=None), None),
        (making_batches(9.0, cost=60.0, steps=None), None),
    ],
)
def test_python_is_busy_from_half_of_what_input_costs_on(
    session: Session, busy: bool | None
) -> None:
    assert python_is_busy(session) is busy


@pytest.mark.parametrize(
    ("wait", "busy"),
    [
        ({"method": "differential", "contention": "lock"}, True),
        ({"method": "differential", "contention": "cpu"}, None),
        ({"method": "native", "contention": "lock"}, None),
        ({"method": "differential", "contention": "lock", "native_percent": None}, None),
    ],
)
def test_python_that_hides_behind_the_lock_is_busy_without_samples(
    wait: dict[str, Any], busy: bool | None
) -> None:
    assert python_is_busy(make_session(host=None, input_wait=make_input_wait(**wait))) is busy
    assert python_is_busy(make_session(host=None, input_wait=None)) is None


def test_batches_are_made_on_threads_of_python_or_of_tf_data() -> None:
    both = {"tf_data": 60.0, "python_other": 20.0}
    measured = make_host(threads=both, python_source_cpu_ms_per_step=9.0)

    assert source_cpu_ms(make_session(host=measured)) == 9.0
    assert source_cpu_ms(make_session(host=make_host(threads=both))) == 8.0
    assert source_cpu_ms(make_session(host=None)) is None
    assert source_cpu_ms(make_session(steps=None)) is None


def test_cpu_of_threads_that_nothing_tells_apart_is_not_known_to_be_no_source_s() -> None:
    """A loop that ends before its stacks are sampled names no thread of Python's."""

    def taken(others: float, own: float | None, waits: float = 70.0) -> float | None:
        pools = {"tf_data": 2.0, "others": others}
        host = make_host(threads=pools, python_source_cpu_ms_per_step=own)
        wait = make_input_wait(native_percent=waits)
        return source_cpu_ms(make_session(host=host, input_wait=wait))

    assert taken(90.0, None) is None
    assert taken(1.0, None) == pytest.approx(0.2)
    assert taken(90.0, 0.0) == pytest.approx(0.2)
    # A loop that does nothing but wait leaves no one else to compute.
    assert taken(90.0, None, waits=98.0) == pytest.approx(9.2)
    assert taken(90.0, 0.0, waits=98.0) == pytest.approx(0.2)


def test_what_is_compiled_for_each_shape_is_no_cost_of_the_input() -> None:
    """A repeated batch has one shape: its step is shorter by what is compiled for others, too."""

    def share(compiled: float) -> float | None:
        return input_share(make_session(breakdown=make_breakdown(compile=compiled)))

    assert share(0.0) == 70.0
    assert share(60.0) == pytest.approx(10.0)
    assert share(90.0) == 0.0
