from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.pipeline import python_source_lock
from pipediag.session.host import HotLine
from pipediag.session.model import Session
from pipediag.session.steps import Differential, InputWait
from tests.factories import make_host, make_keras, make_loop
from tests.records import make_breakdown, make_input_wait, make_operation
from tests.rules.sessions import batch, keeps_up, only, session_of, source

HIDDEN = Differential(step_ms=3.0, ci95_ms=(2.9, 3.1), steps=30, input_share_percent=70.0)
INNOCENT = Differential(step_ms=9.8, ci95_ms=(9.6, 10.0), steps=30, input_share_percent=2.0)
LINE = HotLine(file="data.py", line=7, function="__getitem__", percent=60.0, thread="source")


def session_with(adapter: str = "PyDatasetAdapter", **overrides: Any) -> Session:
    keras = make_keras(data_adapter=adapter, source_file="data.py", source_line=3)
    host = make_host(hot_python=[LINE], python_source_cpu_ms_per_step=5.0, threads={})
    values = {"loops": [make_loop(keras=keras)], "differential": HIDDEN, "host": host, **overrides}
    framework = source(made_by_framework=True)
    return session_of(framework, **values)


def test_a_pydataset_that_hides_in_the_consumer_fails() -> None:
    finding = only(python_source_lock, session_with())
    assert finding.status == "fail"
    assert (finding.file, finding.line) == ("data.py", 7)
    assert "use_multiprocessing=True" in finding.advice
    # 10 ms a step; alone 3 ms; 5 ms of source CPU spread over two CPUs is less.
    assert finding.speedup_at_most == pytest.approx(10 / 3, abs=0.001)


@pytest.mark.parametrize(
    ("adapter", "source_name"),
    [("PyDatasetAdapter", "A PyDataset"), ("GeneratorDataAdapter", "A Python generator")],
)
def test_a_source_that_is_waited_for_is_slow_whatever_the_lock(
    adapter: str, source_name: str
) -> None:
    """Of 7 ms that input costs the loop is seen to wait for all; the lock stands in its way not."""
    finding = only(python_source_lock, session_with(adapter))
    assert finding.title == f"{source_name} makes batches more slowly than training takes them"
    assert "lock_percent" in finding.evidence


def test_a_slow_generator_is_not_blamed_for_the_lock() -> None:
    finding = only(python_source_lock, session_with("GeneratorDataAdapter"))
    assert "training waits 7.0 ms of each step for the generator." in finding.advice
    assert "It computes for 5.0 ms a step." in finding.advice
    assert "interpreter lock" not in finding.advice


@pytest.mark.parametrize(("wait_percent", "by_the_lock"), [(34.9, True), (35.1, False)])
def test_a_cost_of_which_less_than_half_is_waiting_is_the_locks(
    wait_percent: float, by_the_lock: bool
) -> None:
    wait = make_input_wait(native_percent=wait_percent, method="differential", contention="lock")
    finding = only(python_source_lock, session_with("GeneratorDataAdapter", input_wait=wait))
    assert ("holding the interpreter lock" in finding.title) is by_the_lock
    assert ("share one interpreter lock" in finding.advice) is by_the_lock


@pytest.mark.parametrize(("wait_percent", "by_the_lock"), [(34.9, True), (35.1, False)])
def test_without_gap_times_the_breakdown_tells_what_is_waited(
    wait_percent: float, by_the_lock: bool
) -> None:
    breakdown = make_breakdown(input_wait=wait_percent, device_compute=100 - wait_percent)
    session = session_with("GeneratorDataAdapter", breakdown=breakdown, input_wait=None)
    finding = only(python_source_lock, session)
    assert ("holding the interpreter lock" in finding.title) is by_the_lock


def test_cpu_of_the_threads_that_run_it_bounds_the_prediction() -> None:
    host = make_host(python_source_cpu_ms_per_step=0.0, threads={"tf_data": 90.0})
    finding = only(python_source_lock, session_with(host=host))
    assert finding.speedup_at_most == pytest.approx(10 / 4.5, abs=0.001)


def test_a_generator_is_told_to_use_whole_arrays() -> None:
    finding = only(python_source_lock, session_with("GeneratorDataAdapter"))
    assert finding.status == "fail"
    assert "whole-array NumPy" in finding.advice


def test_from_generator_in_a_custom_loop_counts() -> None:
    session = session_of(
        make_operation("gen", "from_generator"),
        batch(),
        differential=HIDDEN,
        loops=[make_loop(kind="eager", keras=None)],
    )
    finding = only(python_source_lock, session)
    assert (finding.status, finding.op_id) == ("fail", "gen")


def test_one_line_goes_before_writing_the_generator_anew() -> None:
    costly = make_operation(
        "gen", "from_generator", elements=32.0, self_ms_per_step=8.0, element_bytes=12
    )
    session = session_of(costly, batch(), differential=HIDDEN)
    spread = session.model_copy(update={"host": make_host(hot_python=[])})

    for one, rewrite in ((session, "or make train.py:6 in `parse` cheaper"), (spread, "or build")):
        advice = only(python_source_lock, one).advice
        assert advice.startswith("Put `.cache()` directly behind")
        assert rewrite in advice


def test_an_innocent_source_passes() -> None:
    assert only(python_source_lock, session_with(differential=INNOCENT)).status == "pass"


def test_a_lock_that_is_waited_for_counts_as_busy() -> None:
    host = make_host(lock_percent=50.0, python_source_cpu_ms_per_step=None, threads={})
    assert only(python_source_lock, session_with(host=host)).status == "fail"


def test_input_cost_without_busy_python_passes() -> None:
    host = make_host(lock_percent=1.0, python_source_cpu_ms_per_step=0.1, threads={})
    assert only(python_source_lock, session_with(host=host)).status == "pass"


def test_a_source_that_waits_more_than_it_computes_passes() -> None:
    # Input costs 7 of 10 ms, of which the source computes 1.
    host = make_host(lock_percent=5.0, python_source_cpu_ms_per_step=1.0, threads={})
    assert only(python_source_lock, session_with(host=host)).status == "pass"


def test_a_cost_that_the_measures_found_hidden_needs_no_other_sign() -> None:
    host = make_host(lock_percent=1.0, python_source_cpu_ms_per_step=0.0, threads={})
    wait = InputWait(
        native_percent=2.0,
        native_ci95_percent=(1.0, 3.0),
        trace_percent=None,
        method="differential",
        contention="lock",
        disagreement=None,
    )
    finding = only(python_source_lock, session_with(host=host, input_wait=wait))
    assert (finding.status, finding.title) == ("fail", python_source_lock.META.title_failed)


def test_without_the_differential_a_visible_wait_fails_and_nothing_is_predicted() -> None:
    session = session_with(differential=None, differential_missing="The batch can't be repeated.")
    finding = only(python_source_lock, session)
    assert finding.status == "fail"


@pytest.mark.parametrize("overrides", [{"host": None}, {"breakdown": None}, keeps_up()])
def test_without_the_differential_a_hidden_cost_is_inconclusive(overrides: dict[str, Any]) -> None:
    session = session_with(**{"differential": None, **overrides})
    assert only(python_source_lock, session).status == "inconclusive"


def test_without_the_host_the_differential_is_enough() -> None:
    assert only(python_source_lock, session_with(host=None)).status == "fail"


def test_other_sources_are_none_of_its_business() -> None:
    session = session_of(source(), batch(), differential=HIDDEN)
    assert only(python_source_lock, session).status == "not-applicable"


def test_without_a_reason_for_the_differential_it_says_what_was_not_done() -> None:
    hidden = only(python_source_lock, session_with(differential=None, host=None))
    assert hidden.advice.startswith("The consumer was not measured on a repeated batch.")
