from __future__ import annotations

from typing import Any

import pytest

from pipediag.measures.verdict.decision import decide
from pipediag.reporters.terminal.limits import SPARING
from pipediag.session.host import HotLine
from pipediag.session.loops import NestedCall
from pipediag.session.model import Session
from pipediag.session.run import OtherProcesses, OtherUse, Script
from pipediag.session.steps import Ceiling, Differential, Perturbation, Share
from tests.factories import make_host, make_keras, make_loop, make_loop_time, make_session
from tests.records import (
    make_breakdown,
    make_environment,
    make_input_wait,
    make_operation,
    make_pipeline,
    make_steps,
)

STOPPED = Script(path="train.py", args=[], outcome="stopped")
MEASURED_ALONE = Differential(step_ms=3.0, ci95_ms=(2.9, 3.1), steps=30, input_share_percent=70.0)


def session(**overrides: Any) -> Session:
    """An input-bound one, whose loop was not measured on a repeated batch."""
    values: dict[str, Any] = {
        "script": STOPPED,
        "perturbation": Perturbation(baseline_step_ms=10.0, profiled_step_ms=11.0, ratio=1.1),
        "differential": None,
        "ceiling": Ceiling(speedup_if_input_free=3.333, next_bottleneck="device_compute"),
    }
    return make_session(**{**values, **overrides})


def without_tensorflow(**overrides: Any) -> Session:
    return session(environment=make_environment(tensorflow=None), **overrides)


def with_interval(low: float, percent: float, high: float) -> dict[Any, Share]:
    shares = make_breakdown(input_wait=percent, device_compute=95.0 - percent)
    wait = shares["input_wait"].model_copy(update={"ci95_percent": (low, high)})
    return {**shares, "input_wait": wait}


def test_input_bound_names_the_operation_and_its_line() -> None:
    verdict = decide(session())
    assert (verdict.bottleneck, verdict.severity, verdict.confidence) == ("input", "high", "high")
    assert (verdict.file, verdict.line, verdict.op_id) == ("train.py", 12, "map_0")
    assert verdict.summary == (
        "Highly input-bound: 70 % of each step (7 ms) is spent on input; `map` at train.py:12 "
        "costs most. Free input would make training at most 3.33x as fast."
    )


@pytest.mark.parametrize(
    ("percents", "bottleneck", "severity"),
    [
        ({"input_wait": 1.0, "device_compute": 80.0, "dispatch": 15.0}, "compute", "ok"),
        ({"input_wait": 10.0, "device_compute": 80.0, "dispatch": 5.0}, "compute", "moderate"),
        ({"device_compute": 30.0, "dispatch": 40.0, "python": 25.0}, "overhead", "high"),
        ({"device_compute": 20.0, "device_copy": 50.0, "collective": 20.0}, "transfer", "high"),
        ({"device_compute": 45.0, "dispatch": 44.0}, "balanced", "high"),
        ({"device_compute": 20.0, "dispatch": 20.0}, "inconclusive", "unknown"),
        # A profiled step takes 1.1 times as long: 37 to 47 % against 46 to 56.
        ({"device_compute": 43.0, "dispatch": 51.0}, "balanced", "high"),
        ({"device_compute": 35.0, "dispatch": 63.0}, "overhead", "high"),
    ],
)
def test_what_bounds_the_step(percents: dict[str, float], bottleneck: str, severity: str) -> None:
    verdict = decide(session(breakdown=make_breakdown(**percents)))
    assert (verdict.bottleneck, verdict.severity) == (bottleneck, severity)


def test_moderate_input_is_mentioned() -> None:
    shares = make_breakdown(input_wait=10.0, device_compute=85.0)
    assert "Moderately input-bound as well" in decide(session(breakdown=shares)).summary


@pytest.mark.parametrize(
    ("interval", "bottleneck", "confidence"),
    [
        ((18.0, 22.0, 26.0), "input", "medium"),
        ((14.0, 18.0, 22.0), "compute", "medium"),
        ((3.0, 6.0, 9.0), "compute", "medium"),
        ((3.0, 12.0, 22.0), "inconclusive", "low"),
        ((21.0, 22.0, 23.0), "input", "high"),
    ],
)
def test_an_interval_that_straddles_a_limit_says_so(
    interval: tuple[float, float, float], bottleneck: str, confidence: str
) -> None:
    verdict = decide(session(breakdown=with_interval(*interval)))
    assert (verdict.bottleneck, verdict.confidence) == (bottleneck, confidence)
    straddles = any("straddles" in reason for reason in verdict.reasons)
    assert straddles is (confidence != "high")


def test_under_five_steps_there_is_no_verdict() -> None:
    verdict = decide(session(steps=make_steps(count=4)))
    assert verdict.bottleneck == "inconclusive"
    assert "Only 4 steps" in verdict.summary


def test_no_steps_at_all_give_the_reason() -> None:
    verdict = decide(
        session(steps=None, steps_missing="Only 1 steps were seen, all of them warm-up.")
    )
    assert verdict.bottleneck == "inconclusive"
    assert "all of them warm-up" in verdict.summary


def test_no_training_loop_says_what_was_seen_and_what_is_needed() -> None:
    used = OtherUse(what="`tf.compat.v1.Session.run`", file="tf1.py", line=9, count=12)
    evaluated = make_loop(role="evaluate", diagnosed=False, line=30, steps=5)
    verdict = decide(session(loops=[evaluated], other_uses=[used]))
    assert verdict.bottleneck == "inconclusive"
    assert "`tf.compat.v1.Session.run` at tf1.py:9 (12 times)" in verdict.summary
    assert "`evaluate` at train.py:30 (5 batches)" in verdict.summary
    assert "Pipediag needs a training loop" in verdict.summary


def test_a_script_that_failed_before_it_trained_says_how() -> None:
    script = Script(path="t.py", args=[], outcome="raised", status=1, detail="ValueError: no rows")
    verdict = decide(without_tensorflow(script=script, loops=[]))
    assert "ended early: ValueError: no rows." in verdict.summary
    assert "did not import TensorFlow" in verdict.summary


@pytest.mark.parametrize(
    ("status", "said"),
    [(3, "The script ended early: exited (its own status: 3). The"), (0, "seen. The script did")],
)
def test_an_exit_before_training_is_an_early_end_by_its_status(status: int, said: str) -> None:
    exited = Script(path="t.py", args=[], outcome="exited", status=status)
    assert said in decide(without_tensorflow(script=exited, loops=[])).summary


def test_a_script_that_was_killed_is_not_said_to_have_done_without_tensorflow() -> None:
    killed = Script(path="t.py", args=[], outcome="killed", status=-9, detail="It was killed.")
    before = decide(without_tensorflow(script=killed, loops=[])).summary
    assert "It was killed. It had not imported TensorFlow by then. Pipediag needs" in before
    after = decide(session(script=killed, loops=[])).summary
    assert "It had imported TensorFlow by then; no step of a training was recorded yet." in after


@pytest.mark.parametrize(
    ("tensorflow", "own"),
    [
        (None, "That process did not import TensorFlow."),
        ("2.21.0", "That process imported TensorFlow and took no batch from a dataset."),
    ],
)
def test_a_training_in_another_process_is_not_said_to_be_none(
    tensorflow: str | None, own: str
) -> None:
    busy = OtherProcesses(count=2, cpu_s=34.0)
    verdict = decide(
        session(loops=[], environment=make_environment(tensorflow=tensorflow), other_processes=busy)
    )
    assert verdict.summary == (
        f"No training loop was seen in the script's own process. {own} It started 2 other "
        "processes, with 34 s of CPU time in all, which pipediag does not measure: if the training "
        "runs there (multiprocessing, subprocess, a launcher), run it in the main process to have "
        "it measured."
    )
    assert len(verdict.summary) <= SPARING[0].leading_characters


def test_a_helper_that_did_next_to_nothing_is_not_mentioned() -> None:
    idle = OtherProcesses(count=1, cpu_s=0.1)
    verdict = decide(without_tensorflow(loops=[], other_processes=idle))
    assert verdict.summary.startswith("No training loop was seen. The script did not import Tens")


def test_a_training_beside_another_one_is_less_sure() -> None:
    other = make_loop(id="loop9", line=44, diagnosed=False)
    verdict = decide(session(loops=[make_loop(beside="loop9"), other]))
    assert verdict.confidence == "medium"
    assert any(
        "Another thread trained at the same time at train.py:44" in r for r in verdict.reasons
    )


def test_a_missing_tensorflow_is_told_with_what_to_install() -> None:
    why = "ModuleNotFoundError: No module named 'tensorflow'"
    failed = Script(path="t.py", args=[], outcome="raised", status=1, detail=why)
    verdict = decide(without_tensorflow(script=failed, loops=[]))
    assert "pip install 'pipediag[tensorflow]'" in verdict.summary


def test_a_profile_that_is_missing_leaves_the_consumer_open() -> None:
    missing = Perturbation(
        baseline_step_ms=10.0, profiled_step_ms=None, ratio=None, missing="No step was profiled."
    )
    verdict = decide(
        session(breakdown=make_breakdown(input_wait=1.0, python=0.0), perturbation=missing)
    )
    assert verdict.bottleneck == "inconclusive"
    assert "Not input-bound" in verdict.summary
    assert any("No step was profiled." in reason for reason in verdict.reasons)


def test_doubts_lower_the_confidence() -> None:
    shaken = session(steps=make_steps(count=8, stable=False))
    assert decide(shaken).confidence == "low"
    assert decide(session(steps=make_steps(count=8))).confidence == "medium"
    assert decide(session(input_wait=make_input_wait(method="trace"))).confidence == "low"
    lock = make_input_wait(contention="python")
    assert decide(session(input_wait=lock)).confidence == "medium"
    assert decide(session(input_wait=lock, differential=MEASURED_ALONE)).confidence == "high"


@pytest.mark.parametrize(
    ("others", "idle", "confidence"),
    [(0.5, 0.1, "medium"), (0.25, 0.1, "high"), (0.5, 0.3, "high"), (None, None, "high")],
)
def test_other_programs_on_its_cpus_are_a_doubt_where_these_are_hardly_idle(
    others: float | None, idle: float | None, confidence: str
) -> None:
    host = make_host(cores_of_others=others, cores_idle=idle)
    verdict = decide(session(host=host))
    assert verdict.confidence == confidence
    doubted = confidence != "high"
    assert (
        verdict.reasons[0].endswith(", beside other programs that took 0.5 of its 2 CPUs.")
        is doubted
    )
    assert any(one.startswith("Alone on the machine") for one in verdict.reasons) is doubted


def test_threads_that_compute_beside_the_loop_are_a_doubt_where_input_is_not_the_verdict() -> None:
    shared = make_input_wait(contention="cpu")
    assert decide(session(input_wait=shared)).confidence == "high"
    shares = make_breakdown(input_wait=1.0, device_compute=90.0, python=9.0)
    computing = session(input_wait=shared, breakdown=shares)
    assert decide(computing).confidence == "medium"
    assert any("repeated batch" in reason for reason in decide(computing).reasons)


def test_a_python_source_is_named_by_its_hottest_line() -> None:
    keras = make_keras(data_adapter="PyDatasetAdapter", source="Rows", source_line=3)
    verdict = decide(session(loops=[make_loop(keras=keras)]))
    assert (verdict.file, verdict.line) == ("train.py", 6)
    assert "`Rows` at train.py:6" in verdict.summary


def test_without_stacks_a_python_source_is_named_by_its_class() -> None:
    keras = make_keras(
        data_adapter="PyDatasetAdapter", source="Rows", source_file="data.py", source_line=3
    )
    verdict = decide(session(loops=[make_loop(keras=keras)], host=None))
    assert (verdict.file, verdict.line) == ("data.py", 3)


def test_a_generator_is_named_by_its_hottest_line_and_else_by_its_call() -> None:
    pipeline = make_pipeline(ops=[make_operation("map_0", "from_generator", line=27)])
    assert decide(session(pipeline=pipeline)).line == 6
    assert decide(session(pipeline=pipeline, host=None)).line == 27


@pytest.mark.parametrize(("percent", "line"), [(86.0, 16), (30.0, None)])
def test_a_prediction_that_is_most_of_each_step_is_named(percent: float, line: int | None) -> None:
    call = NestedCall(what="predict", file="train.py", line=16, percent=percent, ms=70.0)
    loop = make_loop(keras=None, kind="tf_function", from_python=True, nested=[call])
    shares = make_breakdown(device_compute=30.0, dispatch=45.0, python=20.0)
    verdict = decide(session(breakdown=shares, loops=[loop], host=None))
    assert (verdict.bottleneck, verdict.line) == ("overhead", line)
    said = " `predict` at train.py:16 takes 86 % of each step."
    assert verdict.summary.endswith(said) is (line is not None)


def test_overhead_in_python_names_the_line_of_the_training_thread() -> None:
    line = HotLine(file="train.py", line=40, function="on_batch", percent=60.0, thread="main")
    shares = make_breakdown(device_compute=10.0, python=70.0, dispatch=15.0)
    verdict = decide(session(breakdown=shares, host=make_host(hot_python=[line])))
    assert (verdict.bottleneck, verdict.line) == ("overhead", 40)


def test_an_interval_of_steps_inside_a_graph_counts_as_a_sample() -> None:
    loops = [make_loop(kind="in_graph")]
    wait = make_input_wait(native_percent=None, native_ci95_percent=None, method="trace")
    verdict = decide(session(loops=loops, steps=make_steps(count=5), input_wait=wait))
    assert (verdict.bottleneck, verdict.confidence) == ("input", "low")
    assert verdict.reasons[0].startswith("5 mean steps over intervals without a profiler")
    assert not any("Only 5" in reason for reason in verdict.reasons)
    assert any("the input wait is the profile's" in reason for reason in verdict.reasons)


def test_a_profile_that_did_not_slow_the_step_is_doubted_less() -> None:
    wait = make_input_wait(method="trace")
    little = Perturbation(baseline_step_ms=10.0, profiled_step_ms=10.4, ratio=1.04)
    verdict = decide(session(input_wait=wait, perturbation=little))
    assert verdict.confidence == "medium"
    assert any("1.04 times as long" in reason for reason in verdict.reasons)


def test_too_few_intervals_of_steps_inside_a_graph() -> None:
    verdict = decide(session(loops=[make_loop(kind="in_graph")], steps=make_steps(count=4)))
    assert verdict.bottleneck == "inconclusive"
    assert verdict.summary.startswith("Only 4 intervals were seen after the warm-up")


def between_epochs(**time: Any) -> Session:
    """A loop that waits for first batches; its steps are launching operations."""
    shares = make_breakdown(input_wait=2.0, device_compute=10.0, dispatch=88.0)
    ops = [
        make_operation("source", "from_tensor_slices", line=10),
        make_operation("map", "map", line=13, parent_ids=["source"]),
        make_operation("shuffle", "shuffle", line=14, parent_ids=["map"]),
    ]
    return session(
        loops=[make_loop(time=make_loop_time(**time))],
        breakdown=shares,
        pipeline=make_pipeline(ops=ops, bottleneck_op_id=None),
        ceiling=Ceiling(
            speedup_if_input_free=1.0204, loop_speedup_if_input_free=5.2, next_bottleneck="dispatch"
        ),
    )


def test_waits_between_epochs_that_outweigh_the_steps_are_the_verdict() -> None:
    verdict = decide(between_epochs())
    assert (verdict.bottleneck, verdict.severity, verdict.confidence) == ("input", "high", "medium")
    assert verdict.summary == (
        "Highly input-bound: 80 % of the loop's time (16 s of 20 s) is spent waiting for the first "
        "batch of each epoch, 1.6 s each time; `shuffle` at train.py:14 fills meanwhile with what "
        "`map` at train.py:13 makes. Without these waits the loop would be 5x as fast."
    )
    assert (verdict.line, verdict.op_id) == (14, "shuffle")
    assert any("explain 15 % of the 20 s" in reason for reason in verdict.reasons)


def test_an_interval_of_the_step_that_says_nothing_does_not_hide_them() -> None:
    waiting = between_epochs()
    for breakdown in (with_interval(0.0, 99.0, 100.0), None):
        unknown = waiting.model_copy(update={"breakdown": breakdown})
        assert decide(unknown).bottleneck == "input"


def test_one_end_of_an_epoch_is_a_doubt() -> None:
    verdict = decide(between_epochs(epoch_ends_seen=1))
    assert verdict.confidence == "low"
    assert any("1 end of an epoch was seen" in reason for reason in verdict.reasons)


@pytest.mark.parametrize(
    "time",
    [
        # 88 % of 16 s are more than 4 s.
        {"steps_s": 16.0, "first_batches_s": 4.0, "between_epochs_s": 0.0},
        # Validation takes most, and is no input.
        {"steps_s": 1.0, "first_batches_s": 3.0, "between_epochs_s": 16.0},
    ],
)
def test_other_waits_leave_the_verdict_to_the_step(time: dict[str, float]) -> None:
    assert decide(between_epochs(**time)).bottleneck == "overhead"


def test_steps_that_explain_little_of_the_loop_are_a_doubt() -> None:
    verdict = decide(
        between_epochs(steps_s=4.0, first_batches_s=2.0, between_epochs_s=10.0, unexplained_s=4.0)
    )
    assert (verdict.bottleneck, verdict.confidence) == ("overhead", "medium")
    assert (
        "Steps times their mean explain 20 % of the 20 s that the loop would take from its first "
        "step on (start and compilation not counted); 50 % is between epochs (validation, "
        "callbacks and other work), 20 % is in slower steps and work that no measured step had, "
        "10 % is waiting for the first batch of each epoch. What is said of the step, and what a "
        "change gains in it, holds for its part of the loop alone."
    ) in verdict.reasons
    enough = between_epochs(steps_s=14.0, first_batches_s=0.0, between_epochs_s=6.0)
    assert decide(enough).confidence == "high"


def test_a_repeated_batch_that_says_otherwise_gives_the_bound_and_is_a_doubt() -> None:
    shares = make_breakdown(input_wait=1.0, device_compute=90.0)
    ceiling = Ceiling(speedup_if_input_free=1.0101, next_bottleneck="device_compute")
    wait = make_input_wait(
        native_percent=1.0,
        native_ci95_percent=(0.5, 1.5),
        contested_by_percent=26.0,
        disagreement="On a repeated batch the step is 26 % shorter.",
    )
    verdict = decide(session(breakdown=shares, ceiling=ceiling, input_wait=wait))
    assert "training at most 1.35x as fast" in verdict.summary
    assert verdict.confidence == "medium"
    same = make_input_wait(contested_by_percent=85.0, disagreement="It is 85 % shorter.")
    assert decide(session(input_wait=same)).confidence == "high"
    assert "at most 6.67x as fast" in decide(session(input_wait=same)).summary


def test_what_was_measured_while_a_cache_filled_says_so() -> None:
    filled = session(loops=[make_loop(filled_cache_op_id="map_0")])
    verdict, other = decide(filled), decide(session())

    assert verdict.summary == (
        f"{other.summary} Measured in the epoch that fills the cache at train.py:12; any later one "
        "reads it."
    )
    assert (verdict.confidence, other.confidence) == ("low", "high")
    assert any("holds for that epoch alone" in reason for reason in verdict.reasons)
