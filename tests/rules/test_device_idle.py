from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.device_idle import (
    INPUT_GAP,
    LAUNCH_BOUND,
    PYTHON_GAP,
    SMALL_KERNELS,
    SYNC_POINT,
    devices_input_gap,
    prefetched_to,
)
from pipediag.rules.gpu import EXPOSED_HOST_COPY, MIXED_PRECISION
from pipediag.rules.registry import run_device_rules, run_rules
from pipediag.rules.rule import Meta
from pipediag.session.devices import DeviceActivity, DeviceKernel
from pipediag.session.edits import Insert, SetModel
from pipediag.session.loops import Perturbation
from pipediag.session.model import HotLine
from pipediag.session.recorded_loops import Callback
from tests.factories import (
    make_compute_bound_session,
    make_host,
    make_keras,
    make_loop,
    make_session,
)
from tests.records import make_breakdown
from tests.rules.devices import copies, cpu, gap, gpu, launches, on_devices, session_on, under_floor
from tests.rules.sessions import only, straddles


@pytest.mark.parametrize(("name", "target"), [("GPU:1", "/gpu:1"), ("GPU", "/gpu:0")])
def test_goes_to_the_device_behind_everything_that_was_written(name: str, target: str) -> None:
    edit = prefetched_to(make_session(), gpu(name=name), "rule")
    assert edit is not None
    assert edit.changes == (Insert("batch_0", "prefetch_to_device", {"device": target}),)


def test_not_without_a_pipeline_or_under_a_strategy() -> None:
    for session in (
        make_session(pipeline=None),
        make_session(loops=[]),
        make_session(loops=[make_loop(kind="distributed")]),
        make_session(loops=[make_loop(replicas=2)]),
    ):
        assert prefetched_to(session, gpu(), "rule") is None


def test_names_what_worked_longest_in_the_gaps() -> None:
    device = gpu(
        {"input": 50.0},
        gaps=[
            gap("input", 20.0, iterator="Root::Prefetch::Map", file="train.py", line=12),
            gap("input", 15.0, iterator="Root::Prefetch::Map", file="train.py", line=12),
            gap("input", 15.0, iterator="Root::Shuffle", file="train.py", line=11),
        ],
    )
    finding = on_devices(INPUT_GAP, device)
    assert (finding.status, finding.file, finding.line) == ("fail", "train.py", 12)
    assert finding.evidence["iterator"] == "Root::Prefetch::Map"
    assert finding.evidence["iterator_gap_ms"] == 35.0
    assert finding.evidence["input_idle_percent_of_span"] == 50.0
    assert finding.speedup_at_most == 2.0


@pytest.mark.parametrize(
    ("elements", "words"), [(0.0, "held 0.0 elements"), (3.0, "held 3.0 elements")]
)
def test_reads_the_buffer_next_to_the_consumer(elements: float, words: str) -> None:
    device = gpu({"input": 30.0}, gaps=[gap("input", 30.0, buffered_elements=elements)])
    finding = on_devices(INPUT_GAP, device)
    assert finding.evidence["buffered_elements"] == elements


def test_each_gap_counts_by_its_part_for_input() -> None:
    mixed = gap("input", 20.0, iterator="Root::Map", causes_ms={"input": 6.0, "python": 5.0})
    other = gap("input", 7.0, iterator="Root::Shuffle")
    finding = on_devices(INPUT_GAP, gpu({"input": 13.0, "python": 5.0}, gaps=[mixed, other]))
    assert finding.evidence["iterator"] == "Root::Shuffle"


def test_input_a_cpu_that_stands_for_a_device_waits_too() -> None:
    assert on_devices(INPUT_GAP, cpu({"input": 30.0})).status == "fail"


def test_a_gpu_counts_before_the_cpu() -> None:
    finding = on_devices(INPUT_GAP, cpu({"input": 80.0}), gpu({"input": 2.0}))
    assert (finding.status, finding.evidence["device"]) == ("pass", "GPU:0")


def test_names_the_host_of_the_device_that_waits_most() -> None:
    idle = gpu({"input": 30.0}, host="worker1")
    finding = on_devices(INPUT_GAP, gpu({"input": 10.0}, host="worker0"), idle)
    assert finding.evidence["device"] == "worker1 GPU:0"


def test_input_near_misses_pass() -> None:
    assert on_devices(INPUT_GAP, gpu({"input": 4.9, "python": 40.0})).status == "pass"


def test_input_a_profile_without_devices_is_not_its_business() -> None:
    (finding,) = devices_input_gap([])
    assert finding.status == "not-applicable"


def test_a_session_adds_the_operation_and_its_ceiling() -> None:
    session = make_session(devices=[gpu({"input": 90.0}, gaps=[gap("input", 90.0, op_id="map_0")])])
    finding = only(INPUT_GAP, session)
    assert (finding.status, finding.op_id) == ("fail", "map_0")
    # Amdahl gives 10, the session's differential 3.33.
    assert finding.speedup_at_most == 3.5


def test_without_a_ceiling_a_session_predicts_nothing() -> None:
    session = make_session(devices=[gpu({"input": 50.0})], ceiling=None)
    finding = only(INPUT_GAP, session)
    assert finding.speedup_at_most is None


def test_steps_that_do_not_wait_without_the_profiler_are_believed() -> None:
    finding = only(INPUT_GAP, session_on(gpu({"input": 30.0})))
    assert finding.status == "informative"
    doubtful = only(INPUT_GAP, make_session(devices=[gpu({"input": 30.0})], **straddles()))
    assert doubtful.status == "informative"


def test_a_session_without_breakdown_has_the_profile_alone() -> None:
    session = make_session(devices=[gpu({"input": 30.0})], breakdown=None)
    assert only(INPUT_GAP, session).status == "fail"


def test_where_a_rule_on_the_pipeline_fails_it_points_there() -> None:
    findings = run_rules(make_session(devices=[gpu({"input": 50.0})]))
    finding = next(found for found in findings if found.rule == "device-idle")
    assert (finding.status, finding.severity) == ("informative", "info")
    assert finding.needs_first == "parallel-map"
    assert finding.speedup_at_most is None


def test_a_session_without_devices_is_inconclusive() -> None:
    session = make_compute_bound_session(devices=[], breakdown_missing="No step was profiled.")
    finding = only(INPUT_GAP, session)
    assert (finding.status, finding.advice) == ("inconclusive", "No step was profiled.")


def test_a_few_readings_of_the_buffer_speak_for_no_other_gap() -> None:
    gaps = [gap("input", 10.0, buffered_elements=1.0), gap("input", 20.0)]
    finding = on_devices(INPUT_GAP, gpu({"input": 30.0}, gaps=gaps))
    assert finding.evidence["buffered_elements"] is None


def test_gaps_that_may_hide_waits_for_input_leave_it_open() -> None:
    assert on_devices(INPUT_GAP, under_floor()).status == "inconclusive"
    assert on_devices(INPUT_GAP, under_floor(floor_us=5.0)).status == "pass"


def test_in_a_session_without_an_accelerator_the_breakdown_says_it() -> None:
    session = session_on(cpu({"input": 80.0}))
    by_rule = {finding.rule: finding for finding in run_rules(session)}
    for rule in ("device-idle", "device-idle"):
        assert by_rule[rule].status == "not-applicable"
    assert on_devices(INPUT_GAP, cpu({"input": 80.0})).status == "fail"


@pytest.mark.parametrize("buffered", [0.0, 3.0, None])
def test_tries_to_hand_over_ahead_whatever_the_buffer_held(buffered: float | None) -> None:
    waits = gap("input", 30.0, buffered_elements=buffered, iterator="Root::Prefetch::Map")
    edit = only(INPUT_GAP, make_session(devices=[gpu({"input": 30.0}, gaps=[waits])])).edit
    assert edit is not None
    assert edit.changes == (Insert("batch_0", "prefetch_to_device", {"device": "/gpu:0"}),)


def test_a_device_that_does_nothing_else_predicts_nothing() -> None:
    finding = on_devices(INPUT_GAP, gpu({"input": 100.0}))
    assert finding.speedup_at_most is None


def small(idle: float = 40.0, **overrides: Any) -> DeviceActivity:
    values = {"shorter_than_launch_percent": 80.0, "median_kernel_us": 2.0, **overrides}
    kernels = [
        DeviceKernel(name="ampere_sgemm_128x64_nn", count=3, ms=9.0),
        DeviceKernel(name="AddV2_GPU_DT_FLOAT", count=900, ms=1.0),
    ]
    return gpu({"launch": idle}, launches=launches(**values), kernels=kernels)


def test_kernels_shorter_than_their_launch_are_to_be_fused() -> None:
    finding = on_devices(SMALL_KERNELS, small())
    assert finding.status == "fail"
    assert finding.evidence["shorter_than_launch_percent"] == 80.0
    assert finding.evidence["most_frequent_kernel"] == "AddV2_GPU_DT_FLOAT"
    assert finding.effect_on_results == "same up to order or rounding"
    assert finding.speedup_at_most is None


def test_a_device_that_is_kept_busy_only_informs() -> None:
    assert on_devices(SMALL_KERNELS, small(4.0)).status == "informative"


def test_kernels_near_misses_pass() -> None:
    assert on_devices(SMALL_KERNELS, small(shorter_than_launch_percent=49.0)).status == "pass"


@pytest.mark.parametrize(
    "device",
    [small(matched=99), small(shorter_than_launch_percent=None), gpu({"launch": 40.0})],
)
def test_too_few_launches_are_inconclusive(device: DeviceActivity) -> None:
    assert on_devices(SMALL_KERNELS, device).status == "inconclusive"


def test_a_cpu_launches_nothing() -> None:
    assert on_devices(SMALL_KERNELS, cpu({"launch": 40.0})).status == "not-applicable"


def test_kernels_a_session_says_the_same() -> None:
    assert only(SMALL_KERNELS, session_on(small())).status == "fail"


def test_a_device_without_kernels_does_not_stand_for_the_others() -> None:
    finding = on_devices(SMALL_KERNELS, gpu(name="GPU:1"), small(shorter_than_launch_percent=0.0))
    assert (finding.status, finding.evidence["device"]) == ("pass", "GPU:0")


def test_kernels_gaps_that_were_not_looked_into_leave_it_open() -> None:
    short = launches(shorter_than_launch_percent=80.0)
    finding = on_devices(SMALL_KERNELS, under_floor(launches=short))
    assert finding.status == "inconclusive"


def test_tries_xla() -> None:
    device = gpu({"launch": 20.0}, launches=launches(shorter_than_launch_percent=80.0))
    edit = only(SMALL_KERNELS, session_on(device)).edit
    assert edit is not None
    assert (edit.id, edit.changes) == ("device-idle:xla", (SetModel({"jit_compile": True}),))
    assert "A profile alone" in str(on_devices(SMALL_KERNELS, device).trial.reason)


def waiting(idle: float = 40.0, **overrides: Any) -> DeviceActivity:
    return gpu({"launch": idle}, launches=launches(**overrides))


def test_a_device_that_waits_for_each_launch() -> None:
    finding = on_devices(LAUNCH_BOUND, waiting())
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
    finding = on_devices(LAUNCH_BOUND, gpu({"launch": 40.0}, gaps=gaps))
    assert finding.evidence["launching_thread_in"] == "ExecutorState::Process"


def test_a_queue_that_is_mostly_filled_only_informs() -> None:
    finding = on_devices(LAUNCH_BOUND, waiting(median_delay_us=400.0))
    assert finding.status == "informative"


def test_an_edit_is_tried_also_where_kernels_are_launched_ahead_or_the_profile_is_in_doubt() -> (
    None
):
    ahead = only(LAUNCH_BOUND, session_on(waiting(median_delay_us=400.0)))
    slowed = Perturbation(baseline_step_ms=10.0, profiled_step_ms=20.0, ratio=2.0)
    doubtful = only(LAUNCH_BOUND, session_on(waiting(), perturbation=slowed))
    assert {(one.status, one.edit is not None) for one in (ahead, doubtful)} == {
        ("informative", True)
    }
    waits = gpu({"launch": 20.0, "input": 30.0}, launches=launches())
    assert only(LAUNCH_BOUND, session_on(waits)).edit is not None


def test_launch_while_input_is_the_bottleneck_it_only_informs() -> None:
    device = gpu({"launch": 20.0, "input": 30.0}, launches=launches())
    assert on_devices(LAUNCH_BOUND, device).status == "informative"


def test_launch_near_misses_pass() -> None:
    assert on_devices(LAUNCH_BOUND, waiting(14.9)).status == "pass"
    assert on_devices(LAUNCH_BOUND, gpu({"python": 60.0})).status == "pass"


def test_a_cpu_has_no_queue() -> None:
    assert on_devices(LAUNCH_BOUND, cpu({"launch": 60.0})).status == "not-applicable"


def test_small_kernels_say_more_of_the_same() -> None:
    findings = run_device_rules([waiting(shorter_than_launch_percent=80.0)])
    fuse, bound = (one for one in findings if one.rule == "device-idle")
    assert (fuse.status, fuse.title) == ("fail", SMALL_KERNELS.title_failed)
    # It waits no less often for it.
    assert (bound.status, bound.title) == ("informative", LAUNCH_BOUND.title_failed)


def test_launch_what_the_profiler_slowed_much_is_in_doubt() -> None:
    slowed = Perturbation(baseline_step_ms=10.0, profiled_step_ms=20.0, ratio=2.0)
    finding = only(LAUNCH_BOUND, session_on(waiting(), perturbation=slowed))
    assert finding.status == "informative"
    assert finding.evidence["profiled_step_ratio"] == 2.0
    assert only(LAUNCH_BOUND, session_on(waiting(), perturbation=None)).status == "fail"


def test_launch_gaps_that_were_not_looked_into_leave_it_open() -> None:
    finding = on_devices(LAUNCH_BOUND, under_floor(launches=launches()))
    assert finding.status == "inconclusive"
    busy = under_floor(10.0, launches=launches())
    assert on_devices(LAUNCH_BOUND, busy).status == "pass"
    known = under_floor(20.0, idle_ms=60.0, launches=launches())
    assert on_devices(LAUNCH_BOUND, known).status == "pass"


def test_tries_xla_and_then_several_steps_a_call() -> None:
    for keras, settings in (
        (make_keras(), {"jit_compile": True}),
        (make_keras(jit_compile=True), {"steps_per_execution": 16}),
    ):
        session = session_on(waiting(), loops=[make_loop(keras=keras)])
        edit = only(LAUNCH_BOUND, session).edit
        assert edit is not None
        assert edit.changes == (SetModel(settings),)  # type: ignore[arg-type]


def test_says_why_it_is_not_tried() -> None:
    assert "A profile alone" in str(on_devices(LAUNCH_BOUND, waiting()).trial.reason)
    own = session_on(waiting(), loops=[make_loop(kind="eager", keras=None)])
    assert "Your own training loop" in str(only(LAUNCH_BOUND, own).trial.reason)


def test_read_backs_in_every_step() -> None:
    device = gpu(
        {"sync": 20.0},
        gaps=[gap("sync", 10.0, step=step, doing="$array.py:400 numpy") for step in (0, 1)],
        copies=[copies(direction="device_to_host", count=2)],
    )
    finding = on_devices(SYNC_POINT, device)
    assert finding.status == "fail"
    assert finding.evidence["steps_with_such_gaps"] == 2
    assert finding.evidence["copies_to_host"] == 2
    assert finding.speedup_at_most == 1.25


def test_sync_near_misses_pass() -> None:
    assert on_devices(SYNC_POINT, gpu({"sync": 4.9, "launch": 50.0})).status == "pass"


def test_sync_while_input_is_the_bottleneck_it_only_informs() -> None:
    assert on_devices(SYNC_POINT, gpu({"sync": 20.0, "input": 20.0})).status == "informative"


def test_a_cpu_is_busy_while_it_is_waited_for() -> None:
    assert on_devices(SYNC_POINT, cpu({"sync": 20.0})).status == "not-applicable"


def test_sync_a_session_says_the_same() -> None:
    assert only(SYNC_POINT, session_on(gpu({"sync": 20.0}))).status == "fail"


def test_host_overhead_comes_first() -> None:
    overhead = make_breakdown(dispatch=20.0, python=32.0, device_compute=48.0)
    findings = run_rules(session_on(gpu({"sync": 20.0}), breakdown=overhead))
    finding = next(found for found in findings if found.title == SYNC_POINT.title_failed)
    assert (finding.status, finding.needs_first) == ("informative", "host-overhead")


STEPS = [gap("python", 5.0, step=step, doing="$callbacks.py:12 log") for step in range(8)]
LOGGING = gpu({"python": 40.0}, gaps=STEPS)


def test_python_in_every_step() -> None:
    finding = on_devices(PYTHON_GAP, LOGGING)
    assert finding.status == "fail"
    assert finding.evidence["there_ms"] == 40.0
    # 100 ms over 60 ms.
    assert finding.speedup_at_most == 1.667


def test_a_single_pause_only_informs() -> None:
    pause = gap("python", 25.0, step=7, doing="$saving.py:80 save")
    device = gpu({"python": 40.0}, gaps=[*STEPS[:3], pause])
    finding = on_devices(PYTHON_GAP, device)
    assert finding.status == "informative"


def test_python_a_cpu_that_stands_for_a_device_waits_too() -> None:
    device = cpu({"python": 40.0}).model_copy(update={"gaps": STEPS})
    assert on_devices(PYTHON_GAP, device).status == "fail"


def test_python_near_misses_pass() -> None:
    assert on_devices(PYTHON_GAP, gpu({"python": 14.9, "launch": 50.0})).status == "pass"


def test_python_a_profile_without_devices_is_not_its_business() -> None:
    assert on_devices(PYTHON_GAP).status == "not-applicable"


def test_python_what_the_profiler_slowed_much_is_in_doubt() -> None:
    slowed = Perturbation(baseline_step_ms=10.0, profiled_step_ms=15.0, ratio=1.5)
    finding = only(PYTHON_GAP, session_on(LOGGING, perturbation=slowed))
    assert (finding.status, finding.edit is not None) == ("informative", True)
    passes = only(PYTHON_GAP, session_on(gpu(), perturbation=slowed))
    assert passes.status == "pass"


def test_a_callback_that_was_measured_comes_first() -> None:
    hook = Callback(name="Log", file="train.py", line=3, batch_hooks=["on_train_batch_end"])
    hot = HotLine(
        file="train.py", line=4, function="Log.on_train_batch_end", percent=40.0, thread="main"
    )
    session = session_on(
        LOGGING,
        loops=[make_loop(keras=make_keras(callbacks=[hook]))],
        host=make_host(hot_python=[hot]),
    )
    found = run_rules(session)
    finding = next(one for one in found if one.title == PYTHON_GAP.title_failed)
    assert (finding.status, finding.needs_first) == ("informative", "python-in-step")


def test_tries_several_steps_a_call() -> None:
    edit = only(PYTHON_GAP, session_on(LOGGING)).edit
    assert edit is not None
    assert edit.changes == (SetModel({"steps_per_execution": 16}),)


def slowed(name: str, by: float) -> DeviceActivity:
    """A GPU that each of the rules has the more to say of, the larger this is."""
    return gpu(
        {"input": by, "launch": by, "sync": by, "python": by},
        name=name,
        gaps=[],
        copies=[copies(exposed_ms=by)],
        launches=launches(shorter_than_launch_percent=60.0 + by),
        busy_ms=60.0,
        matmul_ms=30.0 + by,
        tensor_core_ms=0.0,
    )


@pytest.mark.parametrize(
    "rule",
    [
        EXPOSED_HOST_COPY,
        INPUT_GAP,
        LAUNCH_BOUND,
        MIXED_PRECISION,
        PYTHON_GAP,
        SMALL_KERNELS,
        SYNC_POINT,
    ],
)
def test_it_is_the_worst_that_is_named(rule: Meta) -> None:
    devices = [slowed("GPU:0", 16.0), slowed("GPU:1", 18.0), slowed("GPU:2", 17.0)]
    assert on_devices(rule, *devices).evidence["device"] == "GPU:1"
