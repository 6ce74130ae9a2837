from __future__ import annotations

import pytest

from pipediag.rules.device import input_gap
from pipediag.rules.registry import run_rules
from pipediag.session.edits import Insert
from tests.factories import make_compute_bound_session, make_session
from tests.rules.devices import cpu, gap, gpu, on_devices, session_on, under_floor
from tests.rules.sessions import only, straddles


def test_names_what_worked_longest_in_the_gaps() -> None:
    device = gpu(
        {"input": 50.0},
        gaps=[
            gap("input", 20.0, iterator="Root::Prefetch::Map", file="train.py", line=12),
            gap("input", 15.0, iterator="Root::Prefetch::Map", file="train.py", line=12),
            gap("input", 15.0, iterator="Root::Shuffle", file="train.py", line=11),
        ],
    )
    finding = on_devices(input_gap, device)
    assert (finding.status, finding.file, finding.line) == ("fail", "train.py", 12)
    assert finding.evidence["iterator"] == "Root::Prefetch::Map"
    assert finding.evidence["iterator_gap_ms"] == 35.0
    assert finding.evidence["input_idle_percent_of_span"] == 50.0
    assert "num_parallel_calls" in finding.advice
    assert finding.speedup_at_most == 2.0


@pytest.mark.parametrize(("idle", "words"), [(10.0, "costs it time"), (20.0, "limits it")])
def test_says_how_much_it_weighs(idle: float, words: str) -> None:
    assert words in on_devices(input_gap, gpu({"input": idle})).advice


@pytest.mark.parametrize(
    ("elements", "words"), [(0.0, "held 0.0 elements"), (3.0, "held 3.0 elements")]
)
def test_reads_the_buffer_next_to_the_consumer(elements: float, words: str) -> None:
    device = gpu({"input": 30.0}, gaps=[gap("input", 30.0, buffered_elements=elements)])
    finding = on_devices(input_gap, device)
    assert finding.evidence["buffered_elements"] == elements
    assert words in finding.advice


def test_each_gap_counts_by_its_part_for_input() -> None:
    mixed = gap("input", 20.0, iterator="Root::Map", causes_ms={"input": 6.0, "python": 5.0})
    other = gap("input", 7.0, iterator="Root::Shuffle")
    finding = on_devices(input_gap, gpu({"input": 13.0, "python": 5.0}, gaps=[mixed, other]))
    assert finding.evidence["iterator"] == "Root::Shuffle"


def test_a_cpu_that_stands_for_a_device_waits_too() -> None:
    assert on_devices(input_gap, cpu({"input": 30.0})).status == "fail"


def test_a_gpu_counts_before_the_cpu() -> None:
    finding = on_devices(input_gap, cpu({"input": 80.0}), gpu({"input": 2.0}))
    assert (finding.status, finding.evidence["device"]) == ("pass", "GPU:0")


def test_names_the_host_of_the_device_that_waits_most() -> None:
    idle = gpu({"input": 30.0}, host="worker1")
    finding = on_devices(input_gap, gpu({"input": 10.0}, host="worker0"), idle)
    assert finding.evidence["device"] == "worker1 GPU:0"


def test_near_misses_pass() -> None:
    assert on_devices(input_gap, gpu({"input": 4.9, "python": 40.0})).status == "pass"


def test_a_profile_without_devices_is_not_its_business() -> None:
    (finding,) = input_gap.check_devices([])
    assert finding.status == "not-applicable"


def test_a_session_adds_the_operation_and_its_ceiling() -> None:
    session = make_session(devices=[gpu({"input": 90.0}, gaps=[gap("input", 90.0, op_id="map_0")])])
    finding = only(input_gap, session)
    assert (finding.status, finding.op_id) == ("fail", "map_0")
    # Amdahl gives 10, the session's differential 3.33.
    assert finding.speedup_at_most == 3.5


def test_without_a_ceiling_a_session_predicts_nothing() -> None:
    session = make_session(devices=[gpu({"input": 50.0})], ceiling=None)
    finding = only(input_gap, session)
    assert finding.speedup_at_most is None


def test_steps_that_do_not_wait_without_the_profiler_are_believed() -> None:
    finding = only(input_gap, session_on(gpu({"input": 30.0})))
    assert finding.status == "informative"
    assert "1.0 %" in finding.advice
    doubtful = only(input_gap, make_session(devices=[gpu({"input": 30.0})], **straddles()))
    assert doubtful.status == "informative"


def test_a_session_without_breakdown_has_the_profile_alone() -> None:
    session = make_session(devices=[gpu({"input": 30.0})], breakdown=None)
    assert only(input_gap, session).status == "fail"


def test_where_a_rule_on_the_pipeline_fails_it_points_there() -> None:
    findings = run_rules(make_session(devices=[gpu({"input": 50.0})]))
    finding = next(found for found in findings if found.rule == "input-gap")
    assert (finding.status, finding.severity) == ("informative", "info")
    assert finding.needs_first == "parallel-map"
    assert finding.speedup_at_most is None


def test_a_session_without_devices_is_inconclusive() -> None:
    session = make_compute_bound_session(devices=[], breakdown_missing="No step was profiled.")
    finding = only(input_gap, session)
    assert (finding.status, finding.advice) == ("inconclusive", "No step was profiled.")


def test_an_iterator_that_works_through_the_gap_makes_elements() -> None:
    full = gap("input", 30.0, buffered_elements=1.0, iterator="Root::Prefetch::Map")
    finding = on_devices(input_gap, gpu({"input": 30.0}, gaps=[full]))
    assert "ready" not in finding.advice


def test_a_few_readings_of_the_buffer_speak_for_no_other_gap() -> None:
    gaps = [gap("input", 10.0, buffered_elements=1.0), gap("input", 20.0)]
    finding = on_devices(input_gap, gpu({"input": 30.0}, gaps=gaps))
    assert "ready" not in finding.advice
    assert finding.evidence["buffered_elements"] is None


def test_gaps_that_may_hide_waits_for_input_leave_it_open() -> None:
    assert on_devices(input_gap, under_floor()).status == "inconclusive"
    assert on_devices(input_gap, under_floor(floor_us=5.0)).status == "pass"


def test_another_loader_gets_its_own_advice() -> None:
    finding = on_devices(input_gap, gpu({"input": 30.0}), framework="pytorch")
    assert "num_workers" in finding.advice
    with_tf_data = gpu({"input": 30.0}, gaps=[gap("input", 30.0, iterator="Root::Map")])
    assert "num_parallel_calls" in on_devices(input_gap, with_tf_data, framework="jax").advice


def test_in_a_session_without_an_accelerator_the_breakdown_says_it() -> None:
    session = session_on(cpu({"input": 80.0}))
    by_rule = {finding.rule: finding for finding in run_rules(session)}
    for rule in ("input-gap", "python-gap"):
        assert by_rule[rule].status == "not-applicable"
        assert "breakdown" in by_rule[rule].advice
    assert on_devices(input_gap, cpu({"input": 80.0})).status == "fail"


@pytest.mark.parametrize("buffered", [0.0, 3.0, None])
def test_tries_to_hand_over_ahead_whatever_the_buffer_held(buffered: float | None) -> None:
    waits = gap("input", 30.0, buffered_elements=buffered, iterator="Root::Prefetch::Map")
    edit = only(input_gap, make_session(devices=[gpu({"input": 30.0}, gaps=[waits])])).edit
    assert edit is not None
    assert edit.changes == (Insert("batch_0", "prefetch_to_device", {"device": "/gpu:0"}),)


def test_a_device_that_does_nothing_else_predicts_nothing() -> None:
    finding = on_devices(input_gap, gpu({"input": 100.0}))
    assert finding.speedup_at_most is None
