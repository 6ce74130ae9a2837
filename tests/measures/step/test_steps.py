from __future__ import annotations

from pipediag.measures.steps import measure_steps, steps_missing
from tests.recordings import make_block, make_recorded_loop, make_recording, make_window


def test_equal_steps_have_no_spread() -> None:
    recording = make_recording()
    steps = measure_steps(recording, recording.loops[0])
    assert steps is not None
    assert (steps.count, steps.warmup_count) == (40, 10)
    assert (steps.mean_ms, steps.median_ms, steps.p95_ms) == (10.0, 10.0, 10.0)
    assert steps.ci95_ms == (10.0, 10.0)
    assert steps.examples_per_s == 3200.0
    assert (steps.first_step_ms, steps.fill_ms) == (900.0, 50.0)


def test_steps_per_execution_counts_calls_and_times_batches() -> None:
    loop = make_recorded_loop(batches_per_call=10)
    recording = make_recording(loops=[loop], windows=[make_window("baseline", make_block(6, 50.0))])
    steps = measure_steps(recording, loop)
    assert steps is not None
    assert (steps.count, steps.mean_ms, steps.batches_per_call) == (6, 5.0, 10)
    assert steps.examples_per_s == 6400.0


def test_without_a_batch_size_there_are_no_examples() -> None:
    loop = make_recorded_loop(batch_size=None)
    steps = measure_steps(make_recording(loops=[loop]), loop)
    assert steps is not None
    assert steps.examples_per_s is None


def test_a_warm_up_that_never_settled_is_said() -> None:
    windows = [make_window("warmup", stable=False), make_window("baseline")]
    recording = make_recording(windows=windows)
    steps = measure_steps(recording, recording.loops[0])
    assert steps is not None
    assert not steps.stable


def test_only_warm_up_gives_no_steps_and_the_reason() -> None:
    window = make_window("warmup", make_block(3), complete=False, reason="the loop ended")
    recording = make_recording(windows=[window])
    assert measure_steps(recording, recording.loops[0]) is None
    assert steps_missing(recording, recording.loops[0]) == (
        "Only 3 steps were seen, all of them warm-up: the loop ended."
    )
