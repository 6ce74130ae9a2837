from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.device import launch_bound
from pipediag.rules.device.registry import run_device_rules
from pipediag.session.devices import DeviceActivity
from pipediag.session.edits import SetModel
from pipediag.session.steps import Perturbation
from tests.factories import make_keras, make_loop
from tests.rules.devices import cpu, gap, gpu, launches, on_devices, session_on, under_floor
from tests.rules.sessions import only


def waiting(idle: float = 40.0, **overrides: Any) -> DeviceActivity:
    return gpu({"launch": idle}, launches=launches(**overrides))


def test_a_device_that_waits_for_each_launch() -> None:
    finding = on_devices(launch_bound, waiting())
    assert finding.status == "fail"
    for words in ("jit_compile=True", "steps_per_execution", "TF_GPU_THREAD_MODE=gpu_private"):
        assert words in finding.advice
    assert finding.evidence["median_delay_us"] == 3.0
    assert finding.speedup_at_most == pytest.approx(1.667)


def test_names_what_the_launching_thread_was_in() -> None:
    gaps = [
        gap("launch", 10.0, doing="KernelAndDeviceFunc::Run"),
        gap("launch", 30.0, doing="ExecutorState::Process"),
    ]
    finding = on_devices(launch_bound, gpu({"launch": 40.0}, gaps=gaps))
    assert finding.evidence["launching_thread_in"] == "ExecutorState::Process"


def test_a_queue_that_is_mostly_filled_only_informs() -> None:
    finding = on_devices(launch_bound, waiting(median_delay_us=400.0))
    assert finding.status == "informative"
    assert "400 us" in finding.advice


def test_an_edit_is_tried_also_where_kernels_are_launched_ahead_or_the_profile_is_in_doubt() -> (
    None
):
    ahead = only(launch_bound, session_on(waiting(median_delay_us=400.0)))
    slowed = Perturbation(baseline_step_ms=10.0, profiled_step_ms=20.0, ratio=2.0)
    doubtful = only(launch_bound, session_on(waiting(), perturbation=slowed))
    assert {(one.status, one.edit is not None) for one in (ahead, doubtful)} == {
        ("informative", True)
    }
    waits = gpu({"launch": 20.0, "input": 30.0}, launches=launches())
    assert only(launch_bound, session_on(waits)).edit is not None


def test_while_input_is_the_bottleneck_it_only_informs() -> None:
    device = gpu({"launch": 20.0, "input": 30.0}, launches=launches())
    assert on_devices(launch_bound, device).status == "informative"


def test_near_misses_pass() -> None:
    assert on_devices(launch_bound, waiting(14.9)).status == "pass"
    assert on_devices(launch_bound, gpu({"python": 60.0})).status == "pass"


def test_a_cpu_has_no_queue() -> None:
    assert on_devices(launch_bound, cpu({"launch": 60.0})).status == "not-applicable"


def test_small_kernels_say_more_of_the_same() -> None:
    findings = run_device_rules([waiting(shorter_than_launch_percent=80.0)])
    bound = next(finding for finding in findings if finding.rule == "launch-bound")
    assert (bound.status, bound.needs_first) == ("informative", "small-kernels")
    # It waits no less often for it.
    assert bound.title == launch_bound.META.title_failed


def test_what_the_profiler_slowed_much_is_in_doubt() -> None:
    slowed = Perturbation(baseline_step_ms=10.0, profiled_step_ms=20.0, ratio=2.0)
    finding = only(launch_bound, session_on(waiting(), perturbation=slowed))
    assert finding.status == "informative"
    assert finding.evidence["profiled_step_ratio"] == 2.0
    assert only(launch_bound, session_on(waiting(), perturbation=None)).status == "fail"


def test_gaps_that_were_not_looked_into_leave_it_open() -> None:
    finding = on_devices(launch_bound, under_floor(launches=launches()))
    assert finding.status == "inconclusive"
    assert "--gap-floor" in finding.advice
    busy = under_floor(10.0, launches=launches())
    assert on_devices(launch_bound, busy).status == "pass"
    known = under_floor(20.0, idle_ms=60.0, launches=launches())
    assert on_devices(launch_bound, known).status == "pass"


def test_each_framework_has_its_own_way_to_launch_less() -> None:
    assert "jax.lax.scan" in on_devices(launch_bound, waiting(), framework="jax").advice
    assert "CUDA graphs" in on_devices(launch_bound, waiting(), framework="pytorch").advice


def test_tries_xla_and_then_several_steps_a_call() -> None:
    for keras, settings in (
        (make_keras(), {"jit_compile": True}),
        (make_keras(jit_compile=True), {"steps_per_execution": 16}),
    ):
        session = session_on(waiting(), loops=[make_loop(keras=keras)])
        edit = only(launch_bound, session).edit
        assert edit is not None
        assert edit.changes == (SetModel(settings),)  # type: ignore[arg-type]


def test_says_why_it_is_not_tried() -> None:
    assert "A profile alone" in str(on_devices(launch_bound, waiting()).trial.reason)
    own = session_on(waiting(), loops=[make_loop(kind="eager", keras=None)])
    assert "Your own training loop" in str(only(launch_bound, own).trial.reason)
